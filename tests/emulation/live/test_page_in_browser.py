"""The page in headless Chromium: what is clicked is seen, with the mouse and with the keyboard, in
light and in dark.
"""

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
SECONDS = 60
RED = r"rgb\(209, 61, 10\)"
BLUES = (
    r"rgb\((211, 218, 227|179, 199, 223|140, 176, 217|100, 151, 207"
    r"|63, 124, 191|36, 97, 166|18, 71, 133|6, 43, 92)\)"
)


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

    def click(self, link: str) -> None:
        """Press the mouse on the middle of a link's upper half, where no other element lies."""
        from selenium.webdriver.common.action_chains import ActionChains

        place = self.run(
            f"(() => {{ const path = document.querySelector('[data-link=\"{link}\"] .hit');"
            " const point = path.getPointAtLength(path.getTotalLength() * 0.3)"
            ".matrixTransform(path.getScreenCTM());"
            " return [Math.round(point.x), Math.round(point.y)]; }})()".replace("}}", "}")
        )
        actions = ActionChains(self.driver)
        actions.w3c_actions.pointer_action.move_to_location(*place)  # type: ignore[no-untyped-call]
        actions.w3c_actions.pointer_action.click()
        actions.perform()

    def load(self, *links: str) -> float:
        return sum(
            float(self.run(f"document.querySelector('[data-link=\"{link}\"]').dataset.load"))
            for link in links
        )

    def wait_for_colour(self, link: str, colours: str) -> None:
        """Wait until a link has one of some colours, given as a regular expression."""
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
    page.click(LINK)
    page.wait(f"document.querySelector('[data-link=\"{LINK}\"]').classList.contains('down')")
    page.wait_for_colour(LINK, RED)
    page.wait("latest.changes.length === 1 && latest.changes[0].installed_ps !== null")
    installed = page.run("latest.time_ps")
    page.wait(f"latest.time_ps > {installed} + 1.5e6")
    assert page.load(*OTHERS) > 1.1 * before
    assert page.load(LINK) < 0.1
    assert "agg2_0-core0_0 failed" in page.run("document.querySelector('#change-list').textContent")
    page.click(LINK)
    page.wait(f"!document.querySelector('[data-link=\"{LINK}\"]').classList.contains('down')")
    page.wait_for_colour(LINK, BLUES)
    assert page.driver.get_log("browser") == []


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
    stood = page.run("latest.time_ps")
    page.wait("document.querySelector('#pause').textContent === 'Go on'")
    assert page.run("latest.time_ps") == stood
    page.driver.find_element("id", "pause").click()
    page.driver.execute_script("document.querySelector('#policy').value = 'flow'")
    page.driver.find_element("id", "start").click()
    page.wait("latest.policy === 'flow' && latest.state === 'running'")


def test_dark_and_narrow_windows_show_everything(page: Page) -> None:
    dark = {"features": [{"name": "prefers-color-scheme", "value": "dark"}]}
    page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", dark)
    page.driver.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": 420, "height": 900, "deviceScaleFactor": 1, "mobile": False},
    )
    page.wait("innerWidth === 420")
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
    page.driver.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": 400, "height": 900, "deviceScaleFactor": 1, "mobile": True},
    )
    page.wait("document.querySelectorAll('.pod[aria-expanded=true]').length === 1")
    assert page.run("document.documentElement.scrollWidth") == 400
    # Four links between edges and aggs, four to the cores' band.
    shown = "[...document.querySelectorAll('.link:not(.folded)')].map(l => l.dataset.link)"
    assert len(page.run(shown)) == 8
    page.run("document.querySelectorAll('.pod')[2].click()")
    assert {link.partition("_")[0] for link in page.run(shown)} == {"edge2", "agg2"}
    assert page.run("document.querySelector('.scale').textContent").startswith("each line: 0 to ")
