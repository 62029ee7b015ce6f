"""The page in headless Chromium: clicks are shown, with mouse and keyboard, in light and dark."""

from collections.abc import Callable
from typing import Any

import pytest

from fattree.experiment.model import Collective, Fabric, FailureEvent, Failures, Scenario
from tests.browser import browser, needs_browser  # noqa: F401
from tests.emulation.live.conftest import Served

pytestmark = [pytest.mark.slow, needs_browser]

LINK, OTHERS = "agg2_0-core0_0", ("agg2_0-core0_1", "agg2_1-core1_0", "agg2_1-core1_1")
RUN = Scenario(
    fabric=Fabric(k=4),
    collective=Collective(message_bytes=1 << 20),
    failures=Failures(convergence_rtt=0.1),
)
LONG = RUN.model_copy(update={"collective": Collective(message_bytes=1 << 27)})
SECONDS = 60
RED = r"rgb\(209, 61, 10\)"
BLUES = (
    r"rgb\((138, 147, 159|109, 133, 164|82, 118, 166|55, 103, 164"
    r"|27, 88, 158|6, 73, 142|0, 59, 122|1, 47, 97)\)"
)
DARK = {"features": [{"name": "prefers-color-scheme", "value": "dark"}]}


class Page:
    """The page in a browser."""

    def __init__(self, driver: Any, served: Served) -> None:
        self.driver, self.served = driver, served
        driver.get(served.url)
        self.wait("document.querySelectorAll('.link').length === 32 && latest !== null")

    def run(self, script: str) -> Any:
        return self.driver.execute_script(f"return {script}")

    def wait(self, condition: str) -> None:
        from selenium.webdriver.support.ui import WebDriverWait

        WebDriverWait(self.driver, SECONDS, 0.1).until(lambda _: self.run(condition), condition)

    def point(self, link: str, share: float = 0.3, *, click: bool = False) -> None:
        """Move the mouse onto a link, a share of its length from its lower end; press it there."""
        from selenium.webdriver.common.action_chains import ActionChains

        position = self.run(
            f"(() => {{ const path = document.querySelector('[data-link=\"{link}\"] .hit');"
            f" const point = path.getPointAtLength(path.getTotalLength() * {share})"
            ".matrixTransform(path.getScreenCTM());"
            " return [Math.round(point.x), Math.round(point.y)]; }})()".replace("}}", "}")
        )
        actions = ActionChains(self.driver)
        actions.w3c_actions.pointer_action.move_to_location(*position)  # type: ignore[no-untyped-call]
        if click:
            actions.w3c_actions.pointer_action.click()

        actions.perform()

    def resize(self, width: int, is_phone: bool = False) -> None:
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": is_phone}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        self.wait(f"innerWidth === {width}")

    def fail(self, *links: str) -> None:
        """Fail links as a click does, wherever the picture has them."""
        for link in links:
            find = f"document.querySelector('[data-link=\"{link}\"]')"
            self.driver.execute_script(
                f"{find}.dispatchEvent(new MouseEvent('click', {{ bubbles: true }}))"
            )
            self.wait(f"{find}.classList.contains('down')")

    def load(self, *links: str) -> float:
        return sum(
            float(self.run(f"document.querySelector('[data-link=\"{link}\"]').dataset.load"))
            for link in links
        )

    def wait_for_colour(self, link: str, colours: str) -> None:
        """Wait until a link's colour matches a regular expression."""
        stroke = (
            f"getComputedStyle(document.querySelector('[data-link=\"{link}\"] .strand')).stroke"
        )
        self.wait(f"/^({colours})$/.test({stroke})")


@pytest.fixture
def page(browser: Any, serve: Callable[..., Served]) -> Page:  # noqa: F811
    return Page(browser, serve(RUN, 0.7e-6))


