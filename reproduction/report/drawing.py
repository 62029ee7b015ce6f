"""Draw figures to PNG and SVG files, in one style.

A figure with runs missing shows as much as it can and names its problem.
"""

import io
import traceback
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import matplotlib as mpl
import polars as pl

from reproduction.report.claims import Claim, sure
from reproduction.report.figure import Data, Figure, Verdict, slug
from reproduction.report.style import STYLE
from reproduction.report.whole_file import replace_file

# SVG goes into the page, PNG is for a single picture in another text.
FORMATS = ("png", "svg")


@dataclass(frozen=True, slots=True)
class Drawn:
    """A figure's part of the page, and in `problem` why some of it is missing."""

    figure: Figure
    data: Data
    pictures: dict[str, Path] = field(default_factory=dict)
    rows: pl.DataFrame | None = None
    verdicts: tuple[Verdict, ...] = ()
    problem: str = ""


def draw(figure: Figure, data: Data, folder: Path, claims: Mapping[str, Claim]) -> Drawn:
    """Draw a figure into `folder` and decide which of `claims` it can.

    Errors are a line on the page only where runs are missing.
    """
    drawn = Drawn(figure, data)
    verdicts = list[Verdict]()
    if data.missing and not data.records:
        return replace(drawn, problem="none of its runs is finished")

    try:
        with mpl.rc_context(STYLE):
            drawn = replace(
                drawn,
                pictures=_pictures(figure, data, folder),
                rows=figure.table(data) if figure.table else None,
            )

        for verdict in figure.claims(data):
            # In turn: verdicts before an error count.
            verdicts.append(sure(verdict, claims, data.preset.level == "quick"))

    # Figures need not be written for holes in their data. With all runs there, an error is a fault
    # of ours and must not become a line on a page.
    except Exception as error:
        if not data.missing:
            raise

        frame = traceback.extract_tb(error.__traceback__)[-1]
        drawn = replace(
            drawn,
            problem=(
                f"{data.missing} of its runs are missing ({type(error).__name__} in {frame.name})"
            ),
        )

    return replace(drawn, verdicts=tuple(verdicts))


def _pictures(figure: Figure, data: Data, folder: Path) -> dict[str, Path]:
    """Draw all panels; return the paths of their SVG files."""
    folder.mkdir(parents=True, exist_ok=True)
    return {
        panel: _saved(picture, folder, figure.name, panel)
        for panel, picture in figure.draw(data).items()
    }


def _saved(picture: Any, folder: Path, name: str, panel: str) -> Path:
    """Write a picture in all FORMATS; return the path of its SVG."""
    stem = f"{name}-{slug(panel)}" if panel else name
    for kind in FORMATS:
        # No date inside: the same runs give the same file, and a diff shows the changes.
        settings = {"metadata": {"Date": None}} if kind == "svg" else {}
        content = io.BytesIO()
        picture.savefig(content, format=kind, **settings)
        replace_file(folder / f"{stem}.{kind}", content.getvalue())
        picture.set_layout_engine("none")  # laid out once is enough

    return folder / f"{stem}.svg"
