"""Opens the page of a report in a real headless Chromium."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

PHONE = {"width": 390, "height": 844, "deviceScaleFactor": 2, "mobile": True}


def skip_without_browser() -> None:
    """Skips the test where there is no Chromium, or no Selenium."""
    pytest.importorskip("selenium.webdriver")
    if shutil.which("chromium") is None or shutil.which("chromedriver") is None:
        pytest.skip("needs Debian's packages chromium and chromium-driver")


@contextmanager
def opened(page: Path) -> Iterator:
    """Yields a browser, as Selenium controls it, that shows a page."""
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    browser = webdriver.Chrome(options, webdriver.ChromeService(shutil.which("chromedriver")))
    try:
        browser.get(page.as_uri())
        yield browser
    finally:
        browser.quit()


def what_overflows(browser) -> list[str]:
    """What stands to the right of the window, except inside of what can be scrolled."""
    width = browser.execute_script("return window.innerWidth")
    found = browser.execute_script(
        "return [...document.querySelectorAll('body *')].filter(e => !e.closest('.scroll')"
        " && e.getBoundingClientRect().right > window.innerWidth + 1).map(e => e.outerHTML.slice(0, 100))"
    )
    if browser.execute_script("return document.documentElement.scrollWidth") > width:
        found.append("the page itself")
    return found
