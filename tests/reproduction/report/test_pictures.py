"""Pictures of the kept reports, drawn again: no text lies on another."""

from itertools import combinations
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text

from reproduction.report.contents import EDITIONS, figure
from reproduction.report.figure import Data
from reproduction.report.stored import MadeWith, stored
from reproduction.report.style import STYLE

KEPT = [Path("docs/beyond/data"), Path("docs/report/data")]
# In pixels: outlines of letters are a little smaller than the boxes that are compared.
SLACK = 1


@pytest.fixture(params=KEPT, ids=str)
def kept(request: pytest.FixtureRequest) -> dict[str, Data]:
    """Return a kept report's data by figure."""
    folder = request.param
    made = MadeWith.read(folder)
    names = [path.stem for path in folder.glob("*.parquet")]
    figures = [figure(name) for name in EDITIONS[made.edition].figures if name in names]
    return stored(figures, made, folder)


def touching(picture: Any) -> list[tuple[str, str]]:
    """Return the level or upright texts of a picture that lie on each other."""
    renderer = FigureCanvasAgg(picture).get_renderer()
    picture.draw_without_rendering()
    boxes = [
        (text.get_text(), text.get_window_extent(renderer))
        for text in picture.findobj(Text)
        # Boxes of slanted names overlap, the names do not.
        if text.get_visible() and text.get_text().strip() and text.get_rotation() in (0, 90)
    ]
    return [
        (left, right)
        for (left, one), (right, two) in combinations(boxes, 2)
        if min(one.x1, two.x1) - max(one.x0, two.x0) > SLACK
        and min(one.y1, two.y1) - max(one.y0, two.y0) > SLACK
    ]


@pytest.mark.slow
def test_no_text_of_a_picture_lies_on_another(kept: dict[str, Data]) -> None:
    found = {}
    with mpl.rc_context(STYLE):
        for name, data in kept.items():
            for panel, picture in figure(name).draw(data).items():
                found[name, panel] = touching(picture)

    assert len(found) > 15
    assert not {place: texts for place, texts in found.items() if texts}
