"""The report's files: the page, its pictures, and the data behind it as Parquet and CSV."""

import json
from collections.abc import Sequence
from pathlib import Path

import polars as pl

from sim.report.drawing import Drawn
from sim.report.figure import Preset
from sim.report.page import Effort, Judged, claims_frame, render

PAGE = "index.html"
PICTURES = "figures"
DATA = "data"
STORES = "store"
WALL = "wall.json"


def write(
    output: Path, drawn: Sequence[Drawn], judged: Sequence[Judged], preset: Preset, effort: Effort
) -> Path:
    """Write page and data under `output`; return the page's path."""
    folder = output / DATA
    folder.mkdir(parents=True, exist_ok=True)
    claims_frame(judged).write_csv(folder / "claims.csv")

    for part in drawn:
        if part.data.records:
            write_frame(part.data.frame, folder / part.figure.name)

    page = output / PAGE
    page.write_text(render(drawn, judged, preset, effort), encoding="utf-8")
    return page


def write_frame(frame: pl.DataFrame, stem: Path) -> None:
    """Write runs as Parquet, whole, and as CSV without what is the same in all of them.

    Lists become text there.
    """
    frame.write_parquet(stem.with_suffix(".parquet"), compression="zstd")
    texts = [
        pl.col(name).cast(pl.List(pl.String)).list.join(" ")
        if isinstance(kind, pl.List)
        else pl.col(name)
        for name, kind in frame.schema.items()
        if frame[name].n_unique() > 1 or name in ("policy", "seed", "k")
    ]

    frame.select(texts).write_csv(stem.with_suffix(".csv"), float_precision=6)


def wall_s(folder: Path, more_s: float) -> float:
    """Add the wall time of one call that ran something to what earlier ones took, and return the
    sum.
    """
    path = folder / WALL
    spent = json.loads(path.read_text())["wall_s"] if path.is_file() else 0.0
    if more_s:
        folder.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"wall_s": spent + more_s}))

    return float(spent + more_s)
