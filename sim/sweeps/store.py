"""Finished runs in SQLite, one row each, so that a killed sweep goes on where it stopped.

A run's key is the hash of its scenario (all but name and label), of the traffic file that it
reads, of its P4 program with its tools, and of the model (`model_version`). The view `results`
has the record's fields as columns. WAL lets others read meanwhile.
"""

import hashlib
import json
import math
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from fattree.errors import FabricError
from fattree.experiment.model import BUILT_IN, Scenario
from fattree.files.text_file import read_bytes
from fattree.records.naming import named
from fattree.records.record import Record
from sim.errors import StoreError
from sim.sweeps.model_version import ROOT, model_version
from sim.sweeps.store_file import FORMAT, REMEDY, opened, sum_of, version_of

# Folders that a result depends on, beside the model, where switches run a program: of Ofan, and of
# the P4 tools, which are installed by themselves.
P4_FOLDERS = ("p4src", "controller", "emulation/programs", "emulation/virtual", "hostagent/agents")
P4_TOOLS = "ofan_p4"
P4_TOOL_FOLDERS = ("compiler", "softswitch")


def run_key(scenario: Scenario, of_model: bool = True) -> str:
    """Return the hash that names a run: the same iff results are the same by construction.

    Keys that leave this process contain the model's version, which takes half a second to compute.
    """
    values = plain(scenario, without={"name", "label"})
    # The content of the user's files counts, not their names.
    for key in ("host_rule", "agent_packet"):
        if values[key]:
            values[key] = values[key]["text"]

    text = json.dumps(values, sort_keys=True)
    return hashlib.sha256(
        "\n".join(
            (
                text,
                *(map(_traffic_digest, scenario.files) if scenario.files else [""]),
                _program_digest(scenario),
                model_version() if of_model else "",
            )
        ).encode()
    ).hexdigest()


def _traffic_digest(file: str) -> str:
    # A file that cannot be read gets a key too: the run itself will raise its error.
    try:
        return hashlib.sha256(read_bytes(file, FabricError)).hexdigest()
    except FabricError:
        return "unreadable"


def digest_programs_with(digest: Callable[[Scenario], str]) -> None:
    """Take a function that returns the hash of the files of a scenario's own program.

    The preprocessor alone knows these files, and it belongs to the P4 tools, which the simulator
    does not import: the module that runs programs brings the function.
    """
    _digests[:] = [digest]


_digests: list[Callable[[Scenario], str]] = []


def _program_digest(scenario: Scenario) -> str:
    """Return the hash of a program with its included files, and of the compiler and the switch."""
    if scenario.program is None:
        return ""
    if scenario.program == BUILT_IN:
        return p4_version()
    if not _digests:
        raise StoreError(
            f"{scenario.program}: the key of a run with a program needs the P4 compiler:"
            " import emulation.virtual.simulated, which runs it"
        )

    return f"{p4_version()} {_digests[0](scenario)}"


@cache
def p4_version() -> str:
    """Return the hash of all that turns a program into results: text by text."""
    spec = find_spec(P4_TOOLS)
    assert spec is not None and spec.origin is not None
    tools = Path(spec.origin).parent
    folders = [ROOT / name for name in P4_FOLDERS] + [tools / name for name in P4_TOOL_FOLDERS]
    paths = [path for folder in folders for path in sorted(folder.rglob("*.p*"))]
    texts = [path.read_bytes() for path in paths if path.suffix in (".py", ".p4")]
    return hashlib.sha256(b"".join(texts)).hexdigest()


def plain(model: BaseModel, without: set[str] | None = None) -> dict[str, Any]:
    """Return a model as JSON values; infinity is text, which pydantic reads."""
    values = _finite(model.model_dump(mode="json", exclude=without))
    assert isinstance(values, dict)
    return values


def _finite(value: Any) -> Any:
    match value:
        case dict():
            return {key: _finite(item) for key, item in value.items()}
        case list() | tuple():
            return [_finite(item) for item in value]
        case float() if not math.isfinite(value):
            return str(value)
        case _:
            return value


