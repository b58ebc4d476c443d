"""LibreTranslate's API, by its own client and by the requests of programs that speak it."""

import json
import re
import urllib.error
from urllib.parse import urlencode

import pytest

from mt.config import DecodingChoice, KeptConfig, ServingConfig
from mt.storage.model_description import ConfidenceConfig
from mt.translation.translator import Translator
from tests import toy
from tests.serving.conftest import serving

LINES = toy.sentences(12, seed=7)
FITTED = ConfidenceConfig(intercept=1.0, score=2.0, agreement=0.5, length_ratio=0.0, token_length=0.0, repaired=0.0)


def translate(server, **values):
    return server.ask("/translate", {"source": "en", "target": "fr"} | values)


def test_its_own_client(server, translator):
    libretranslatepy = pytest.importorskip("libretranslatepy")
    client = libretranslatepy.LibreTranslateAPI(server.url)
    assert client.translate(LINES[0], "en", "fr") == translator.translate(LINES[:1])[0]
    assert client.languages() == [
        {"code": "en", "name": "English", "targets": ["en", "fr"]},
        {"code": "fr", "name": "French", "targets": ["en", "fr"]},
    ]
    assert client.detect("Where is the house?")[0]["language"] == "en"
    with pytest.raises(urllib.error.HTTPError, match="400"):
        client.translate("a", "en", "de")


def test_texts_and_lists_in_json_and_in_forms(server, translator):
    expected = translator.translate(LINES)
    assert translate(server, q=LINES) == (200, {"translatedText": expected})
    for line, translation in zip(LINES[:3], expected, strict=False):
        assert translate(server, q=line) == (200, {"translatedText": translation})
    values = {"q": LINES[0], "source": "en", "target": "fr", "format": "text"}
    assert server.ask("/translate", urlencode(values).encode()) == (200, {"translatedText": expected[0]})


def test_lines_and_white_space_of_a_text_stay(server, translator):
    one, other = translator.translate(LINES[:2])
    text = f"  {LINES[0]}\r\n\n\t{LINES[1]} \u2028\n"
    assert translate(server, q=text) == (200, {"translatedText": f"  {one}\r\n\n\t{other} \u2028\n"})
    assert translate(server, q=[" \n", "😀", LINES[0]]) == (200, {"translatedText": [" \n", "😀", one]})
    assert translate(server, q="\ud800")[0] == 200  # half a character


def test_html(server, runs):
    html = Translator.load(runs[0], DecodingChoice(markup="html"))
    inside = [f"<b>{LINES[0]}</b> &amp;", f'{LINES[1]} <a href="x">{LINES[2]}</a>']
    one, other = html.translate(inside)
    kept = '<p translate="no">ba\nde</p><!-- ba\n -->'
    page = f"<p>{inside[0]}</p>\n{kept}<ul>\n<li>{inside[1]}</li><li><br/></li></ul>"
    expected = f"<p>{one}</p>\n{kept}<ul>\n<li>{other}</li><li><br/></li></ul>"
    assert translate(server, q=page, format="html") == (200, {"translatedText": expected})
    assert translate(server, q=[page], format="html", alternatives=2) == (
        200,
        {"translatedText": [expected], "alternatives": [[]]},
    )


def test_the_glossary_of_a_request_is_for_this_request(server, translator):
    line, glossary = "ba de su", [["de", "zaza|zuzu"], ["ku", "ku"]]
    plain = translator.translate([line])[0]
    for values in ({"glossary": glossary}, {"glossary": json.dumps(glossary), "format": "html"}, {"glossary": []}, {}):
        status, answer = translate(server, q=line, **values)
        found = answer["translatedText"].split()
        assert status == 200 and found.count("zaza") + found.count("zuzu") == bool(values.get("glossary"))
    assert answer == {"translatedText": plain}
    form = urlencode({"q": "de", "source": "en", "target": "fr", "glossary": json.dumps([["de", "zaza"]])}).encode()
    assert server.ask("/translate", form) == (200, {"translatedText": "zaza"})