def test_a_clicked_link_turns_red_and_its_traffic_moves_to_the_others(page: Page) -> None:
    page.wait(
        "latest.time_ps > 4e6 && "
        f"Number(document.querySelector('[data-link=\"{LINK}\"]').dataset.load) > 0.1"
    )
    before = page.load(*OTHERS)
    page.point(LINK, click=True)
    page.wait(f"document.querySelector('[data-link=\"{LINK}\"]').classList.contains('down')")
    page.wait_for_colour(LINK, RED)
    page.wait("latest.changes.length === 1 && latest.changes[0].installed_ps !== null")
    installed = page.run("latest.time_ps")
    page.wait(f"latest.time_ps > {installed} + 1.5e6")
    assert page.load(*OTHERS) > 1.1 * before
    assert page.load(LINK) < 0.1
    assert "agg2_0-core0_0 failed" in page.run("document.querySelector('#change-list').textContent")
    page.point(LINK, click=True)
    page.wait(f"!document.querySelector('[data-link=\"{LINK}\"]').classList.contains('down')")
    page.wait_for_colour(LINK, BLUES)
    assert page.driver.get_log("browser") == []


def test_the_nearest_link_is_meant_and_is_named_before_it_is_clicked(page: Page) -> None:
    # Half way up, where links to all cores cross it, and agg3_0-core0_0 lies on top of it.
    crossed = "agg1_1-core1_0"
    page.point(crossed, 0.5)
    page.wait("!$('aim').hidden")
    assert page.run("$('aim').querySelector('b').textContent") == crossed
    marked = "document.querySelector('#tree .mark').getAttribute('d')"
    hit = f"document.querySelector('[data-link=\"{crossed}\"] .hit').getAttribute('d')"
    assert page.run(f"{marked} === {hit}")
    page.point(crossed, 0.5, click=True)
    page.wait("document.querySelectorAll('.link.down').length === 1")
    assert page.run("document.querySelector('.link.down').dataset.link") == crossed
    page.wait("$('aim').textContent.endsWith('click: mend it')")


def test_what_the_file_does_is_told_apart_from_clicks(
    browser: Any,  # noqa: F811
    serve: Callable[..., Served],
) -> None:
    event = FailureEvent(link="agg0_0-core0_0", down_ns=2000)
    page = Page(browser, serve(RUN.model_copy(update={"failures": Failures(events=(event,))})))
    assert page.run("$('planned').textContent") == (
        "Events of the experiment's file: agg0_0-core0_0 failed at 2.00 µs."
    )
    page.run("send('pace', { factor: 10, paused: false })")
    page.wait("latest.changes.length === 1")
    page.fail(LINK)
    page.wait("latest.changes.length === 2")
    heads = "[...document.querySelectorAll('#change-list .head span:first-child')]"
    assert page.run(f"{heads}.map((each) => each.textContent)") == [
        f"{LINK} failed",
        "agg0_0-core0_0 failed, by the file",
    ]


def test_the_table_slows_a_link_and_gives_its_rate_back(page: Page) -> None:
    page.run("$('table').open = true")
    row = f"rows[layout.links.findIndex((link) => link.name === '{LINK}')]"
    page.wait(f"{row}.pace.textContent === 'slow'")
    page.run(f"{row}.pace.click()")
    page.wait(f"{row}.cells[1].textContent === 'at 25 %'")
    page.wait(f"document.querySelector('[data-link=\"{LINK}\"]').classList.contains('slow')")
    page.wait(f"$('change-list').textContent.includes('{LINK} at 25 % of its rate')")
    page.run(f"{row}.pace.click()")
    page.wait(f"{row}.cells[1].textContent === 'up'")


def test_everything_can_be_done_with_the_keyboard(page: Page) -> None:
    from selenium.webdriver.common.keys import Keys

    page.driver.execute_script("document.querySelector('.link').focus()")
    active = page.driver.switch_to.active_element
    assert page.run("document.querySelectorAll('.link[tabindex=\"0\"]').length") == 1
    active.send_keys(Keys.ARROW_RIGHT)
    page.driver.switch_to.active_element.send_keys(Keys.ARROW_UP)
    page.driver.switch_to.active_element.send_keys(Keys.ENTER)
    page.wait("document.querySelectorAll('.link.down').length === 1")
    assert page.run("document.querySelector('.link.down').dataset.link") == "agg0_0-core0_1"
    assert (
        page.run("document.activeElement.getAttribute('aria-label')")
        == "agg0_0-core0_1 has failed: mend it"
    )
    assert page.run("document.querySelector('#message').textContent") == "agg0_0-core0_1 has failed"


