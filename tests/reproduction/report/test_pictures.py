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
        (first_text, second_text)
        for (first_text, first_box), (second_text, second_box) in combinations(boxes, 2)
        if min(first_box.x1, second_box.x1) - max(first_box.x0, second_box.x0) > SLACK
        and min(first_box.y1, second_box.y1) - max(first_box.y0, second_box.y0) > SLACK
    ]


@pytest.mark.slow
def test_no_text_of_a_picture_lies_on_another(kept: dict[str, Data]) -> None:
    overlaps = {}
    with mpl.rc_context(STYLE):
        for name, data in kept.items():
            for panel, picture in figure(name).draw(data).items():
                overlaps[name, panel] = touching(picture)

    assert len(overlaps) > 15
    assert not {key: texts for key, texts in overlaps.items() if texts}
