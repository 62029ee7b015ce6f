"""The soak, where it cannot begin."""

import sys

import pytest

from tests.drills import soak


def test_without_a_browser_the_soak_says_what_it_needs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", "/none")
    monkeypatch.setattr(sys, "argv", ["soak"])
    assert soak.main() == 2
    said = capsys.readouterr().err
    assert "no Chromium with its driver" in said
    assert said.count("\n") == 1
