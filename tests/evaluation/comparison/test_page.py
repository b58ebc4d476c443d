"""The report in a real headless Chromium."""

import re

import pytest

from mt.config import CompareConfig
from mt.evaluation.comparison.command import compare
from tests.browser import assert_legible, on_a_phone, opened, overflowing_elements, shown_as, skip_without_browser


@pytest.fixture(scope="module")
def browser(runs, tmp_path_factory):
    skip_without_browser()
    output = tmp_path_factory.mktemp("page") / "out"
    compare(
        CompareConfig(
            first=[str(runs["transformer-1"]), str(runs["transformer-2"])],
            second=[str(runs["rnn-1"]), str(runs["rnn-2"])],
            output=str(output),
            timed_sentences=0,
            studied_sentences=1,
        )
    )
    with opened((output / "report.html").as_uri()) as browser:
        yield browser


def test_page_loads_nothing_and_logs_nothing(browser):
    assert browser.title == "transformer (2 seeds) against rnn (2 seeds)"
    assert browser.get_log("browser") == []
    loaded = browser.execute_script("return performance.getEntriesByType('resource').map(entry => entry.name)")
    assert [name for name in loaded if not name.startswith("data:")] == []


def test_tables_fit_a_page_of_1100_pixels(browser):
    with shown_as(browser, {"width": 1100, "height": 900, "deviceScaleFactor": 1, "mobile": False}):
        tables = browser.execute_script(
            "return [...document.querySelectorAll('.scroll:has(table)')].map(e => [e.scrollWidth, e.clientWidth])"
        )
    assert len(tables) > 5 and all(width <= visible for width, visible in tables)


def test_images_have_pixels_and_alternative_texts(browser):
    images = browser.execute_script(
        "return [...document.images].map(i => [i.complete, i.naturalWidth, i.naturalHeight, i.alt])"
    )
    assert len(images) >= 6
    for complete, width, height, alternative in images:
        assert complete and width > 100 and height > 100
        assert len(alternative) > 20
    for start in ("Learning curves", "BLEU by length"):
        (alternative,) = [text for *_, text in images if text.startswith(start)]
        assert re.search(r"transformer \(2 seeds\) \d+\.\d.*, rnn \(2 seeds\) \d+\.\d", alternative), alternative


@pytest.mark.parametrize("column", [1, 2])
def test_click_on_heading_sorts_table(browser, column):
    heading = browser.find_elements("css selector", "table.sortable")[-1].find_elements("css selector", "th button")
    orders = []
    for _ in range(2):
        browser.execute_script("arguments[0].click()", heading[column])
        orders.append(
            browser.execute_script(
                "return [...[...document.querySelectorAll('table.sortable')].at(-1).tBodies[0].rows]"
                ".map(row => row.cells[arguments[0]].textContent)",
                column,
            )
        )
    key = float if column == 1 else str.lower
    assert len(orders[0]) > 3
    assert [key(text) for text in orders[0]] == sorted(key(text) for text in orders[0])
    assert [key(text) for text in orders[1]] == sorted((key(text) for text in orders[1]), reverse=True)
    sorts = browser.execute_script(
        "return [...[...document.querySelectorAll('table.sortable')].at(-1).querySelectorAll('th')]"
        ".map(th => th.getAttribute('aria-sort'))"
    )
    assert sorts[column] == "descending" and sorts.count("none") == len(sorts) - 1


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_page_fits_a_phone(browser, scheme):
    with on_a_phone(browser, scheme):
        browser.execute_script("document.querySelectorAll('details').forEach(part => part.open = true)")
        assert browser.execute_script("return window.innerWidth") == 390
        assert overflowing_elements(browser) == []
        assert_legible(browser, scheme)


def test_attention_maps_are_side_by_side(browser):
    pairs = browser.execute_script(
        "return [...document.querySelectorAll('.beside')].map(pair =>"
        " [...pair.querySelectorAll('img')].map(image => image.getBoundingClientRect().toJSON()))"
    )
    width = browser.execute_script("return document.documentElement.clientWidth")
    assert pairs and width > 700
    for left, right in pairs:
        assert left["top"] == right["top"] and left["right"] < right["left"] and right["right"] <= width


def test_print_opens_details_and_fits_paper(browser):
    # A4 between margins of a centimetre
    paper = {"width": 718, "height": 1000, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_script("document.querySelectorAll('details').forEach(part => part.open = false)")
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", paper)
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        browser.execute_cdp_cmd("Page.printToPDF", {})
        assert browser.execute_script("return [...document.querySelectorAll('details')].every(part => part.open)")
        assert browser.execute_script("return document.documentElement.scrollWidth") <= 718
        wide = browser.execute_script(
            "return [...document.querySelectorAll('body *')].filter(e => e.getBoundingClientRect().right > 719)"
            ".map(e => e.outerHTML.slice(0, 100))"
        )
        assert wide == []
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
