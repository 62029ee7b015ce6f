"""The report's files: the page, its pictures, and the data behind it."""

import io
import json
from collections.abc import Sequence
from pathlib import Path

from reproduction.report.contents import Edition
from reproduction.report.drawing import Drawn
from reproduction.report.page import Judged, claims_frame, render
from reproduction.report.stored import MadeWith
from reproduction.report.whole_file import replace_file
from sim.errors import StoreError

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
    replace_file(folder / "claims.csv", claims_frame(judged).write_csv().encode())
    for part in drawn:
        if part.data.records:
            content = io.BytesIO()
            part.data.frame.write_parquet(content, compression="zstd")
            replace_file(folder / f"{part.figure.name}.parquet", content.getvalue())

    page = output / PAGE
    replace_file(page, render(edition, drawn, judged, made).encode())
    return page


def wall_s(folder: Path, more_s: float) -> float:
    """Add the wall time of one call to that of earlier calls, and return the sum.

    Raises StoreError where the file of earlier calls is damaged.
    """
    # Kept beside the stores that it paid for: drawing again, from any folder, adds nothing.
    path = folder / WALL
    try:
        spent = float(json.loads(path.read_text())["wall_s"]) if path.is_file() else 0.0
    except (ValueError, TypeError, KeyError):
        raise StoreError(
            f"{path}: damaged: remove it, and the page says how long this call took"
        ) from None

    if more_s:
        folder.mkdir(parents=True, exist_ok=True)
        replace_file(path, json.dumps({"wall_s": spent + more_s}).encode())

    return spent + more_s
