"""Seconds of the tests by folder and by file, from pytest's JUnit file.

make test-times
python -m tests.times build/test-times.xml
"""

import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from xml.etree import ElementTree

import click

ROWS = 25


def seconds(file: Path) -> dict[str, float]:
    """Return the seconds of each test module, by its dotted name."""
    spent: dict[str, float] = defaultdict(float)
    for case in ElementTree.parse(file).iter("testcase"):
        # A test in a class has the class behind the module.
        module = ".".join(part for part in case.attrib["classname"].split(".") if part.islower())
        spent[module] += float(case.attrib["time"])

    return spent


def folders(spent: Mapping[str, float]) -> dict[str, float]:
    """Return the seconds of each folder of tests."""
    by_folder: dict[str, float] = defaultdict(float)
    for module, module_s in spent.items():
        by_folder[".".join(module.split(".")[:-1])] += module_s

    return by_folder


def lines(spent: Mapping[str, float]) -> Iterable[str]:
    """Yield the slowest rows with their share of the whole, the slowest first."""
    whole = sum(spent.values())
    for spent_s, name in sorted(((value, name) for name, value in spent.items()), reverse=True)[
        :ROWS
    ]:
        yield f"{spent_s:7.1f} s {spent_s / whole:5.1%}  {name}"


if __name__ == "__main__":
    modules = seconds(Path(sys.argv[1]))
    click.echo(f"{sum(modules.values()):7.1f} s in {len(modules)} files, all workers together")
    click.echo("\n".join(["", *lines(folders(modules)), "", *lines(modules)]))
