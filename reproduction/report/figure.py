"""A figure of the report: scenarios to run, pictures to draw, claims to decide.

A figure's module defines one `FIGURE`. The report gathers the scenarios of all figures, runs each
distinct one once, and hands every figure the runs that it asked for. Values that a `Record` does
not hold are measured by a function of a module of its own.
"""

import hashlib
import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypeVar

import polars as pl
from pydantic import Field

from fattree.experiment.model import Scenario, Settings
from fattree.records.record import Record
from reproduction.report.looks import Needs
from sim.sweeps.model_version import code

T = TypeVar("T")
Level = Literal["quick", "default", "full"]
Outcome: TypeAlias = Literal["holds", "partly", "does not hold", "too few seeds", "not decided"]
HOLDS: Outcome = "holds"
PARTLY: Outcome = "partly"
FAILS: Outcome = "does not hold"
FEW: Outcome = "too few seeds"
OPEN: Outcome = "not decided"


class Measured(Record):
    """A record, and further values that the figure's function has measured: lists by name."""

    values: dict[str, tuple[float, ...]] = Field(default_factory=dict)

    @classmethod
    def of(cls, record: Record, **values: Iterable[float]) -> "Measured":
        """Return a run's record with measured values."""
        numbers = {name: tuple(map(float, series)) for name, series in values.items()}
        return cls(**record.model_dump(), values=numbers)


@dataclass(frozen=True, slots=True)
class Variant:
    """A load balancer with another value of an option, shown beside it under a separate name."""

    policy: str
    label: str
    settings: Mapping[str, Any]


# Where the paper's text leaves a choice that moves its figures, both forms are printed.
VARIANTS = {
    "simple_rr_shared": Variant(
        "simple_rr", "Simple RR (shared)", {"load_balancer__rr_pointer": "shared"}
    ),
    "jsq_stale": Variant("jsq", "JSQ (100 ns)", {"load_balancer__queue_staleness_ns": 100}),
    "switch_pkt_ar_stale": Variant(
        "switch_pkt_ar",
        "Switch Pkt AR (100 ns)",
        {"load_balancer__queue_staleness_ns": 100},
    ),
}

Measure: TypeAlias = Callable[[Scenario], Measured]


@dataclass(frozen=True, slots=True)
class Preset:
    """The size of a report's runs. `first_seed` moves all seeds."""

    level: Level
    first_seed: int = 1

    def pick(self, quick: T, default: T, full: T) -> T:
        """Return the value of this preset."""
        return {"quick": quick, "default": default, "full": full}[self.level]

    def seeds(self, quick: int = 3, default: int = 10, full: int = 10) -> range:
        """Return as many seeds as this preset has for a figure.

        The same seed is the same matrix and failures everywhere.
        """
        return range(self.first_seed, self.first_seed + self.pick(quick, default, full))


@dataclass(frozen=True)
class Data:
    """The runs that a figure asked for, in its order.

    `frame` has every key of the scenarios and of the records as columns.
    """

    preset: Preset
    scenarios: tuple[Scenario, ...]
    records: tuple[Record, ...]
    missing: int = 0

    @cached_property
    def frame(self) -> pl.DataFrame:
        """Return a row per run: dotted scenario keys, the record's fields, measured values."""
        runs = zip(self.scenarios, self.records, strict=True)
        rows = [
            {
                **dict(dotted(scenario.model_dump(mode="json"))),
                **_fields(record),
                "policy": variant_of(scenario),
                # Data go to others, to whom folders of this machine say nothing.
                "collective.file": Path(scenario.collective.file or "").name or None,
            }
            for scenario, record in runs
        ]
        # All rows decide a column's type: the first hundred may lack a value that later rows have,
        # or have whole numbers where later rows have not.
        return pl.DataFrame(rows, infer_schema_length=None, strict=False)

    def named(self, *names: str) -> pl.DataFrame:
        """Return the rows of scenarios of parts with these names."""
        return self.frame.filter(pl.col("name").is_in([slug(name) for name in names]))

    def parts(self, *names: str) -> dict[str, pl.DataFrame]:
        """Return the rows of these parts, without empty parts."""
        # A report that was interrupted may lack some: the others are drawn all the same.
        frames = {name: self.named(name) for name in names}
        return {name: rows for name, rows in frames.items() if len(rows)}


def _fields(record: Record) -> dict[str, Any]:
    fields = record.model_dump()
    values = fields.pop("values", {})
    return fields | {name: list(numbers) for name, numbers in values.items()}


