"""The documentation's site: it builds, and no page of it has a link that leads nowhere."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

import ofan
from tests.browser import browser, needs_browser  # noqa: F401

ROOT = Path(ofan.__file__).parent
TARGETS = """
return [...document.querySelectorAll('a[href], link[href], script[src], img[src], source[src]')]
    .map(one => one.href || one.src)
"""
IDS = "return [...document.querySelectorAll('[id], a[name]')].map(one => one.id || one.name)"


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
    wanted = {path.with_suffix(".html").name for path in (ROOT / "docs").glob("*.md")}
    assert wanted <= {path.name for path in site.glob("*.html")}
    assert "Simulate a scenario" in (site / "api.html").read_text(encoding="utf-8")


@needs_browser
def test_no_link_leads_nowhere(site: Path, browser: Any) -> None:  # noqa: F811
    ids: dict[Path, set[str]] = {}
    links: list[tuple[Path, Path, str]] = []
    # What is not found has links to the root of a server.
    for page in sorted(set(site.rglob("*.html")) - {site / "404.html"}):
        browser.get(page.as_uri())
        ids[page] = set(browser.execute_script(IDS))
        assert browser.title, page
        links += [
            (page, Path(unquote(url.path)), unquote(url.fragment))
            for url in map(urlsplit, browser.execute_script(TARGETS))
            if url.scheme == "file"
        ]

    broken = [
        (page.name, str(target), anchor)
        for page, target, anchor in links
        if not target.is_file() or (anchor and target in ids and anchor not in ids[target])
    ]
    assert len(links) > 500
    assert broken == []
    severe = [line for line in browser.get_log("browser") if line["level"] == "SEVERE"]
    assert [line["message"] for line in severe if "file://" in line["message"]] == []
