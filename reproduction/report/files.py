"""The report's files: the page, its pictures, and the data behind it."""

import json
from collections.abc import Sequence
from pathlib import Path

from reproduction.report.contents import Edition
from reproduction.report.drawing import Drawn
from reproduction.report.page import Judged, claims_frame, render
from reproduction.report.stored import MadeWith

# Names below the folder that the user gives.
PAGE = "index.html"
PICTURES = "figures"
DATA = "data"
STORES = "store"
WALL = "wall.json"


def write(
    output: Path,
    edition: Edition,
    drawn: Sequence[Drawn],
    judged: Sequence[Judged],
    made: MadeWith,
) -> Path:
    """Write page and data under `output`; return the page's path."""
    folder = output / DATA
    folder.mkdir(parents=True, exist_ok=True)
    made.write(folder)

    # Runs as Parquet: half of CSV's size, with types and lists. Verdicts are prose that no figure's
    # file has, worth reading and comparing as text.
    claims_frame(judged).write_csv(folder / "claims.csv")
    for part in drawn:
        if part.data.records:
            path = folder / f"{part.figure.name}.parquet"
            part.data.frame.write_parquet(path, compression="zstd")

    page = output / PAGE
    page.write_text(render(edition, drawn, judged, made), encoding="utf-8")
    return page


def wall_s(folder: Path, more_s: float) -> float:
    """Add the wall time of one call to what earlier ones took, and return the sum."""
    # Kept beside the stores that it paid for: drawing again, from any folder, adds nothing.
    path = folder / WALL
    spent = json.loads(path.read_text())["wall_s"] if path.is_file() else 0.0
    if more_s:
        folder.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"wall_s": spent + more_s}))

    return float(spent + more_s)
