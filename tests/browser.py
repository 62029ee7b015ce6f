"""A headless Chromium for tests that look at pages; nothing leaves this machine or stays behind.

Use it as a fixture: `from tests.browser import browser  # noqa: F401`.
"""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

BROWSERS, DRIVERS = (
    ("chromium", "chromium-browser", "google-chrome"),
    ("chromedriver", "chromium.chromedriver"),
)
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--window-size=1280,1000",
)


def found(names: tuple[str, ...]) -> str | None:
    """Return the path of the first of some programs that is installed."""
    return next((path for path in map(shutil.which, names) if path), None)


# On whatever costs time before the browser is asked for.
needs_browser = pytest.mark.skipif(
    not (found(BROWSERS) and found(DRIVERS)),
    reason="no Chromium with its driver here (Debian: apt install chromium chromium-driver)",
)


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Any]:
    """Yield a browser with a profile of its own; for tests with the mark `needs_browser`."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    program, driver = found(BROWSERS), found(DRIVERS)
    options = webdriver.ChromeOptions()
    options.binary_location = program
    for flag in (*FLAGS, f"--user-data-dir={tmp_path / 'profile'}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    chrome = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    try:
        yield chrome
    finally:
        chrome.quit()
