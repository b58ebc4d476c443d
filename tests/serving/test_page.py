"""The page in a real headless Chromium."""

import re
import time
import urllib.request

import pytest

from mt.config import DecodingChoice, ServingConfig
from mt.storage.model_description import ConfidenceConfig
from mt.translation.translator import Translator
from tests import toy
from tests.browser import assert_legible, on_a_phone, opened, overflowing_elements, skip_without_browser
from tests.serving.conftest import serving

LINES = toy.sentences(2, seed=9)


@pytest.fixture(scope="module")
def page(runs, tmp_path_factory):
    """A server with two models from English to French, and one from French to English."""
    second = toy.copy_to_change(runs[0], tmp_path_factory.mktemp("second") / "a second one")
    with serving(ServingConfig(run=(str(runs[0]), str(second), str(runs[1])), characters=300)) as (found, _):
        yield found


@pytest.fixture(scope="module")
def browser(page):
    skip_without_browser()
    with opened(page.url, "--window-size=1280,900") as browser:
        yield browser


@pytest.fixture
def tab(browser, page):
    """The page, after two lines have been typed and translated."""
    browser.get_log("browser")  # discard the messages of earlier tests
    browser.get(page.url)
    wait(browser, lambda: find(browser, "#first option"))
    find(browser, "#source")[0].send_keys(LINES[0], "\n\n", LINES[1])
    wait(browser, lambda: len(find(browser, ".panel .line")) == 2 and not find(browser, ".old"))
    return browser


def find(browser, selector):
    return browser.find_elements("css selector", selector)


def texts(browser, selector):
    return browser.execute_script(
        "return [...document.querySelectorAll(arguments[0])].map(one => one.textContent)", selector
    )


def click(browser, element):
    browser.execute_script("arguments[0].focus(); arguments[0].click()", element)


def wait(browser, condition):
    from selenium.webdriver.support.ui import WebDriverWait

    WebDriverWait(browser, 60, 0.05).until(lambda _: condition())


def test_page_headers_forbid_external_content(page):
    for path, media_type in (("/", "text/html"), ("/page.js", "text/javascript"), ("/page.css", "text/css")):
        with urllib.request.urlopen(page.url + path) as response:
            content = response.read().decode()
            assert response.headers["Content-Type"].startswith(media_type)
            assert "default-src 'none'" in response.headers["Content-Security-Policy"]
            assert not re.search(r"https?://|innerHTML|style=|onclick=\"", content)


def test_typed_text_is_translated(tab, translator):
    assert texts(tab, ".panel .of-target") == translator.translate(LINES)
    assert tab.execute_script("return document.activeElement.id") == "source"
    loaded = tab.execute_script(
        "return performance.getEntriesByType('resource').map(one => new URL(one.name))"
        ".filter(url => url.protocol != 'data:').map(url => url.origin)"
    )
    assert set(loaded) == {tab.execute_script("return location.origin")}
    assert tab.get_log("browser") == []


def test_typed_glossary_is_applied(tab):
    word = LINES[0].split()[0]
    tab.execute_script("document.getElementById('glossary').closest('details').open = true")
    find(tab, "#glossary")[0].send_keys("half a line =\n", f"{word} = zazu")
    wait(tab, lambda: "zazu" in texts(tab, ".panel .of-target")[0].split())
    wait(tab, lambda: "Glossary: 1 of 2 lines skipped" in texts(tab, "#status")[0])


def test_clicked_word_highlights_aligned_words(tab, runs):
    best = Translator.load(runs[0]).hypotheses(LINES[:1], aligned=True)[0][0]
    words = best.text.split()
    for number, word in enumerate(words):
        click(tab, find(tab, ".of-target")[0].find_elements("css selector", "span")[number])
        linked = [LINES[0].split()[source] for source, target in best.alignment if target == number]
        assert texts(tab, ".linked") == linked and texts(tab, ".chosen") == [word]
        status = f"{word} — {', '.join(linked)}" if linked else f"{word} is aligned to no word"
        assert texts(tab, "#status") == [status]
    click(tab, find(tab, ".of-source span")[0])
    assert texts(tab, ".of-target .linked") == [words[target] for source, target in best.alignment if source == 0]


