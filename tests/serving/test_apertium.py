"""Apertium APy's API, by the requests of OmegaT and Weblate."""

from urllib.parse import quote_plus, urlencode

import pytest

from tests import toy

LINES = toy.sentences(4, seed=8)


def test_the_requests_of_omegat(server, translator):
    # The query is put together in this order, with the text encoded as a form is and the bar as it is; languages have
    # two letters, and the key of a server of one's own is empty.
    query = f"/translate?q={quote_plus(LINES[0])}&markUnknown=no&langpair=en|fr&key="
    status, answer = server.ask(query.replace("|", "%7C"))
    expected = {"translatedText": translator.translate(LINES[:1])[0]}
    assert (status, answer) == (200, {"responseData": expected, "responseDetails": None, "responseStatus": 200})
    with server.connect() as connection:  # Java does not encode the bar
        connection.sendall(
            f"GET {query} HTTP/1.1\r\nUser-Agent: OmegaT\r\nHost: x\r\nConnection: close\r\n\r\n".encode()
        )
        answer = b""
        while part := connection.recv(65536):
            answer += part
    assert answer.startswith(b"HTTP/1.1 200") and expected["translatedText"].encode() in answer
    # Tags of the project's formats come in short form.
    status, answer = server.ask("/translate?" + urlencode({"q": f"<f0>{LINES[1]}</f0> R&D", "langpair": "en|fr"}))
    text = answer["responseData"]["translatedText"]
    assert status == 200 and text.startswith("<f0>") and "</f0>" in text and "&amp;" not in text


def test_the_requests_of_weblate(server, translator):
    status, answer = server.ask("/listPairs")
    assert status == 200 and answer["responseStatus"] == 200
    assert answer["responseData"] == [
        {"sourceLanguage": "eng", "targetLanguage": "fra"},
        {"sourceLanguage": "fra", "targetLanguage": "eng"},
    ]
    query = urlencode({"langpair": "eng|fra", "q": LINES[2], "markUnknown": "no"})
    status, answer = server.ask(f"/translate?{query}")
    assert status == 200 and answer["responseData"]["translatedText"] == translator.translate(LINES[2:3])[0]


def test_text_that_is_no_html(server, translator):
    text = f"{LINES[3]} <b>"
    query = urlencode({"langpair": "en|fr", "q": text, "format": "txt"})
    assert server.ask(f"/translate?{query}")[1]["responseData"]["translatedText"] == translator.translate([text])[0]


@pytest.mark.parametrize(
    ("query", "explanation"),
    [
        ("q=a", "Missing argument langpair: add it to the request"),
        ("langpair=en|fr", "Missing argument q: add it to the request"),
        ("q=a&langpair=en-fr", "That pair is invalid, use e.g. eng|spa"),
        ("q=a&langpair=en|de", "That pair is not installed: GET /listPairs lists those that are"),
        (f"q={'a' * 301}&langpair=en|fr", "Request (301) exceeds text limit (300): divide the text"),
    ],
)
def test_what_is_wrong_is_told_as_apertium_does(server, query, explanation):
    expected = {"status": "error", "code": 400, "message": "Bad Request", "explanation": explanation}
    assert server.ask(f"/translate?{query}".replace("|", "%7C")) == (400, expected)
