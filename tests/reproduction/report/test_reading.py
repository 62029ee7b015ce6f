"""The reports as a reviewer reads them: the paper's numbers, contents, pictures of claims."""

import re
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pytest
from click.testing import CliRunner

from fattree.policies import POLICIES
from ofan import cli
from reproduction.figures.beyond import overview
from reproduction.report.contents import EDITIONS, FIGURES, PAPER, figure
from reproduction.report.figure import VARIANTS, Data
from reproduction.report.stored import MadeWith, stored
from reproduction.report.style import BUFFER_PACKETS, STYLE, buffer_line, panel

DATA = Path("docs/report/data")


def kept(folder: str, name: str) -> Data:
    data = Path(folder) / "data"
    return stored([figure(name)], MadeWith.read(data), data)[name]


def drawn(folder: str, name: str) -> dict[str, Any]:
    with mpl.rc_context(STYLE):
        return dict(figure(name).draw(kept(folder, name)))


def test_figures_have_the_papers_numbers_in_its_order() -> None:
    numbers = [re.match(r"Figure (\d+) \(", figure(name).paper) for name in FIGURES]
    assert [int(match[1]) for match in numbers if match] == list(range(1, 20))


@pytest.mark.parametrize("name", FIGURES)
def test_a_heading_begins_with_what_the_paper_calls_it(name: str) -> None:
    first = figure(name).number.split()[0]
    kinds = {"Figure", "Tables", "Section", "Sections", "Theorem", "Theorems", "Invariant"}
    assert first in kinds | {"Appendix", "Beyond"}


def test_the_page_has_contents_with_verdicts_and_links_to_the_paper(tmp_path: Path) -> None:
    arguments = ["report", "--data", str(DATA), "--figure", "baseline", "--figure", "contenders"]
    done = CliRunner().invoke(cli, [*arguments, "--output", str(tmp_path)])
    assert done.exit_code == 0, done.output
    page = (tmp_path / "index.html").read_text(encoding="utf-8")
    contents = page[page.index("<nav") : page.index("</nav>")]
    assert "<details" not in contents
    assert contents.index("Tables 1 to 3: The load") < contents.index("Figure 1 (baseline): No f")
    assert '<a class="badge holds" href="#C02">C02 holds</a>' in contents
    heading = page[page.index('<h2 id="baseline">') :].partition("</h2>")[0]
    assert heading.endswith(f'href="{PAPER}">Figure 1 (baseline), section 5.1</a>: No failures')

    cards = {card[:3]: card.partition("</article>")[0] for card in page.split('<article id="')}
    pictures = [re.findall(r'href="#(picture-[^"]+)"', cards[n]) for n in ("C02", "C03", "C04")]
    assert len({picture for (picture,) in pictures}) == 3


def test_the_second_report_has_contents_without_the_papers_numbers() -> None:
    assert not EDITIONS["beyond"].is_numbered
    assert EDITIONS["paper"].is_numbered


def test_the_legend_of_growth_has_load_balancers_alone() -> None:
    picture = drawn("docs/report", "growth")[""]
    labels = {variant.label for variant in VARIANTS.values()}
    labels |= {policy.label for policy in POLICIES.values()}
    (legend,) = picture.legends
    assert {text.get_text() for text in legend.get_texts()} <= labels

    assert [axes.get_ylabel() for axes in picture.axes] == ["", "", ""]
    assert len({axes.get_xlim() for axes in picture.axes}) == 1
    for axes in picture.axes[1:]:
        assert "packets" in axes.get_title(loc="left")
        assert BUFFER_PACKETS in [line.get_ydata()[0] for line in axes.lines]


@pytest.mark.parametrize(("top", "lines"), [(20, 0), (95, 0), (100, 1), (1000, 1)])
def test_the_buffer_is_marked_where_queues_come_near_to_it(top: float, lines: int) -> None:
    _, axes = panel()
    axes.set_ylim(0, top)
    buffer_line(axes)
    assert len(axes.lines) == len(axes.texts) == lines
    assert all(text.xy[1] < axes.get_ylim()[1] for text in axes.texts)


def test_the_overview_names_its_groups_and_shades_the_half_of_ofan() -> None:
    picture = drawn("docs/beyond", "overview")[""]
    (axes,) = picture.axes
    assert axes.get_xlabel().endswith("in % of the bound; right of 0 Ofan is faster")
    assert {text.get_text() for text in axes.texts} == set(overview.GROUPS.values())
    (shade,) = axes.patches
    assert (shade.get_x(), shade.get_x() + shade.get_width()) == (0, axes.get_xlim()[1])
    # No row lies on a heading.
    rows = {round(tick) for tick in axes.get_yticks()}
    assert not rows & {round(text.xy[1]) for text in axes.texts}
