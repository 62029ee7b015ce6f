"""The documentation's site: it builds, and no page of it has a link that leads nowhere."""

import os
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urljoin, urlsplit

import pytest

import ofan
from tests.browser import browser, needs_browser  # noqa: F401

ROOT = Path(ofan.__file__).parent
TARGETS = {"a": "href", "link": "href", "script": "src", "img": "src", "source": "src"}


class Page(HTMLParser):
    """The anchors of a page, and its links."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.places: set[str] = set()
        self.targets: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an element's names and its link."""
        attributes = dict(attrs)
        self.places |= {
            anchor for anchor in (attributes.get("id"), attributes.get("name")) if anchor
        }
        if target := attributes.get(TARGETS.get(tag, "")):
            self.targets.append(target)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("mkdocs", reason="mkdocs is not installed (the extra docs)")
    pytest.importorskip("mkdocstrings", reason="mkdocstrings is not installed (the extra docs)")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "-q", "-d", str(folder)]
    quiet = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=quiet, capture_output=True, text=True)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")
    return folder


def test_every_page_of_ours_is_a_page_of_the_site(site: Path) -> None:
    expected = {path.with_suffix(".html").name for path in (ROOT / "docs").glob("*.md")}
    assert expected <= {path.name for path in site.glob("*.html")}
    assert "Simulate a scenario" in (site / "api.html").read_text(encoding="utf-8")


def pages_of(site: Path) -> list[Path]:
    # The page for missing pages has links to the root of a server.
    return sorted(set(site.rglob("*.html")) - {site / "404.html"})


def test_no_link_leads_nowhere(site: Path) -> None:
    pages = {path: Page(path) for path in pages_of(site)}
    links = [
        (path, Path(unquote(url.path)), unquote(url.fragment))
        for path, page in pages.items()
        for url in (urlsplit(urljoin(path.as_uri(), target)) for target in page.targets)
        if url.scheme == "file"
    ]

    broken = [
        (page.name, str(target), anchor)
        for page, target, anchor in links
        if not target.is_file()
        or (anchor and target in pages and anchor not in pages[target].places)
    ]
    assert len(links) > 500
    assert broken == []


@pytest.mark.slow
@needs_browser
def test_a_browser_finds_all_that_pages_want(site: Path, browser: Any) -> None:  # noqa: F811
    for page in pages_of(site):
        browser.get(page.as_uri())
        assert browser.title, page

    severe = [line for line in browser.get_log("browser") if line["level"] == "SEVERE"]
    assert [line["message"] for line in severe if "file://" in line["message"]] == []


@pytest.mark.slow
@needs_browser
def test_search_finds_pages_from_a_folder(site: Path, browser: Any) -> None:  # noqa: F811
    browser.get((site / "index.html").as_uri() + "?q=flowlets")

    def found(_: object) -> list[str]:
        links = browser.find_elements("css selector", ".md-search-result__link")
        return [link.get_attribute("href") for link in links]

    from selenium.webdriver.support.wait import WebDriverWait

    links = WebDriverWait(browser, 60).until(found)
    assert any("your-own-load-balancer.html" in link for link in links)


@pytest.mark.slow
@needs_browser
def test_the_site_follows_the_system_until_the_reader_chooses(site: Path, browser: Any) -> None:  # noqa: F811
    from selenium.webdriver.support.wait import WebDriverWait

    def wait_for(scheme: str) -> None:
        shown = "return document.body.getAttribute('data-md-color-scheme')"
        WebDriverWait(browser, 60).until(lambda _: browser.execute_script(shown) == scheme, scheme)

    def system_turns(scheme: str) -> None:
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})

    system_turns("light")
    browser.get((site / "live.html").as_uri())
    wait_for("default")
    system_turns("dark")
    wait_for("slate")
    assert browser.execute_script(
        "return getComputedStyle(document.querySelector('.md-content img')).backgroundColor"
    ) == ("rgb(255, 255, 255)")

    # A page that was seen in light does not keep the next page light.
    browser.get((site / "index.html").as_uri())
    wait_for("slate")
    browser.find_element("css selector", "label[for='__palette_1']:not([hidden])").click()
    wait_for("default")
    browser.get((site / "live.html").as_uri())
    wait_for("default")
