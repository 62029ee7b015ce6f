"""An answer: the ranking with its grounds, as a table, as text, as JSON and as files."""

import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from fattree.experiment.model import Settings
from fattree.files.whole_file import write_whole
from fattree.records.tables import Folding
from sim.choice.advice import Ground, advice, changes, over
from sim.choice.candidates import as_json, needs
from sim.choice.conditions import as_keys
from sim.choice.questions import in_words
from sim.choice.ranking import DECIDED, Standing, Verdict
from sim.choice.rounds import Progress
from sim.choice.workloads import SENTENCES
from sim.sweeps.estimates import Estimate
from sim.sweeps.model_version import model_version
from sim.sweeps.tables import write_parquet

if TYPE_CHECKING:
    from matplotlib.figure import Figure

HEADINGS = (
    "",
    "load balancer",
    "worst (%)",
    "in which condition",
    "mean (%)",
    "lead (points)",
    "seeds",
    "state in a switch",
    "in a host",
    "headers",
    "NICs",
)
SHORT = 5
LEGEND = (
    "worst, mean: time over the bound; ±: 95 % over seeds. lead: points by which the next row is"
    " behind. =: level with the first row; ?: not told apart from it so far."
)
JSON, PARQUET, PICTURE, TEXT = "answer.json", "runs.parquet", "answer.png", "answer.txt"


@dataclass(frozen=True, slots=True)
class Answer:
    """The load balancers of a fabric from the best worst condition to the worst.

    `left_out` has a line for each workload that does not fit; `seconds` are those of this call.
    """

    settings: Settings
    progress: Progress
    left_out: tuple[str, ...] = ()
    seconds: float = 0.0

    @property
    def ground(self) -> Ground:
        """Return the grounds of the advice."""
        plan = self.progress.plan
        return Ground(
            plan.candidates,
            plan.conditions,
            self.progress.times(),
            plan.weights,
            plan.margin,
            self.progress.far,
        )

    @property
    def places(self) -> list[Standing]:
        """Return the ranking."""
        return self.ground.places()

    @property
    def first(self) -> list[str]:
        """Return the names of the first and of those that are level with it."""
        return self.ground.first()

    @property
    def advice(self) -> str:
        """Return two sentences: the load balancer to run, and the reason."""
        return advice(self.ground)

    @property
    def changes(self) -> list[str]:
        """Return a line for each change of conditions that changes the first."""
        return changes(self.ground)

    @property
    def basis(self) -> str:
        """Return the workloads and seeds that the ranking rests on, in words."""
        seeds = {row.seeds for row in self.places}
        fewest, highest = min(seeds), max(seeds)
        if fewest < highest:
            return f"{', '.join(self.progress.counted)}; {fewest} to {highest} seeds"

        counted = f"{fewest} seed{'s' * (fewest > 1)}"
        return f"{', '.join(self.progress.counted)}; {counted}"

    @property
    def decided(self) -> str:
        """Return how far the order of the first three is known, in a sentence."""
        plan, looks = self.progress.plan, self.progress.looks
        subject = f"the first {min(DECIDED, len(plan.candidates))}"
        margin = f"a margin of {plan.margin:g} points (95 % over all looks)"
        if self.progress.is_decided:
            return f"The order of {subject} is decided with {margin}, at look {looks}."

        why = "the time is over" if self.progress.is_out_of_time else "all looks are used up"
        return f"The order of {subject} is not decided with {margin}: {why} at look {looks}."

    def table(self) -> Folding:
        """Return the table for people."""
        return table(self.ground)

    def short_table(self) -> Folding:
        """Return the first columns of the table, which any terminal has room for."""
        whole = self.table()
        folding = Folding(*HEADINGS[:SHORT], keys=2, texts=(1, 3))
        for row in whole.rows:
            folding.add_row(*row[:SHORT])

        return folding

    def text(self) -> str:
        """Return advice and changes in lines."""
        plan = self.progress.plan
        conditions = "; ".join(condition.sentence for condition in plan.conditions.values())
        counted = self.progress.counted
        carried = "; ".join(
            f"{name}: {SENTENCES[name]}" if name in SENTENCES else name for name in counted
        )
        late = [name for name in plan.workloads if name not in counted]
        lines = [
            LEGEND,
            "",
            self.advice,
            "",
            "What would change it:",
            *(f"  {line}" for line in self.changes),
            "",
            self.decided,
            *(f"Without an end: {line}" for line in sorted(self._endless())),
            *self.left_out,
            *([f"No time for {', '.join(late)}: give more --minutes."] if late else []),
            f"Fabric: {in_words(self.settings.fabric)}.",
            f"Conditions: {conditions}.",
            f"Workloads, whose mean a condition counts: {carried}.",
        ]
        return "\n".join(lines)

    def _endless(self) -> set[str]:
        return {f"{cell} ({message})" for cell, message in self.progress.failures.items()}

    def json(self) -> dict[str, Any]:
        """Return the answer as JSON values."""
        plan, times = self.progress.plan, self.progress.times()
        return {
            "advice": self.advice,
            "first": self.first,
            "changes": self.changes,
            "decided": self.progress.is_decided,
            "looks": self.progress.looks,
            "margin_points": plan.margin,
            "seconds": round(self.seconds, 1),
            "runs": len(self.progress.runs),
            "model": model_version(),
            "fabric": self.settings.fabric.model_dump(mode="json", exclude_none=True),
            "workloads": self.progress.counted,
            "conditions": {
                name: {
                    "heading": row.heading.replace("\n", " "),
                    "sentence": row.sentence,
                    "weight": plan.weights.get(name, 1.0),
                    **as_keys(row, self.settings),
                }
                for name, row in plan.conditions.items()
            },
            "rows": [
                {
                    **as_json(plan.candidates[row.name]),
                    **_numbers(row),
                    "percent": {name: _plain(values) for name, values in times[row.name].items()},
                }
                for row in self.places
            ],
        }

    def picture(self) -> "Figure":
        """Return the heat map of candidates and conditions."""
        # Matplotlib takes half a second to import.
        from sim.choice.pictures import heat_map

        return heat_map(self.ground)

    def write(self, folder: str | Path) -> None:
        """Write the answer, its picture and its runs to a folder."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(folder / JSON, (json.dumps(self.json(), indent=1) + "\n").encode())
        write_whole(folder / TEXT, f"{self}\n".encode())
        write_parquet(list(self.progress.runs.values()), folder / PARQUET)
        save(self.picture(), folder / PICTURE)

    def __str__(self) -> str:
        """Return the ranking and the advice as text."""
        rows = [
            f"{number}. {self.ground.label(row.name)}: {over(row.worst.mean)}"
            for number, row in enumerate(self.places, start=1)
        ]
        return "\n".join([*rows, "", self.text()])


def table(ground: Ground) -> Folding:
    """Return the table of a ranking: rows by their worst condition, and the needs of each."""
    folding = Folding(*HEADINGS, keys=2, texts=(1, 3, 7, 8, 9, 10))
    first = ground.first()
    for number, row in enumerate(ground.places(), start=1):
        switch, host, headers, nics = needs(ground.candidates[row.name]).cells()
        folding.add_row(
            _place(number, row, first, ground),
            ground.label(row.name),
            _interval(row.worst),
            ground.conditions[row.condition].heading.replace("\n", " "),
            over(row.mean).removesuffix(" %"),
            _lead(row),
            str(row.seeds),
            switch,
            host,
            headers,
            nics,
        )

    return folding


def _place(rank: int, standing: Standing, first: Sequence[str], ground: Ground) -> str:
    """Return a row's number; `=`: level with the first; `?`: not separated from it so far."""
    if standing.name not in first[1:]:
        return str(rank)

    return f"{rank} {'=' if ground.beside_first(standing.name) is Verdict.LEVEL else '?'}"


