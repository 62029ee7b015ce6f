"""The demo's message where it cannot send real packets."""

import os
from pathlib import Path

import pytest

from emulation.commands.demo import real_packets
from emulation.mininet import kernel


@pytest.fixture
def no_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)


def test_without_root_the_demo_is_not_told_to_be_virtual(no_root: None) -> None:
    said = real_packets(Path("never_read.toml"))
    assert "on Mininet is left out: Mininet needs root: `sudo " in said
    assert "choose" not in said


def test_without_root_and_mininet_both_are_told(
    no_root: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernel, "find_spec", lambda _name: None)
    said = real_packets(Path("never_read.toml"))
    assert "needs root: `sudo " in said
    assert "; this Python has no Mininet: apt install mininet" in said
