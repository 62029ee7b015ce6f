"""Packages that we depend on are locked with hashes, and their licences are listed."""

import json
import re

from tests import supply


def test_every_locked_package_has_hashes() -> None:
    for file in ("requirements/all.lock", "requirements/run.lock", "requirements/shell.lock"):
        text = (supply.ROOT / file).read_text(encoding="utf-8")
        blocks = re.split(r"\n(?=[A-Za-z0-9])", text)
        assert [
            block[:40] for block in blocks if "==" in block and "--hash=sha256:" not in block
        ] == []


def test_what_runs_ofan_is_a_part_of_what_is_locked() -> None:
    parts = {
        file: set((supply.ROOT / file).read_text(encoding="utf-8").splitlines())
        for file in ("requirements/run.lock", "requirements/all.lock")
    }
    assert parts["requirements/run.lock"] < parts["requirements/all.lock"]
    names = {line.partition("==")[0] for line in parts["requirements/run.lock"]}
    assert {"numba", "scapy", "setuptools"} < names
    assert not {"pytest", "mypy", "mkdocs-material"} & names


def test_setup_and_ci_install_nothing_that_is_not_locked() -> None:
    setup = (supply.ROOT / "setup.sh").read_text(encoding="utf-8")
    installs = [line for line in setup.splitlines() if re.search(r"bin/pip\"? install", line)]
    assert installs and all(
        "--require-hashes" in line or '--no-deps -e "$folder"' in line for line in installs
    )
    assert "pip install" not in (supply.ROOT / ".ci" / "run").read_text(encoding="utf-8")


def test_the_page_names_every_locked_package_in_its_version() -> None:
    text = supply.PAGE.read_text(encoding="utf-8")
    for name, version in supply.locked().items():
        assert f"| {name} | {version} |" in text, "make licences"


def test_what_ofan_needs_is_locked() -> None:
    assert supply.needed() <= supply.locked().keys() | {"tomli", "exceptiongroup"}
    assert "scapy" in supply.needed() and "pytest" not in supply.needed()


def test_scapys_terms_are_told_where_people_look() -> None:
    for file in ("README.md", "NOTICE", "docs/licences.md"):
        assert "GPL-2.0-only" in (supply.ROOT / file).read_text(encoding="utf-8"), file


def test_the_bill_of_materials_is_one_of_what_runs() -> None:
    bill = json.loads(supply.sbom())
    names = {component["name"] for component in bill["components"]}
    assert {"scapy", "grpcio", "numba"} <= names and "pytest" not in names
    assert all(component["version"] for component in bill["components"])