@pytest.mark.parametrize(
    ("glossary", "message"),
    [
        ("{", "glossary parameter is not valid JSON"),
        ([["de"]], "no list of pairs"),
        ({"de": "zaza"}, "no list of pairs"),
        ([["de", 1]], "no list of pairs"),
        ([["de", " "]], "glossary: pair 1: the translation is empty"),
        ([["de", "a"], ["de", "b"]], "glossary: pair 2: 'de' has another translation at glossary: pair 1"),
        ([["http://a.b", "x"]], "has a link, tag or placeholder, or no letter"),
        ([["x", ""]] * 201, "glossary has 201 pairs, more than 200"),  # before any pair is read
        ([["x" * 300, "y"]], "glossary has 301 characters, more than 300"),
    ],
)
def test_a_wrong_glossary_is_refused(server, glossary, message):
    status, answer = translate(server, q="ba de", glossary=glossary)
    assert status == 400 and message in answer["error"]


def test_alternatives(server, all_translations):
    found = [[one.text for one in several] for several in all_translations.hypotheses(LINES[:2])]
    distinct = [list(dict.fromkeys(several)) for several in found]
    status, answer = translate(server, q=LINES[:2], alternatives=9)
    assert status == 200
    assert answer == {
        "translatedText": [several[0] for several in distinct],
        "alternatives": [several[1:] for several in distinct],
    }
    assert translate(server, q=LINES[0], alternatives="1") == (
        200,
        {"translatedText": distinct[0][0], "alternatives": distinct[0][1:2]},
    )


def test_the_language_is_detected(server, translator):
    text = "I think that this is the house of my mother."
    status, answer = translate(server, q=text, source="auto")
    assert status == 200 and answer["translatedText"] == translator.translate([text])[0]
    assert answer["detectedLanguage"]["language"] == "en" and answer["detectedLanguage"]["confidence"] > 90
    french = "Je crois que c'est la maison de ma mère."
    status, answer = translate(server, q=[french], source="auto")
    assert status == 200 and answer["translatedText"] == [french]
    assert answer["detectedLanguage"][0]["language"] == "fr" and answer["detectedLanguage"][0]["confidence"] > 90
    detected = server.ask("/detect", {"q": french})[1]
    assert detected[0]["language"] == "fr" and detected[0]["confidence"] > 90


def test_a_language_without_a_model_is_named(server):
    german = "Ich mag dieses Haus nicht, weil es zu klein ist."
    for values in ({"q": german}, {"q": [german], "target": "en"}, {"q": f"<p>{german}</p>", "format": "html"}):
        status, answer = translate(server, source="auto", **values)
        assert status == 400 and answer["error"].startswith("German (de), detected with ")
    assert server.ask("/detect", {"q": german})[1][0]["language"] == "de"


def test_the_attributes_of_tags_do_not_decide_the_language(server):
    text = '<p class="the house of the mother and what it is"><a href="/this/is/what">Je crois que oui.</a></p>'
    assert server.ask("/detect", {"q": text})[1][0]["language"] == "fr"


def test_short_texts_are_translated_from_a_served_language(server):
    for text in ("Hello", "ok", "Yes", "12", "😀", "0x3f 0x4a 0xff 0x12"):
        status, answer = translate(server, q=text, source="auto")
        assert status == 200 and answer["detectedLanguage"]["language"] in ("en", "fr")
        assert answer["detectedLanguage"]["confidence"] < 50
        # Not the likeliest of 139 languages, which is Breton for Hello.
        assert server.ask("/detect", {"q": text})[1][0] == answer["detectedLanguage"]


def test_plain_text_declared_as_html(server, translator):
    one, other = translator.translate(LINES[:2])
    plain = [f"{LINES[0]}\n\n{LINES[1]}\r\n{LINES[0]}", f"{LINES[0]} 5 > 3 & 2 < 4"]
    expected = [f"{one}\n\n{other}\r\n{one}", translator.translate(plain[1:])[0]]
    assert translate(server, q=plain, format="html") == (200, {"translatedText": expected})