def test_arrow_keys_select_words(tab):
    from selenium.webdriver.common.keys import Keys

    click(tab, find(tab, ".of-target span")[0])
    tab.switch_to.active_element.send_keys(Keys.ARROW_RIGHT)
    siblings = "return [...document.activeElement.parentNode.children].indexOf(document.activeElement)"
    assert tab.execute_script(siblings) == 1
    tab.switch_to.active_element.send_keys(Keys.END, Keys.ENTER)
    assert "chosen" in tab.execute_script("return document.activeElement.className")
    stops = tab.execute_script("return [...document.querySelector('.of-target').children].map(one => one.tabIndex)")
    assert len(stops) >= 2 and stops == [-1] * (len(stops) - 1) + [0]


def test_dragging_selects_text(tab, translator):
    from selenium.webdriver import ActionChains

    words = find(tab, ".of-target")[0].find_elements("css selector", "span")
    ActionChains(tab).move_to_element(words[0]).move_by_offset(
        -words[0].size["width"] // 2, 0
    ).click_and_hold().move_to_element(words[-1]).move_by_offset(
        words[-1].size["width"] // 2 + 3, 0
    ).release().perform()
    assert tab.execute_script("return getSelection().toString()") == translator.translate(LINES[:1])[0]
    assert not find(tab, ".chosen")
    words[0].click()
    assert texts(tab, ".chosen") == [words[0].text]


def test_copy_button_preserves_blank_lines(tab, translator):
    (button, _) = find(tab, ".copy")
    button.click()
    assert texts(tab, ".copied:has(+ .copy)") == ["Copied", ""]
    tab.execute_script("source.value = ''; source.oninput()")
    wait(tab, lambda: not button.is_displayed())
    assert texts(tab, ".copied") == ["", ""]
    tab.execute_cdp_cmd("Browser.grantPermissions", {"permissions": ["clipboardReadWrite"]})
    assert tab.execute_async_script("navigator.clipboard.readText().then(arguments[0])") == "\n\n".join(
        translator.translate(LINES)
    )


def test_status_is_cleared_with_text(tab):
    statuses = tab.execute_script(
        "translate(0); const before = status.textContent; source.value = ''; translate(0); "
        "return [before, status.textContent]"
    )
    assert statuses == ["Translating …", ""]
    time.sleep(0.5)  # the answer to the first request would arrive
    assert texts(tab, "#status") == [""] and not find(tab, ".panel .line")


def test_chosen_alternative_is_shown(tab, runs):
    translator = Translator.load(runs[0], DecodingChoice(n_best=3))
    expected = list(dict.fromkeys(one.text for one in translator.hypotheses(LINES)[0]))
    line = find(tab, ".line")[0]
    summary = line.find_element("css selector", "summary")
    assert summary.text == f"{len(expected)} translations"
    click(tab, summary)
    buttons = line.find_elements("css selector", "li button")
    assert [button.text for button in buttons] == expected and len(expected) > 1
    click(tab, buttons[1])
    assert texts(tab, ".of-target")[0] == expected[1]
    assert [button.get_attribute("aria-pressed") for button in buttons[:2]] == ["false", "true"]


def test_uncertain_translation_is_shaded(browser, runs):
    uncertain = ConfidenceConfig(**dict.fromkeys(ConfidenceConfig.model_fields, 0.0) | {"intercept": -1.1})
    with serving(ServingConfig(run=str(runs[0]))) as (server, models):
        models.models[0].translator.confidence.fitted = uncertain
        browser.get(server.url)
        find(browser, "#source")[0].send_keys(LINES[0])
        wait(browser, lambda: find(browser, ".uncertain") and not find(browser, ".old"))
        assert "uncertain: confidence 25 %" in find(browser, ".line")[0].text
        click(browser, find(browser, ".line summary")[0])
        click(browser, find(browser, ".line li button")[1])
        assert not find(browser, ".uncertain") and "uncertain" not in find(browser, ".line")[0].text
        click(browser, find(browser, ".line li button")[0])
        assert find(browser, ".of-target.uncertain")


