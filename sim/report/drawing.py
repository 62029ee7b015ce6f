"""Draw figures to PNG and SVG files, in one style; a figure that cannot be drawn says why and does not stop the others."""

import traceback
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import matplotlib as mpl
import polars as pl

from sim.figures.figure import Data, Figure, Verdict, slug
from sim.figures.style import STYLE

FORMATS = ("png", "svg")


@dataclass(frozen=True, slots=True)
class Drawn:
    """A figure's part of the page: its pictures' files by panel, its rows, its verdicts, or why there are none."""

    figure: Figure
    data: Data
    pictures: dict[str, Path] = field(default_factory=dict)
    rows: pl.DataFrame | None = None
    verdicts: tuple[Verdict, ...] = ()
    problem: str = ""


def draw(figure: Figure, data: Data, folder: Path) -> Drawn:
    """Draw a figure into `folder` and decide its claims. With runs missing, errors become a line on the page."""
    if data.missing and not data.records:
        return Drawn(figure, data, problem="none of its runs is finished")
    try:
        with mpl.rc_context(STYLE):
            pictures = {panel: _saved(picture, folder, figure.name, panel) for panel, picture in figure.draw(data).items()}
            rows = figure.table(data) if figure.table else None
        return Drawn(figure, data, pictures, rows, tuple(figure.claims(data)))
    except Exception as error:
        if not data.missing:
            raise
        place = traceback.extract_tb(error.__traceback__)[-1]
        return Drawn(figure, data, problem=f"{data.missing} runs are missing ({type(error).__name__}, {place.name})")


def _saved(picture: Any, folder: Path, name: str, panel: str) -> Path:
    """Write a picture in all FORMATS; return the path of its SVG."""
    folder.mkdir(parents=True, exist_ok=True)
    stem = f"{name}-{slug(panel)}" if panel else name
    for kind in FORMATS:
        settings = {"metadata": {"Date": None}} if kind == "svg" else {}
        picture.savefig(folder / f"{stem}.{kind}", **settings)
    return folder / f"{stem}.svg"