class Store:
    """The runs of a file; raises StoreError where it is none of ours.

    `kind` is the class of its records.
    """

    def __init__(
        self, path: str | Path, *, create: bool = True, kind: type[Record] = Record
    ) -> None:
        self.path = Path(path)
        self.kind = kind
        with self._errors():
            self._database = opened(self.path, create)

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    def __enter__(self) -> "Store":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def find(self, keys: Iterable[str]) -> dict[str, Record]:
        """Return the records of those keys that are finished."""
        # One query a key: SQLite limits how many parameters a query has, and a look-up by primary
        # key costs microseconds.
        with self._errors():
            rows = [row for key in keys for row in self._kept("WHERE runs.key = ?", key)]
            return {key: self._run(scenario, record)[1] for key, scenario, record in rows}

    def add(self, scenario: Scenario, record: Record) -> None:
        """Keep a finished run; a run that is there already stays as it is."""
        row = (
            run_key(scenario),
            model_version(),
            json.dumps(plain(scenario)),
            json.dumps(plain(record)),
        )

        # A transaction a run, so a kill costs the runs under way and no more.
        with self._errors(), self._database:
            added = self._database.execute(
                "INSERT OR IGNORE INTO runs (key, model, scenario, record) VALUES (?, ?, ?, ?)", row
            )
            if added.rowcount:
                key, _, scenario_text, record_text = row
                total = sum_of(key, scenario_text, record_text)
                self._database.execute("INSERT OR REPLACE INTO sums VALUES (?, ?)", (key, total))

    def want(self, scenarios: Mapping[str, Scenario]) -> None:
        """Remember the order in which a sweep has its runs, finished or not."""
        with self._errors(), self._database:
            (first,) = self._database.execute(
                "SELECT coalesce(max(place) + 1, 0) FROM wanted"
            ).fetchone()
            self._database.executemany(
                "INSERT OR REPLACE INTO wanted VALUES (?, ?, ?)",
                (
                    (key, index, scenario.balancer_label)
                    for index, (key, scenario) in enumerate(scenarios.items(), start=first)
                ),
            )

    def balancers(self) -> list[str]:
        """Return the load balancers of the sweeps in their order, as people read them."""
        if not self._has("wanted"):
            return []

        with self._errors():
            rows = self._database.execute(
                "SELECT balancer FROM wanted GROUP BY balancer ORDER BY min(place)"
            )
            return [balancer for (balancer,) in rows]

    def _has(self, table: str) -> bool:
        # Stores of earlier versions have neither an order nor sums.
        with self._errors():
            tables = self._database.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (table,))
            return tables.fetchone() is not None

    def _kept(self, which: str, *values: str) -> list[tuple[str, str, str]]:
        """Return runs' keys, scenarios and records; sqlite3.DatabaseError where they have changed.

        SQLite checks its pages, and a page with a wrong digit is a good page.
        """
        column, joined = (
            ("sum", "LEFT JOIN sums USING (key)") if self._has("sums") else ("NULL", "")
        )
        query = f"SELECT runs.key, scenario, record, {column} FROM runs {joined} {which}"
        rows = self._database.execute(query, values).fetchall()
        needs_sums = version_of(self._database) == FORMAT
        for *texts, total in rows:
            if (needs_sums or total is not None) and total != sum_of(*texts):
                raise sqlite3.DatabaseError(f"damaged (the run {texts[0][:12]}): {REMEDY}")

        return [(key, scenario, record) for key, scenario, record, _ in rows]

    def runs(self) -> list[tuple[Scenario, Record]]:
        """Return all finished runs in the order of the sweeps, else as they finished."""
        ordered = (
            "LEFT JOIN wanted USING (key) ORDER BY place," if self._has("wanted") else "ORDER BY"
        )
        with self._errors():
            return [
                self._run(scenario, record)
                for _, scenario, record in self._kept(f"{ordered} runs.rowid")
            ]

    def _run(self, scenario_text: str, record_text: str) -> tuple[Scenario, Record]:
        """Return a run; fields that records of earlier versions lack come from its scenario."""
        scenario = Scenario.model_validate_json(scenario_text)
        record = self.kind.model_validate_json(record_text)
        if not record.scenario_hash:
            record = record.model_copy(update=named(scenario, record.policy))

        return scenario, record

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            raise StoreError(f"{self.path}: {error}") from None
        except ValidationError:
            raise StoreError(
                f"{self.path}: holds runs of another version of this program"
            ) from None