def test_attention_map_of_chosen_layer_and_head(tab, translator):
    line = find(tab, ".line")[0]
    click(tab, line.find_elements("css selector", "summary")[-1])
    wait(tab, lambda: find(tab, "table"))
    expected = translator.attention(LINES[0], translator.translate(LINES[:1])[0])

    def shown():
        return tab.execute_script(
            "return [...document.querySelector('table').tBodies[0].rows]"
            ".map(row => [...row.querySelectorAll('td')].map(cell => parseInt(cell.textContent)))"
        )

    sources = [token.replace("▁", "_") for token in expected.source_tokens]
    assert len(texts(tab, "tbody th")) == len(expected.target_tokens) and texts(tab, "thead th") == sources
    assert shown() == percent(expected.cross_attention()[-1].mean(dim=0))
    maps, heads = line.find_elements("css selector", ".choices select")
    choose(tab, heads, "1")
    assert shown() == percent(expected.cross_attention()[-1][1])
    choose(tab, maps, "encoder.layers.0.self_attention")
    wait(tab, lambda: texts(tab, "tbody th") == sources)
    assert shown() == percent(expected.maps["encoder.layers.0.self_attention"].weights[0][1])
    assert tab.get_log("browser") == []


def percent(weights):
    return [[pytest.approx(100 * weight, abs=0.6) for weight in row] for row in weights.tolist()]


def choose(browser, select, value):
    browser.execute_script(
        "arguments[0].value = arguments[1]; arguments[0].dispatchEvent(new Event('change'))", select, value
    )


def test_second_model_is_shown_beside_the_first(tab, translator):
    assert not find(tab, "#beside")[0].get_attribute("hidden")
    assert tab.execute_script("return [...document.querySelectorAll('#second option')].map(o => o.value)") == [
        "",
        "a second one",  # the third model is of other languages
    ]
    choose(tab, find(tab, "#second")[0], "a second one")
    wait(tab, lambda: len(find(tab, ".line")) == 4 and not find(tab, ".old"))
    assert texts(tab, ".of-target") == 2 * translator.translate(LINES)
    left, right = tab.execute_script(
        "return [...document.querySelectorAll('.panel')].map(panel => panel.getBoundingClientRect().toJSON())"
    )
    assert left["top"] == right["top"] and left["right"] < right["left"]


def test_text_limit_is_shown_and_enforced(tab):
    assert texts(tab, "#length:not(.exceeded)") == [f"{len(''.join(LINES)) + 2} of at most 300 characters"]
    tab.execute_script("document.getElementById('source').value = 'ba '.repeat(101)")
    find(tab, "#source")[0].send_keys("x")
    wait(tab, lambda: "may have 300 at most" in texts(tab, "#status")[0])
    assert not find(tab, ".line") and texts(tab, ".exceeded") == ["304 of at most 300 characters"]


@pytest.mark.parametrize("response", ["'<html>'", "'{}', {status: 502}"])
def test_unreachable_server_is_reported(tab, response):
    tab.execute_script(f"real = fetch; models = []; source.oninput(); fetch = async () => new Response({response})")
    wait(tab, lambda: "The server cannot be reached" in texts(tab, "#status")[0])
    tab.execute_script("fetch = real; source.oninput()")
    wait(tab, lambda: not texts(tab, "#status")[0])


def test_text_is_not_parsed_as_html(tab):
    tab.execute_script("document.getElementById('source').value = '<img src=x onerror=alert(1)> ba de'")
    find(tab, "#source")[0].send_keys(" fi")
    wait(tab, lambda: texts(tab, ".of-source") == ["<img src=x onerror=alert(1)> ba de fi"])
    assert not find(tab, "img") and tab.get_log("browser") == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_page_fits_phone_and_elements_have_names(tab, scheme):
    with on_a_phone(tab, scheme):
        find(tab, "#source")[0].send_keys(" ba" * 25)  # a wide map
        wait(tab, lambda: texts(tab, ".of-source")[-1].endswith(" ba ba") and not find(tab, ".old"))
        for summary in find(tab, "summary"):
            click(tab, summary)
        wait(tab, lambda: len(find(tab, "table")) == 2)
        tab.execute_script("source.value = 'ba\\n'.repeat(60)")
        assert tab.execute_script("return source.clientHeight < 300 && source.scrollHeight > 1000")
        assert overflowing_elements(tab) == []
        assert_legible(tab, scheme)
        tree = tab.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
        named = {"button", "textbox", "combobox", "region"}
        nameless = [
            node
            for node in tree
            if not node["ignored"] and node["role"]["value"] in named and not node.get("name", {}).get("value")
        ]
        assert nameless == [] and any(node["role"]["value"] == "status" for node in tree)