def _interval(estimate: Estimate) -> str:
    if not isfinite(estimate.mean):
        return "never ends"

    return (
        f"{estimate.mean:.1f} ± {estimate.half:.1f}"
        if isfinite(estimate.half)
        else f"{estimate.mean:.1f}"
    )


def _lead(standing: Standing) -> str:
    """Return how far the next row is behind: a number, or that both are level or undecided."""
    if standing.lead is None or standing.verdict is None:
        return ""

    # Adding 0 takes the sign off a rounded -0.
    mean = round(-standing.lead.mean, 1) + 0.0 if isfinite(standing.lead.mean) else None
    lead = "all" if mean is None else f"{mean:.1f}"
    return {Verdict.AHEAD: lead, Verdict.LEVEL: "level", Verdict.OPEN: f"{lead}?"}[standing.verdict]


def _numbers(standing: Standing) -> dict[str, Any]:
    return {
        "worst_percent": _finite(standing.worst.mean),
        "worst_half": _finite(standing.worst.half),
        "worst_condition": standing.condition,
        "mean_percent": _finite(standing.mean),
        "seeds": standing.seeds,
        "lead_points": _finite(-standing.lead.mean) if standing.lead else None,
        "lead_half": _finite(standing.lead.half) if standing.lead else None,
        "beside_next": standing.verdict.value if standing.verdict else None,
    }


def _plain(values: Any) -> dict[str, Any]:
    return {"mean": _finite(fmean(values)), "seeds": [_finite(value) for value in values]}


def _finite(value: float) -> float | None:
    return round(value, 3) if isfinite(value) else None


def save(figure: "Figure", path: Path, info: Mapping[str, str] | None = None) -> None:
    """Write a picture to a PNG file."""
    data = io.BytesIO()
    figure.savefig(data, format="png", dpi=150, metadata=dict(info or {}))
    write_whole(path, data.getvalue())
