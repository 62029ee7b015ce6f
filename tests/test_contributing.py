"""The targets, files and terms that CONTRIBUTING.md and the glossary name exist."""

import re
from pathlib import Path

import pytest

import ofan

ROOT = Path(ofan.__file__).parent
NAMED = re.compile(r"`([\w./-]+/[\w./-]*|[\w-]+\.(?:py|md|toml))`")
# Placeholders of the reader's own.
YOURS = {"p4src/NAME.p4", "cases/errors/"}


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "docs/glossary.md"])
def test_every_path_that_a_page_names_is_there(page: str) -> None:
    named = set(NAMED.findall((ROOT / page).read_text(encoding="utf-8"))) - YOURS
    assert len(named) > 10
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []


def test_every_make_target_that_contributing_names_is_there() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    targets = re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M)
    assert set(re.findall(r"make ([a-z0-9-]+)", text)) <= set(targets)
