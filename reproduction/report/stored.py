"""A report's data read back, so that its page and pictures can be drawn again without its runs."""

import ast
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from fattree.experiment.model import Scenario
from fattree.files.parquet import ParquetError, Table, read_parquet
from fattree.files.text_file import read_bytes
from fattree.records.record import Record
from reproduction.report.figure import Data, Figure, Measured, Preset, dotted, nested, settings_of
from reproduction.report.whole_file import replace_file
from sim.errors import StoreError
from sim.sweeps.store import plain

# Beside the data: preset, cost and machine of its runs, which no row of it has.
MADE_WITH = "made_with.json"
PAPER = "paper"


@dataclass(frozen=True, slots=True)
class MadeWith:
    """Preset, cost and environment of a report's runs."""

    preset: Preset
    wall_s: float
    cpu_s: float
    runs: int
    seeds: str
    environment: Mapping[str, str]
    missing: Mapping[str, int]
    edition: str = PAPER
    # Of each claim: the look that decided it, and the most seeds that it had asked for.
    looks: Mapping[str, Sequence[int]] = field(default_factory=dict)

    def write(self, folder: Path) -> None:
        """Keep it beside the data."""
        replace_file(folder / MADE_WITH, f"{json.dumps(asdict(self), indent=1)}\n".encode())

    @classmethod
    def read(cls, folder: Path) -> "MadeWith":
        """Read it; raises StoreError where a folder has no data of a report."""
        try:
            values = json.loads((folder / MADE_WITH).read_text(encoding="utf-8"))
            return cls(**{**values, "preset": Preset(**values["preset"])})
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise StoreError(f"{folder}: no data of a report ({error})") from None


def stored(figures: Iterable[Figure], made: MadeWith, folder: Path) -> dict[str, Data]:
    """Return every figure's data from its Parquet file; raises StoreError."""
    all_figures = list(figures)
    paths = {figure.name: folder / f"{figure.name}.parquet" for figure in all_figures}
    existing = {name: path for name, path in paths.items() if path.is_file()}
    try:
        contents = [read_bytes(path, ParquetError) for path in existing.values()]
    except ParquetError as error:
        raise StoreError(str(error)) from None

    # One process reads them all, in this order.
    tables = read_parquet(contents)
    return {
        figure.name: _data(figure, made, paths[figure.name], tables)
        if figure.name in existing
        else Data(made.preset, (), (), made.missing.get(figure.name, 0))
        for figure in all_figures
    }


def _data(figure: Figure, made: MadeWith, path: Path, tables: Iterator[Table]) -> Data:
    try:
        rows = next(tables).frame.to_dicts()
        scenarios = tuple(scenario_of(row) for row in rows)
        records = tuple(
            record_of(row, scenario, figure.measure is not None)
            for row, scenario in zip(rows, scenarios, strict=True)
        )
    # A row lacks a key, or has another value in its place: SyntaxError is of lists as text.
    except (ValueError, KeyError, TypeError, SyntaxError, RecursionError, MemoryError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise StoreError(f"{path}: {reason}") from None

    return Data(made.preset, scenarios, records, made.missing.get(figure.name, 0))


def scenario_of(row: Mapping[str, Any]) -> Scenario:
    """Return the scenario of a row of a figure's data."""
    keys = _known()
    settings = {
        key.replace(".", "__"): _value(keys[key], row[key])
        for key in keys
        if key in row and row[key] is not None
    }
    # A row has its load balancer's name there, which may be that of a variant with other options.
    return Scenario.model_validate(nested({**settings, **settings_of(row["policy"])}))


@cache
def _known() -> dict[str, Any]:
    """Return the default of each key of a scenario."""
    return dict(dotted(plain(Scenario())))


def _value(default: Any, value: Any) -> Any:
    """Return a key's value: lists became text (`figure.dotted`), numbers beside "inf" as well."""
    if not isinstance(value, str):
        return value

    if isinstance(default, str):
        return _list(value) if value.startswith("[") else value

    return float(value) if isinstance(default, int | float) else value


# Rows have a few lists, again and again.
@lru_cache(maxsize=1024)
def _list(text: str) -> Any:
    return ast.literal_eval(text)


def record_of(row: Mapping[str, Any], scenario: Scenario, is_measured: bool) -> Record:
    """Return the record of a row, with the values measured besides."""
    fields = {name: row[name] for name in Record.model_fields if name in row}
    record = Record.model_validate({**fields, "policy": scenario.balancer})
    if not is_measured:
        return record

    recorded = {*Record.model_fields, *dict(dotted(plain(scenario)))}
    values = {
        name: value for name, value in row.items() if name not in recorded and value is not None
    }
    return Measured.of(record, **values)