def test_a_run_can_be_paused_and_begun_again_with_another_load_balancer(page: Page) -> None:
    page.driver.find_element("id", "pause").click()
    page.wait("latest.paused")
    assert page.run("[$('state').textContent, $('pause').className]") == ["paused", "next"]
    stood = page.run("latest.time_ps")
    page.wait("document.querySelector('#pause').textContent === 'Go on'")
    assert page.run("latest.time_ps") == stood
    page.driver.execute_script(
        "$('policy').value = 'flow'; $('policy').dispatchEvent(new Event('change'))"
    )
    said = "[$('message').textContent, $('start').textContent, $('start').className]"
    assert page.run(said) == ["this run is still one of Ofan", "Start with Flow", "next"]
    # A user who starts again wants to see a run, and not a run that stands.
    page.driver.find_element("id", "start").click()
    page.wait("latest.policy === 'flow' && latest.state === 'running' && latest.time_ps > 1e5")
    page.wait("$('start').className === '' && $('start').textContent === 'Start again'")


def test_who_opens_a_run_sees_its_pause_and_its_speed(page: Page) -> None:
    page.run("send('pace', { factor: 0.25, paused: true })")
    page.wait("latest.paused")
    page.driver.get(page.served.url)
    page.wait("latest !== null")
    assert page.run("[$('state').textContent, $('pause').textContent, $('speed').value]") == [
        "paused",
        "Go on",
        "0.25",
    ]


def test_a_machine_that_cannot_keep_up_is_told(
    browser: Any,  # noqa: F811
    serve: Callable[..., Served],
) -> None:
    # A run of 1.4 ms that takes seconds of computing, at 10 ms a second.
    page = Page(browser, serve(LONG, 1e-4))
    assert page.run("$('strain').textContent") == ""
    page.run("send('pace', { factor: 100, paused: false })")
    page.wait("$('strain').textContent.startsWith('this machine cannot keep up: ')")
    page.wait("latest.state === 'complete' && $('strain').textContent === ''")


def test_the_cross_of_a_failed_link_lies_above_all_others(page: Page) -> None:
    page.fail("edge2_0-agg2_1", "edge2_1-agg2_0", "agg0_0-core0_1")
    # An element above a cross takes the mouse, if crosses are let to.
    page.driver.execute_script(
        "document.querySelectorAll('.cross').forEach((cross) => {"
        " cross.style.pointerEvents = 'stroke'; })"
    )
    on_top = page.run(
        "[...document.querySelectorAll('#tree .cross.down')].map((cross) => {"
        " cross.scrollIntoView({ block: 'center' });"
        " const box = cross.getBoundingClientRect();"
        " return document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2)"
        " === cross; })"
    )
    assert on_top == [True] * 3
    places = page.run(
        "[...document.querySelectorAll('#tree .cross.down')].map(c => c.getBoundingClientRect().x)"
    )
    assert len(set(map(round, places))) == 3


def test_the_chosen_link_has_a_ring_on_both_sides_of_its_strands(page: Page) -> None:
    from selenium.webdriver.common.keys import Keys

    page.driver.execute_script("document.querySelector('.link').focus()")
    page.driver.switch_to.active_element.send_keys(Keys.ARROW_RIGHT)
    style = "getComputedStyle(document.activeElement.querySelector('.{}'))"
    ring, hit = (
        page.run(f"[{style.format(name)}.stroke, parseFloat({style.format(name)}.strokeWidth)]")
        for name in ("ring", "hit")
    )
    assert (ring[0], hit[0]) == ("rgb(184, 71, 15)", "rgb(255, 255, 255)")
    assert (ring[1] - hit[1]) / 2 >= 3