def test_characters_of_html_do_not_become_entities(server):
    text = f"<b>{LINES[0]}</b> 5 > 3 &\n{LINES[1]}\n\n{LINES[2]}"
    translation = translate(server, q=text, format="html")[1]["translatedText"]
    assert "> 3" in translation and "\n\n" in translation and not set(re.findall(r"&\S+;", translation))
    # These would be tags or entities without their own.
    text = "<b>ba</b> &lt;script> &amp;lt; &lt;b&gt; de"
    translation = translate(server, q=text, format="html")[1]["translatedText"]
    assert "<script" not in translation and "&amp;lt;" in translation and "&lt;b&gt;" in translation


@pytest.mark.parametrize("code", ["en", "EN", "eng", "en_GB", "en-US"])
def test_languages_are_known_however_they_are_written(server, translator, code):
    assert translate(server, q=LINES[0], source=code) == (200, {"translatedText": translator.translate(LINES[:1])[0]})


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({}, "Invalid request: missing q parameter"),
        ({"q": ""}, "Invalid request: missing q parameter"),
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
def test_what_is_wrong_is_reported_as_libretranslate_does(server, values, message):
    assert translate(server, **values) == (400, {"error": message})


def test_the_settings_have_the_target(server):  # and the limit, which the page shows
    assert server.ask("/frontend/settings")[1]["language"]["target"]["code"] == "fr"


def test_a_server_warns_of_a_glossary_without_translations(runs, tmp_path, caplog):
    (tmp_path / "terms.tsv").write_text("ba = de\n")
    with serving(ServingConfig(run=str(runs[0]), text=KeptConfig(terms=str(tmp_path / "terms.tsv")))):
        assert caplog.text.count("terms.tsv: has one column, so its terms stay untranslated: 1.") == 1


@pytest.fixture(scope="module")
def confident(runs):
    """A server of a model with a confidence that was fitted by hand."""
    with serving(ServingConfig(run=str(runs[0]))) as (found, models):
        models.models[0].translator.confidence.fitted = FITTED
        yield found


def test_the_confidence_of_a_text_is_the_lowest_of_its_lines(confident, runs, translator):
    model = Translator.load(runs[0])
    model.confidence.fitted = FITTED
    known = [best.confidence for (best,) in model.hypotheses(LINES[:3], confident=True)]
    expected = translator.translate(LINES[:3])
    answer = {"translatedText": [*expected, ""], "confidence": [*known, None]}
    assert translate(confident, q=[*LINES[:3], ""], confidence=True) == (200, answer)
    both = translate(confident, q="\n".join(LINES[:2]), confidence="true")[1]
    assert both == {"translatedText": "\n".join(expected[:2]), "confidence": min(known[:2])}
    for unset in ({}, {"confidence": None}, {"confidence": ""}, {"confidence": "False"}):
        assert "confidence" not in translate(confident, q=LINES[0], **unset)[1]
    status, answer = translate(confident, q=LINES[0], confidence=True, alternatives=1)
    assert status == 200 and answer["confidence"] == known[0] and len(answer["alternatives"]) == 1
    form = {"q": f"<p>{LINES[0]}</p>", "source": "en", "target": "fr", "format": "html", "confidence": "true"}
    assert confident.ask("/translate", urlencode(form).encode())[1]["confidence"] == known[0]


def test_a_model_without_confidence_says_so(server):
    status, answer = translate(server, q="ba", confidence=True)
    assert status == 400 and "model.yaml: confidence is null" in answer["error"]
    assert translate(server, q="ba", confidence="maybe") == (
        400, {"error": "Invalid request: confidence parameter is not true or false"}
    )  # fmt: skip


def test_the_page_gets_the_confidence_of_each_line(confident, server):
    for found, is_known in ((confident, True), (server, False)):
        name = found.ask("/page/models")[1][0]["name"]
        for line in found.ask("/page/translate", {"model": name, "q": "\n".join(LINES[:2])})[1]:
            assert (line["confidence"] is not None) == is_known
