"""The table of features and networks: no key is missing, and rows agree with their page."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
from pydantic import BaseModel

from emulation.virtual.simulated import run
from fattree.experiment.model import Experiment
from tests.table import networks
from tests.table.networks import NETWORKS, RUNS, cells, scenario_of
from tests.table.page import BEGIN, END, PAGE, text_of
from tests.table.rows import BASE, Settings, merged, rows

# Rows that the page has, by their names: the page decides which result is right.
QUICK = ("load balancer Ofan", "PFC, link down and up", "stale queue lengths")


def keys(model: type[BaseModel], before: str = "") -> Iterator[str]:
    """Yield the paths of all values of a table of the schema."""
    for name, field in model.model_fields.items():
        tables = list(tables_in(field.annotation))
        for table in tables:
            yield from keys(table, f"{before}{name}.")
        if not tables:
            yield before + name


def tables_in(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in get_args(annotation):
        yield from tables_in(inner)


def used(settings: Settings, before: str = "") -> Iterator[str]:
    """Yield the paths of all values of an experiment's content."""
    for name, value in settings.items():
        parts = value if isinstance(value, list) else [value]
        for part in parts:
            if isinstance(part, dict) and name != "defines":
                yield from used(part, f"{before}{name}.")
            else:
                yield before + name


def test_every_key_of_the_schema_is_in_a_row(tmp_path: Path) -> None:
    # A job's collective is a collective.
    of_jobs = "jobs.collective."
    expected = {key for key in keys(Experiment) if not key.startswith(of_jobs)}
    tables = [merged(BASE, settings) for settings in rows(tmp_path).values()]
    assert expected - {key for table in tables for key in used(table)} == set()
    # Rows are valid: none is refused by the schema, on all networks alike.
    for settings in rows(tmp_path).values():
        scenario_of(settings)


def page_rows() -> dict[str, list[str]]:
    text = PAGE.read_text(encoding="utf-8").partition(BEGIN)[2].partition(END)[0]
    lines = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    return {name.strip(): cells for name, *cells in lines[1:]}


def shown(row: dict[str, str]) -> list[str]:
    return ["refused" if cell.startswith("refused") else cell for cell in row.values()]


def is_as_printed(name: str, settings: Settings) -> None:
    printed = ["refused" if cell.startswith("refused") else cell for cell in page_rows()[name]]
    # Whoever made the page may have had Mininet.
    ours = shown(cells(settings))
    assert ours[:3] == printed[:3]
    assert [cell == "refused" for cell in ours] == [cell == "refused" for cell in printed]


def test_the_page_has_all_rows_in_order(tmp_path: Path) -> None:
    assert list(page_rows()) == list(rows(tmp_path))


@pytest.mark.parametrize("name", QUICK)
def test_a_row_is_as_printed(name: str, tmp_path: Path) -> None:
    is_as_printed(name, rows(tmp_path)[name])


def test_networks_that_disagree_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def other(scenario: Any) -> Any:
        return run(scenario.model_copy(update={"seed": 6}))

    exact = {**networks.EXACT, "sim, P4 program": other}
    monkeypatch.setattr(networks, "EXACT", exact)
    with pytest.raises(AssertionError):
        cells({"policies": ["rsq"]})


def test_reasons_are_named_once() -> None:
    row = dict.fromkeys(NETWORKS, RUNS)
    refused = row | {"Mininet": "refused: too | fast", "virtual": "refused: why"}
    text = text_of({"one": row, "two": refused, "three": refused})
    assert text.count("refused (1)") == text.count("refused (2)") == 2
    assert text.endswith("1. why\n2. too \\| fast")


@pytest.mark.slow
def test_every_row_is_as_printed(tmp_path: Path) -> None:
    for name, settings in rows(tmp_path).items():
        is_as_printed(name, settings)