@pytest.mark.parametrize("width", [400, 1280, 1920])
def test_long_numbers_stay_in_their_column(page: Page, width: int) -> None:
    page.resize(width, is_phone=width < 600)
    ends = page.run(
        "(() => { latest.tiers.forEach((tier) => { tier.queue = tier.longest_queue = 12345.6; });"
        " updateTiers(); const own = $('tiers').getBoundingClientRect();"
        " return [...document.querySelectorAll('.tier output')].map((each) => {"
        " const range = document.createRange(); range.selectNodeContents(each);"
        " const box = range.getBoundingClientRect();"
        " return [box.left - each.getBoundingClientRect().left, own.right - box.right]; }); })()"
    )
    assert len(ends) == 5
    assert all(left_gap >= -0.5 and right_gap >= -0.5 for left_gap, right_gap in ends)


def test_the_table_fits_a_telephone_and_says_nothing_of_a_failed_links_load(page: Page) -> None:
    page.fail(LINK)
    page.resize(400, is_phone=True)
    page.run("$('table').open = true")
    row = f"rows[layout.links.findIndex((link) => link.name === '{LINK}')]"
    page.wait(f"{row}.cells[1].textContent === 'failed'")
    assert page.run(f"[{row}.cells[2].textContent, {row}.cells[3].textContent]") == ["–", "–"]
    wide = "document.querySelector('#table .wide')"
    assert page.run(f"{wide}.scrollWidth - {wide}.clientWidth") == 0
    assert page.run(f"{row}.row.offsetHeight") < 60
    # Long numbers and a scroll bar leave room for the last column.
    page.resize(385)
    page.run(
        "latest.links.forEach((link) => link.splice(1, 5, 1, 1, 192.3, 192.3, 1234))"
        " || latest.links.forEach(updateRow)"
    )
    assert page.run(f"{wide}.scrollWidth - {wide}.clientWidth") == 0


def test_dark_and_narrow_windows_show_everything(page: Page) -> None:
    page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", DARK)
    page.resize(420)
    assert page.run("getComputedStyle(document.body).backgroundColor") == "rgb(17, 22, 28)"
    assert page.run("document.documentElement.scrollWidth") <= 420


def test_a_ring_shows_its_phases_as_they_go(browser: Any, serve: Callable[..., Served]) -> None:  # noqa: F811
    ring = Scenario(
        fabric=Fabric(k=4),
        collective=Collective(matrix="ring", message_bytes=16 * 4096, steps=4),
        failures=Failures(events=(FailureEvent(link="agg0_0-core0_0", down_ns=0),)),
    )
    page = Page(browser, serve(ring, 4e-6))
    page.wait("latest.state === 'complete'")
    phases = page.run(
        "[...document.querySelectorAll('#phase-list li')].map((item) => item.textContent)"
    )
    assert [text[:12] for text in phases] == [
        "Phase 4 of 4",
        "Phase 3 of 4",
        "Phase 2 of 4",
        "Phase 1 of 4",
    ]
    assert all("complete in" in text for text in phases)
    assert page.run("document.querySelectorAll('.link.down').length") == 1


def test_on_a_telephone_pods_fold_and_the_chosen_one_is_whole(page: Page) -> None:
    page.resize(400, is_phone=True)
    page.wait("document.querySelectorAll('.pod[aria-expanded=true]').length === 1")
    assert page.run("document.documentElement.scrollWidth") == 400
    # Four links between edges and aggs, four to the cores' band.
    shown = "[...document.querySelectorAll('.link:not(.folded)')].map(l => l.dataset.link)"
    assert len(page.run(shown)) == 8
    # Each link to a core ends below that core's name.
    names = page.run("[...document.querySelectorAll('.band text')].map((text) => text.textContent)")
    assert names == ["core0_0", "core0_1", "core1_0", "core1_1"]
    inside = (
        "(() => { const [band, ...texts] = document.querySelector('.band').children;"
        " const boxes = texts.map((text) => text.getBBox()), own = band.getBBox();"
        " return boxes.every((box, at) => box.x > (at ? boxes[at - 1].x + boxes[at - 1].width"
        " : own.x) && box.x + box.width < own.x + own.width); })()"
    )
    assert page.run(inside)
    page.run("document.querySelectorAll('.pod')[2].click()")
    assert {link.partition("_")[0] for link in page.run(shown)} == {"edge2", "agg2"}
    assert page.run("document.querySelector('.scale').textContent").startswith("each line: 0 to ")
