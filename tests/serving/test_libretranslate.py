"""LibreTranslate's API: requests of its Python client and of other programs."""

import json
import re
from urllib.parse import urlencode

import pytest

from mt.config import DecodingChoice, ServingConfig
from mt.storage.model_description import ConfidenceConfig
from mt.translation.translator import Translator
from tests import toy
from tests.serving.conftest import serving

LINES = toy.sentences(12, seed=7)
GERMAN = "Ich mag dieses Haus nicht, weil es zu klein ist."
FITTED = ConfidenceConfig(intercept=1.0, score=2.0, agreement=0.5, length_ratio=0.0, token_length=0.0, repaired=0.0)


def translate(server, **values):
    return server.ask("/translate", {"source": "en", "target": "fr"} | values)


def test_libretranslatepy_client(server, translator):
    libretranslatepy = pytest.importorskip("libretranslatepy")
    client = libretranslatepy.LibreTranslateAPI(server.url)
    assert client.translate(LINES[0], "en", "fr") == translator.translate(LINES[:1])[0]
    assert client.languages() == [
        {"code": "en", "name": "English", "targets": ["en", "fr"]},
        {"code": "fr", "name": "French", "targets": ["en", "fr"]},
    ]
    assert client.detect("Where is the house?")[0]["language"] == "en"


def test_whitespace_between_lines_is_preserved(server, translator):
    first, second = translator.translate(LINES[:2])
    text = f"  {LINES[0]}\r\n\n\t{LINES[1]} \u2028\n"
    assert translate(server, q=text) == (200, {"translatedText": f"  {first}\r\n\n\t{second} \u2028\n"})
    assert translate(server, q=[" \n", "😀", LINES[0]]) == (200, {"translatedText": [" \n", "😀", first]})


def test_lone_surrogate_is_translated(server):
    assert translate(server, q="\ud800")[0] == 200


def test_translate_html(server, runs):
    sources = [f"<b>{LINES[0]}</b> &amp;", f'{LINES[1]} <a href="x">{LINES[2]}</a>']
    targets = Translator.load(runs[0], DecodingChoice(markup="html")).translate(sources)
    page = '<p>{}</p>\n<p translate="no">ba\nde</p><!-- ba\n --><ul>\n<li>{}</li><li><br/></li></ul>'
    expected = page.format(*targets)
    assert translate(server, q=[page.format(*sources)], format="html", alternatives=2) == (
        200,
        {"translatedText": [expected], "alternatives": [[]]},
    )


def test_glossary_applies_to_one_request(server, translator):
    line, glossary = "ba de su", [["de", "zaza|zuzu"], ["ku", "ku"]]
    plain = translator.translate([line])[0]
    for values in ({"glossary": glossary}, {"glossary": json.dumps(glossary), "format": "html"}, {"glossary": []}, {}):
        status, answer = translate(server, q=line, **values)
        words = answer["translatedText"].split()
        assert status == 200 and words.count("zaza") + words.count("zuzu") == bool(values.get("glossary"))
    assert answer == {"translatedText": plain}
    form = urlencode({"q": "de", "source": "en", "target": "fr", "glossary": json.dumps([["de", "zaza"]])}).encode()
    assert server.ask("/translate", form) == (200, {"translatedText": "zaza"})


@pytest.mark.parametrize(
    ("glossary", "message"),
    [
        ("{", "glossary parameter is not valid JSON"),
        ([["de", " "]], "glossary: pair 1: the translation is empty"),
        ([["x", ""]] * 201, "glossary has 201 pairs, more than 200"),  # before any pair is read
        ([["x" * 300, "y"]], "glossary has 301 characters, more than 300"),
    ],
)
def test_invalid_glossary_is_refused(server, glossary, message):
    status, answer = translate(server, q="ba de", glossary=glossary)
    assert status == 400 and message in answer["error"]


def test_alternatives_are_distinct_hypotheses(server, all_translations):
    hypotheses = all_translations.hypotheses(LINES[:2])
    distinct = [list(dict.fromkeys(scored.text for scored in ranked)) for ranked in hypotheses]
    expected = {"translatedText": [texts[0] for texts in distinct], "alternatives": [texts[1:] for texts in distinct]}
    assert translate(server, q=LINES[:2], alternatives=9) == (200, expected)
    single = {"translatedText": distinct[0][0], "alternatives": distinct[0][1:2]}
    assert translate(server, q=LINES[0], alternatives="1") == (200, single)


@pytest.mark.parametrize(
    ("text", "language"),
    [("I think that this is the house of my mother.", "en"), ("Je crois que c'est la maison de ma mère.", "fr")],
)
def test_source_language_is_detected(server, translator, text, language):
    status, answer = translate(server, q=text, source="auto")
    expected = translator.translate([text])[0] if language == "en" else text
    assert (status, answer["translatedText"]) == (200, expected)
    assert answer["detectedLanguage"]["language"] == language and answer["detectedLanguage"]["confidence"] > 90


