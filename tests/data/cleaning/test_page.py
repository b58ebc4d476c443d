"""The cleaning report as a page, in headless Chromium."""

import pytest

from mt.config import CleaningConfig
from mt.data.cleaning.command import clean
from tests.browser import on_a_phone, opened, overflowing_elements, skip_without_browser
from tests.data.cleaning.conftest import good_pairs

PAIRS = [("Look here: <b>now</b>!", f"Sieh {'sehr' * 300}"), ("<script>document.title = 'taken'</script>", "Halt")]


@pytest.fixture
def browser(table, tmp_path):
    skip_without_browser()
    clean(CleaningConfig(data=table([*good_pairs(), *PAIRS], cleaning="strict"), output=str(tmp_path / "out")))
    with opened((tmp_path / "out/cleaning.html").as_uri()) as browser:
        yield browser


def test_cleaning_page_escapes_text_and_fits_phone(browser):
    assert browser.title == "Cleaning of 1,298 pairs" and browser.get_log("browser") == []
    cells = browser.execute_script("return [...document.querySelectorAll('.examples td')].map(e => e.textContent)")
    assert [cells[1], cells[4]] == [source for source, _ in PAIRS] and cells[2].endswith("…") and len(cells[2]) == 501
    images = browser.execute_script("return [...document.images].map(i => [i.naturalWidth, i.alt])")
    assert len(images) == 3 and all(width > 300 and "rule" in alt for width, alt in images)
    assert overflowing_elements(browser) == []
    with on_a_phone(browser):
        assert overflowing_elements(browser) == []
        hidden = browser.execute_script(
            "return [...document.querySelectorAll('.scroll')].filter(e => e.scrollWidth > e.clientWidth).length"
        )
    assert hidden == 0  # no table needs a scroll bar