def dotted(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Flatten nested tables to keys with dots; lists become text, so that a column has one type."""
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield from dotted(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", str(value) if isinstance(value, list) else value


@dataclass(frozen=True, slots=True)
class Verdict:
    """The outcome of a claim by our runs.

    `criterion` is given only where it differs from the claim's own, with the reason in `why`.

    `ours` has numbers with spread and seeds; `paper` the paper's; `why` and `evidence` explain all
    but a plain "holds". `seeds` are the fewest that any part of it was decided with, None where
    nothing is drawn at random. `panel` is the picture that shows it, by default the picture that
    the claim names first. `needs` selects the figure's scenarios that want more seeds if it is not
    decided; all of them without it.
    """

    claim: str
    verdict: Outcome
    ours: str
    paper: str = ""
    why: str = ""
    evidence: str = ""
    criterion: str = ""
    seeds: int | None = None
    panel: str = ""
    needs: Needs = lambda scenario: True


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure (or table) of the report.

    `draw` returns pictures by panel name ("a", "b" or "" if there is one only); `table` rows for an
    HTML table, instead of pictures or beside them. `measure` runs on workers. `paper` begins with
    the number of the paper's figure or section.
    """

    name: str
    title: str
    paper: str
    caption: str
    scenarios: Callable[[Preset], Sequence[Scenario]] = lambda preset: ()
    draw: Callable[[Data], Mapping[str, Any]] = lambda data: {}
    claims: Callable[[Data], Iterable[Verdict]] = lambda data: ()
    table: Callable[[Data], pl.DataFrame] | None = None
    measure: Measure | None = None

    @property
    def number(self) -> str:
        """Return the paper's number and name of the figure, as in `Figure 6 (growth)`."""
        return self.paper.partition(",")[0]

    @property
    def measure_id(self) -> str | None:
        """Return the name under which results of `measure` are kept."""
        if self.measure is None:
            return None

        # A run's key has scenario and model, not the measure: the code of the module is part of the
        # name, so that a changed measure finds no old numbers. Hence modules of their own: a change
        # of a drawing must not cost the runs again.
        text = code(Path(inspect.getsourcefile(self.measure) or "").read_text(encoding="utf-8"))
        name = f"{self.measure.__module__.rpartition('.')[2]}-{self.measure.__name__}"
        return f"{name}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"


def grid(
    base: Mapping[str, Any], policies: Sequence[str], seeds: Sequence[int], **axes: Sequence[Any]
) -> list[Scenario]:
    """Return one scenario per combination of axes, seed and policy.

    Keys of `base` and `axes` are dotted with `__` for the dot (`fabric__k=(4, 8)`); `name` is the
    part of the figure.
    """
    # Seeds outside policies: an interrupted sweep has whole seeds, and these can be compared.
    points = [dict(zip(axes, values, strict=True)) for values in product(*axes.values())]
    return [
        Scenario.model_validate(nested({**base, **point, **settings_of(policy), "seed": seed}))
        for point in points
        for seed in seeds
        for policy in policies
    ]


def settings_of(name: str) -> dict[str, Any]:
    """Return the load balancer and its options, by its name or by a name of VARIANTS."""
    variant = VARIANTS.get(name)
    return {"policy": variant.policy, **variant.settings} if variant else {"policy": name}


def variant_of(scenario: Scenario) -> str:
    """Return the name in VARIANTS of a scenario's load balancer, else the load balancer's own."""
    for name, variant in VARIANTS.items():
        options = {key.partition("__")[2]: value for key, value in variant.settings.items()}
        if scenario.policy == variant.policy and all(
            getattr(scenario.load_balancer, option) == value for option, value in options.items()
        ):
            return name

    return scenario.policy


def parts(*names: str) -> Needs:
    """Return the function that selects the scenarios of these parts of a figure."""
    slugs = {slug(name) for name in names}
    return lambda scenario: scenario.name in slugs


def slug(name: str) -> str:
    """Return the name of a figure's part as a name that scenarios may have."""
    return re.sub("[^A-Za-z0-9_.-]+", "_", name)


def nested(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return `{"fabric__k": 4}` as `{"fabric": {"k": 4}}`."""
    tables: dict[str, Any] = {}
    for key, value in values.items():
        table, _, name = key.partition("__")
        if name:
            tables.setdefault(table, {})[name] = value
        elif key == "name":
            tables[key] = slug(value)
        elif key in Settings.model_fields or key in Scenario.model_fields:
            tables[key] = value
        else:
            raise ValueError(f"no setting {key!r}")

    return tables