@pytest.mark.parametrize(
    "values", [{"q": GERMAN}, {"q": [GERMAN], "target": "en"}, {"q": f"<p>{GERMAN}</p>", "format": "html"}]
)
def test_detected_language_without_model_is_refused(server, values):
    status, answer = translate(server, source="auto", **values)
    assert status == 400 and answer["error"].startswith("German (de), detected with ")


def test_detect_ignores_tags(server):
    text = '<p class="the house of the mother and what it is"><a href="/this/is/what">Je crois que oui.</a></p>'
    assert server.ask("/detect", {"q": text})[1][0]["language"] == "fr"


@pytest.mark.parametrize("text", ["Hello", "ok", "12", "😀", "0x3f 0x4a 0xff 0x12"])
def test_uncertain_language_is_a_served_one(server, text):
    status, answer = translate(server, q=text, source="auto")
    assert status == 200 and answer["detectedLanguage"]["language"] in ("en", "fr")
    assert answer["detectedLanguage"]["confidence"] < 50
    # Of all 139 languages, Breton is the most probable one for Hello.
    assert server.ask("/detect", {"q": text})[1][0] == answer["detectedLanguage"]


def test_html_characters_are_not_escaped_needlessly(server):
    text = f"<b>{LINES[0]}</b> 5 > 3 &\n{LINES[1]}\n\n{LINES[2]}"
    translation = translate(server, q=text, format="html")[1]["translatedText"]
    assert "> 3" in translation and "\n\n" in translation and not re.findall(r"&\S+;", translation)


@pytest.mark.parametrize("code", ["en", "EN", "eng", "en_GB", "en-US"])
def test_language_codes_are_normalized(server, translator, code):
    assert translate(server, q=LINES[0], source=code) == (200, {"translatedText": translator.translate(LINES[:1])[0]})


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({}, "Invalid request: missing q parameter"),
        ({"q": []}, "Invalid request: missing q parameter"),
        ({"q": "a", "source": ""}, "Invalid request: missing source parameter"),
        ({"q": "a", "target": None}, "Invalid request: missing target parameter"),
        ({"q": "a", "source": ["en"]}, "Invalid request: source parameter is not a text"),
        ({"q": "a", "target": "zz"}, "zz is not supported: GET /languages lists all languages"),
        ({"q": "a", "format": "rtf"}, "rtf format is not supported: set it to text or html"),
        ({"q": "a", "alternatives": "x"}, "Invalid request: alternatives parameter is not a number"),
        ({"q": "a" * 301}, "Invalid request: request (301) exceeds text limit (300): divide the text"),
        ({"q": ["a"] * 201}, "Invalid request: request (201) exceeds text limit (200): send fewer texts"),
        ({"q": ["a", 1]}, "Invalid request: q parameter is not a text or a list of texts"),
        ({"q": {"a": 1}}, "Invalid request: q parameter is not a text or a list of texts"),
    ],
)
def test_translate_reports_errors_of_libretranslate(server, values, message):
    assert translate(server, **values) == (400, {"error": message})


def test_settings_have_target_language(server):
    assert server.ask("/frontend/settings")[1]["language"]["target"]["code"] == "fr"


@pytest.fixture(scope="module")
def confident(runs):
    """A server of a model with a confidence that was fitted by hand."""
    with serving(ServingConfig(run=str(runs[0]))) as (found, models):
        models.models[0].translator.confidence.fitted = FITTED
        yield found


def test_confidence_of_text_is_lowest_of_its_lines(confident, runs, translator):
    model = Translator.load(runs[0])
    model.confidence.fitted = FITTED
    confidences = [best.confidence for (best,) in model.hypotheses(LINES[:2], confident=True)]
    first, second = translator.translate(LINES[:2])
    expected = {
        "translatedText": [f"{first}\n{second}", second, ""],
        "confidence": [min(confidences), confidences[1], None],
    }
    texts = ["\n".join(LINES[:2]), LINES[1], ""]
    assert translate(confident, q=texts, confidence="true", format="html") == (200, expected)


@pytest.mark.parametrize("values", [{}, {"confidence": None}, {"confidence": ""}, {"confidence": "False"}])
def test_confidence_is_omitted_by_default(confident, values):
    assert "confidence" not in translate(confident, q=LINES[0], **values)[1]


def test_confidence_of_unfitted_model_is_refused(server):
    status, answer = translate(server, q="ba", confidence=True)
    assert status == 400 and "model.yaml: confidence is null" in answer["error"]
    assert translate(server, q="ba", confidence="maybe") == (
        400, {"error": "Invalid request: confidence parameter is not true or false"}
    )  # fmt: skip


@pytest.mark.parametrize(("name", "is_known"), [("confident", True), ("server", False)])
def test_page_receives_confidence_of_each_line(request, runs, name, is_known):
    values = {"model": runs[0].name, "q": "\n".join(LINES[:2])}
    lines = request.getfixturevalue(name).ask("/page/translate", values)[1]
    assert [line["confidence"] is not None for line in lines] == [is_known] * 2
