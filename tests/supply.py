"""The packages that we depend on, from the lock file and the installed packages' metadata.

python -m tests.supply licences     writes docs/licences.md
python -m tests.supply sbom FILE    writes a CycloneDX 1.5 bill of materials
"""

import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
LOCK = ROOT / "requirements/all.lock"
PAGE = ROOT / "docs" / "licences.md"
PINNED = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;\\]+)(.*?)\\?$")
# Two distributions of one repository.
OURS = {"ofan", "ofan-p4"}
CLASSIFIER = "License :: OSI Approved :: "
# Who redistributes our work together with these has their terms to keep, too.
RECIPROCAL = re.compile(r"GPL|MPL|EUPL|CDDL", re.IGNORECASE)

BEGIN = "<!-- begin: make licences -->"
END = "<!-- end: make licences -->"


@dataclass(frozen=True, slots=True)
class Package:
    """One locked package; `licence` is that of its own metadata."""

    name: str
    version: str
    licence: str
    is_needed: bool


def locked() -> dict[str, str]:
    """Return the versions of the lock file by canonical name."""
    licences: dict[str, str] = {}
    for line in LOCK.read_text(encoding="utf-8").splitlines():
        if match := PINNED.match(line):
            licences.setdefault(canonicalize_name(match[1]), match[2])

    return licences


def _licence(name: str) -> str:
    try:
        metadata: Any = distribution(name).metadata
    except PackageNotFoundError:
        return "not installed here"

    if expression := metadata.get("License-Expression"):
        return str(expression)

    # Some write the whole text into the old field: its first line names it.
    classifiers = [
        line.removeprefix(CLASSIFIER)
        for line in metadata.get_all("Classifier") or []
        if line.startswith(CLASSIFIER)
    ]
    first = (metadata.get("License") or "").strip().splitlines()[:1]
    return ", ".join(classifiers) or (first[0][:60] if first else "not said")


@cache
def needed() -> frozenset[str]:
    """Return the packages that Ofan needs to run, and those that they need, but for our own."""
    licences: set[str] = set()
    waiting = list(OURS)
    while waiting:
        name = waiting.pop()
        if name not in licences:
            licences.add(name)
            waiting += _requirements(name)

    return frozenset(licences - OURS)


def _requirements(name: str) -> Iterator[str]:
    try:
        lines = distribution(name).requires or []
    except PackageNotFoundError:
        return

    for line in lines:
        requirement = Requirement(line)
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            yield canonicalize_name(requirement.name)


def packages() -> list[Package]:
    """Return all locked packages, by name."""
    return [
        Package(name, version, _licence(name), name in needed())
        for name, version in sorted(locked().items())
    ]


def table() -> str:
    """Return the table of docs/licences.md."""
    rows = [
        f"| {package.name} | {package.version} |"
        f" {f'**{package.licence}**' if RECIPROCAL.search(package.licence) else package.licence} |"
        f" {'yes' if package.is_needed else 'no'} |"
        for package in packages()
    ]
    head = "| package | version | licence, as it says itself | Ofan needs it |"
    return "\n".join([head, "|---|---|---|---|", *rows])


def page() -> str:
    """Return docs/licences.md with its table written anew."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    return f"{before}{BEGIN}\n{table()}\n{END}{rest.partition(END)[2]}"


def sbom() -> str:
    """Return a CycloneDX bill of materials of the packages that Ofan needs to run."""
    components = [
        {
            "type": "library",
            "name": package.name,
            "version": package.version,
            "purl": f"pkg:pypi/{package.name}@{package.version}",
            "licenses": [{"license": {"name": package.licence}}],
        }
        for package in packages()
        if package.is_needed
    ]
    version = distribution("ofan").version
    return json.dumps(
        {
            "bomFormat": "CycloneDX",
            "specVersion": "1.5",
            "version": 1,
            "metadata": {
                "component": {
                    "type": "application",
                    "name": "ofan",
                    "version": version,
                    "licenses": [{"license": {"id": "Apache-2.0"}}],
                }
            },
            "components": components,
        },
        indent=2,
    )


def main() -> None:
    """Write the file that the command line names."""
    match sys.argv[1:]:
        case ["licences"]:
            PAGE.write_text(page(), encoding="utf-8")
        case ["sbom", file]:
            Path(file).parent.mkdir(parents=True, exist_ok=True)
            Path(file).write_text(sbom() + "\n", encoding="utf-8")
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main()
