"""Opens the page of a report in a real headless Chromium."""

import re
import shutil
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

import pytest

PHONE = {"width": 390, "height": 844, "deviceScaleFactor": 2, "mobile": True}


def skip_without_browser() -> None:
    """Skips the test where there is no Chromium, or no Selenium."""
    pytest.importorskip("selenium.webdriver")
    if shutil.which("chromium") is None or shutil.which("chromedriver") is None:
        pytest.skip("needs Debian's packages chromium and chromium-driver")


@contextmanager
def opened(address: str, *arguments: str) -> Iterator:
    """Yield a browser, as Selenium controls it, that shows a page."""
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", *arguments):
        options.add_argument(argument)
    browser = webdriver.Chrome(options, webdriver.ChromeService(shutil.which("chromedriver")))
    try:
        browser.get(address)
        yield browser
    finally:
        browser.quit()


@contextmanager
def shown_as(browser, screen: dict, scheme: str = "light") -> Iterator[None]:
    """Let the browser have a screen, such as PHONE, and a light or dark color scheme."""
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
    browser.execute_cdp_cmd(
        "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    )
    try:
        yield
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def on_a_phone(browser, scheme: str = "light") -> AbstractContextManager[None]:
    """Let the browser be a phone's, in a light or dark color scheme."""
    return shown_as(browser, PHONE, scheme)


def assert_legible(browser, scheme: str) -> None:
    """Check that dark letters stand on light paper, or light ones on dark paper."""
    colors = browser.execute_script(
        "const style = getComputedStyle(document.body); return [style.color, style.backgroundColor]"
    )
    ink, paper = (sum(int(part) for part in re.findall(r"\d+", color)[:3]) for color in colors)
    assert (ink < paper) == (scheme == "light") and abs(ink - paper) > 400


def overflowing_elements(browser) -> list[str]:
    """Return what stands to the right of the window, except inside of what can be scrolled."""
    width = browser.execute_script("return window.innerWidth")
    elements = browser.execute_script(
        "return [...document.querySelectorAll('body *')].filter(e => !e.closest('.scroll')"
        " && e.getBoundingClientRect().right > window.innerWidth + 1).map(e => e.outerHTML.slice(0, 100))"
    )
    if browser.execute_script("return document.documentElement.scrollWidth") > width:
        elements.append("the page itself")
    return elements
