"""The page in a real browser: every link leads somewhere, and no picture is missing."""

from pathlib import Path
from typing import Any, get_args

import pytest
from click.testing import CliRunner

from ofan import cli
from reproduction.report.claims import CLAIMS
from reproduction.report.figure import Outcome
from reproduction.report.plain import PLAIN
from reproduction.report.style import STYLE
from tests.browser import browser as chromium  # noqa: F401
from tests.browser import needs_browser

pytestmark = [pytest.mark.slow, needs_browser]


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    chosen = ("--figure", "timeline", "--figure", "failure_rate", "--figure", "contenders")
    result = CliRunner().invoke(
        cli, ["report", "--quick", *chosen, "--jobs", "1", "--output", str(folder)]
    )
    assert result.exit_code == 0, result.output
    return folder / "index.html"


@pytest.fixture
def browser(chromium: Any, page: Path) -> Any:  # noqa: F811
    """Return the shared browser with the page open."""
    chromium.get(page.as_uri())
    return chromium


def test_no_picture_is_missing(browser: Any) -> None:
    sizes = browser.execute_script(
        "return [...document.images].map(i => [i.complete, i.naturalWidth, i.alt])"
    )
    assert len(sizes) >= 2
    assert all(complete and width > 100 and text for complete, width, text in sizes)


def test_the_contents_lead_to_every_figure(browser: Any) -> None:
    links = browser.find_elements("css selector", "nav a")
    assert len([link for link in links if link.get_attribute("class") == "figure"]) == 3
    for link in links:
        target = link.get_attribute("href").rpartition("#")[2]
        link.click()
        top = browser.execute_script(
            "return document.getElementById(arguments[0]).getBoundingClientRect().top", target
        )
        assert -5 <= top < 1000, target
        assert browser.current_url.endswith(f"#{target}")


def test_every_link_of_the_page_has_a_target(browser: Any) -> None:
    broken = browser.execute_script(
        "return [...document.querySelectorAll('a')].map(a => a.getAttribute('href'))"
        ".filter(h => h.startsWith('#') ? !document.querySelector(h) : !h.includes('arxiv.org/'))"
    )
    assert broken == []


def test_the_contents_are_in_sight_with_the_paper_s_numbers_and_verdicts(browser: Any) -> None:
    rows = [row.text for row in browser.find_elements("css selector", "nav li")]
    assert any(row.startswith("Figure 5 (failure rate): ") for row in rows)
    numbers = {row.text for row in browser.find_elements("css selector", "nav .badge")}
    assert {number.split(" ")[0] for number in numbers} == {"C01", "C07"}
    assert all(number.split(" ", 1)[1] in get_args(Outcome) for number in numbers)


def test_every_claim_has_a_row_with_its_verdict(browser: Any) -> None:
    rows = {number: browser.find_element("id", number).text for number in CLAIMS}
    assert all(any(outcome in text for outcome in get_args(Outcome)) for text in rows.values())


def test_the_page_needs_nothing_from_outside_and_logs_no_error(browser: Any) -> None:
    loaded = browser.execute_script(
        "return performance.getEntriesByType('resource').map(e => e.name.slice(0, 5))"
    )
    assert set(loaded) <= {"data:"}
    assert not [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]


@pytest.mark.parametrize("width", [400, 1280])
def test_text_in_the_cards_pictures_can_be_read(browser: Any, width: int) -> None:
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600},
    )
    # How many pixels a pixel of the print has, of which 4/3 are a point.
    scales = browser.execute_script(
        "return [...document.images].map(i => i.width / i.naturalWidth)"
    )
    assert len(scales) >= 4
    assert all(STYLE["font.size"] * 4 / 3 * scale > 10 for scale in scales)


def test_cards_show_the_figures_own_pictures(browser: Any) -> None:
    cards = browser.execute_script(
        "return [...document.querySelectorAll('a.picture')].map(card => {"
        " const own = document.querySelector(`${card.getAttribute('href')} img`);"
        " return [card.querySelector('img').src === own.src, own.alt]; })"
    )
    assert len(cards) >= 2
    assert all(is_same and text for is_same, text in cards)


def test_pictures_lie_on_a_dim_sheet_in_dark(browser: Any) -> None:
    style = (
        "const own = getComputedStyle(document.images[0]); return [own.filter, own.backgroundColor]"
    )
    assert browser.execute_script(style)[0] == "none"
    dark = {"features": [{"name": "prefers-color-scheme", "value": "dark"}]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", dark)
    assert browser.execute_script(style) == ["brightness(0.85)", "rgb(255, 255, 255)"]


@pytest.mark.parametrize("width", [400, 1400])
def test_nothing_is_wider_than_the_page_and_pictures_use_it(browser: Any, width: int) -> None:
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600},
    )
    assert browser.execute_script("return document.documentElement.scrollWidth") == width
    # A picture is as wide as the page, or as high as a picture may be.
    shares = browser.execute_script(
        "return [...document.querySelectorAll('.pictures')].map(row => {"
        "const boxes = [...row.children].map(f => f.getBoundingClientRect());"
        "return [boxes.reduce((sum, box) => Math.max(sum, box.right), 0) / innerWidth,"
        " Math.max(...boxes.map(box => box.height))]; })"
    )
    assert shares
    assert all(share > 0.85 or height > 500 for share, height in shares)


def test_a_claim_is_a_sentence_and_a_picture_with_its_numbers_folded(browser: Any) -> None:
    card = browser.find_element("id", "C01")
    assert PLAIN["C01"] in card.text
    assert CLAIMS["C01"].criterion not in card.text
    card.find_element("css selector", "summary").click()
    assert CLAIMS["C01"].criterion in card.text
