"""The report as one HTML page, pictures inside: claims with verdicts on top, then all figures."""

import os
import platform
import re
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from importlib.metadata import version
from pathlib import Path
from typing import Any

import polars as pl
from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

from reproduction.report.claims import Claim, combined
from reproduction.report.contents import PAPER, Edition
from reproduction.report.drawing import Drawn
from reproduction.report.figure import FAILS, FEW, HOLDS, OPEN, PARTLY, Outcome, Verdict
from reproduction.report.looks import ERROR, LEVEL, LOOKS
from reproduction.report.stored import MadeWith
from sim.sweeps.model_version import model_version

LIBRARIES = ("numba", "numpy", "polars", "matplotlib")
MIME = "data:image/svg+xml,"
UNSEEN = re.compile(r"<!--.*?-->|<metadata>.*?</metadata>", re.DOTALL)
IN_DOUBLE_QUOTES = str.maketrans({"%": "%25", "#": "%23", "&": "%26", "'": "%26apos;", '"': "'"})
DECIMALS = re.compile(r"(\.\d{4})\d+")
VIEW_BOX = re.compile(r'viewBox="0 0 ([0-9.]+) ([0-9.]+)"')
# In points: a picture that is wider has no text that can be read in half of a common screen.
WIDE = 450
SLUGS: dict[Outcome, str] = {
    HOLDS: "holds",
    PARTLY: "partly",
    FAILS: "fails",
    FEW: "few",
    OPEN: "open",
}


@dataclass(frozen=True, slots=True)
class Judged:
    """A claim with every verdict of figures on it."""

    number: str
    claim: Claim
    outcome: Outcome
    verdicts: tuple[tuple[str, Verdict], ...]

    @property
    def slug(self) -> str:
        """Return the outcome as a CSS class."""
        return SLUGS[self.outcome]


def judge(drawn: Sequence[Drawn], claims: Mapping[str, Claim]) -> list[Judged]:
    """Return every claim, in order, with the verdicts of the figures."""
    # From the table, not from the verdicts: a claim that nothing decides shows as not decided.
    said: dict[str, list[tuple[str, Verdict]]] = {number: [] for number in claims}
    for part in drawn:
        for verdict in part.verdicts:
            said[verdict.claim].append((part.figure.name, verdict))

    return [
        Judged(
            number, claims[number], combined([verdict for _, verdict in verdicts]), tuple(verdicts)
        )
        for number, verdicts in said.items()
    ]


def counts(judged: Iterable[Judged]) -> dict[Outcome, int]:
    """Return how many claims have each outcome."""
    outcomes = Counter(claim.outcome for claim in judged)
    return {outcome: outcomes[outcome] for outcome in SLUGS}


def render(
    edition: Edition, drawn: Sequence[Drawn], judged: Sequence[Judged], made: MadeWith
) -> str:
    """Return the page."""
    environment = Environment(
        loader=PackageLoader("reproduction.report"),
        autoescape=select_autoescape(default=True),
        undefined=StrictUndefined,  # a wrong name is an error, not a hole in the page
        trim_blocks=True,
        lstrip_blocks=True,
    )

    environment.filters |= {
        "picture": embedded,
        "size": size,
        "cell": cell,
        "duration": duration,
        "zip": zip,
    }
    return environment.get_template("page.html").render(
        drawn=drawn,
        judged=judged,
        edition=edition,
        paper=PAPER,
        shown=shown(drawn, judged),
        wide=WIDE,
        counts={SLUGS[outcome]: (outcome, number) for outcome, number in counts(judged).items()},
        slugs=SLUGS,
        preset=made.preset,
        scope=edition.scope[made.preset.level],
        made=made,
        rule={"looks": LOOKS, "level": f"{100 * LEVEL:.1f}", "together": f"{100 * (1 - ERROR):g}"},
        missing=sum(part.data.missing for part in drawn),
    )


def surroundings() -> dict[str, str]:
    """Return software, machine and time of a report that is made now."""
    return {
        "ofan": version("ofan"),
        # Names the exact simulator: two pages with one model may be compared number by number.
        "model": model_version()[:16],
        "Python": platform.python_version(),
        **{name: version(name) for name in LIBRARIES},
        "machine": f"{sys.platform}, {platform.machine()}, {os.cpu_count()} processors",
        "written": datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
    }


def embedded(path: Path) -> str:
    """Return an SVG file as a data URI, safe between double quotes."""
    # As an image, not inline: ids inside of SVGs would meet each other on one page. As text in
    # single quotes, which takes a third less than base64; a ten-thousandth of a point is invisible.
    text = DECIMALS.sub(r"\1", UNSEEN.sub("", path.read_text(encoding="utf-8")))
    return MIME + " ".join(text.translate(IN_DOUBLE_QUOTES).split())


def size(path: Path) -> tuple[float, float]:
    """Return an SVG file's width and height in points."""
    box = VIEW_BOX.search(path.read_text(encoding="utf-8"))
    assert box, path
    return float(box[1]), float(box[2])


def shown(drawn: Sequence[Drawn], judged: Iterable[Judged]) -> dict[str, Path]:
    """Return for each claim a picture of the first figure that decides it and has some."""
    pictures = {part.figure.name: part.pictures for part in drawn}
    chosen: dict[str, Path] = {}
    for claim in judged:
        for figure, verdict in claim.verdicts:
            if pictures[figure] and claim.number not in chosen:
                named = pictures[figure].get(verdict.panel)
                chosen[claim.number] = named or _named_first(claim.claim.text, pictures[figure])

    return chosen


def _named_first(text: str, panels: Mapping[str, Path]) -> Path:
    """Return the panel with the matrix that a claim names first, else the first panel."""
    places = {panel: text.lower().find(panel.partition(",")[0].lower()) for panel in panels}
    named = [panel for panel in panels if panel and places[panel] >= 0]
    return panels[min(named, key=places.__getitem__) if named else next(iter(panels))]


def cell(value: Any) -> str:
    """Return a table's cell as text."""
    if value is None:
        return "–"

    return f"{value:,.3g}" if isinstance(value, float) and abs(value) < 1e6 else str(value)


def duration(seconds: float) -> str:
    """Return a time as people say it."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def claims_frame(judged: Sequence[Judged]) -> pl.DataFrame:
    """Return one row per claim and verdict."""
    rows = [
        {
            "claim": claim.number,
            "outcome": claim.outcome,
            "text": claim.claim.text,
            "where": claim.claim.where,
            "criterion": verdict.criterion or claim.claim.criterion,
            "set_by": claim.claim.set_by,
            "seeds": verdict.seeds,
            "margin": claim.claim.margin_text,
            "changed_criterion": bool(verdict.criterion),
            "figure": figure,
            "verdict": verdict.verdict,
            "paper": verdict.paper,
            "ours": verdict.ours,
            "why": verdict.why,
            "evidence": verdict.evidence,
        }
        for claim in judged
        # A claim that no figure has decided has a row too: the table always has all of them.
        for figure, verdict in (claim.verdicts or (("", Verdict(claim.number, OPEN, "")),))
    ]

    return pl.DataFrame(rows, infer_schema_length=None)
