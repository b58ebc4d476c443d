"""Requests, and the responses of LibreTranslate 1.9 to them, on which clients may rely.

Each row has the original's status, media type and types of the JSON values. ``DIFFERENCES`` has the rows in which this
server differs on purpose, each with the reason.
"""

import http.client
import json
from typing import Any, NamedTuple

import pytest

FORM = "application/x-www-form-urlencoded"
JSON = "application/json"
HTML = "text/html"
PARTS = "multipart/form-data; boundary=B"

GERMAN = "Ich mag dieses Haus nicht, weil es zu klein ist."
ENGLISH = "I think that this is the house of my mother."


def parts(**values: str) -> str:
    """Return the body of a multipart form. The field ``file`` is a file."""
    body = ""
    for name, value in values.items():
        file = '; filename="a.txt"' if name == "file" else ""
        body += f'--B\r\nContent-Disposition: form-data; name="{name}"{file}\r\n\r\n{value}\r\n'
    return body + "--B--\r\n"


class Row(NamedTuple):
    """A request, and the status, media type and shape of its response. The shape None is an empty body."""

    method: str
    path: str
    content_type: str
    body: str
    status: int
    media_type: str
    shape: Any


def post(path: str, content_type: str, body: object, status: int, shape: Any) -> Row:
    return Row("POST", path, content_type, body if isinstance(body, str) else json.dumps(body), status, JSON, shape)


def translation(content_type: str, body: object, shape: Any, status: int = 200) -> Row:
    return post("/translate", content_type, body, status, shape)


def get(path: str, status: int, media_type: str, shape: Any) -> Row:
    return Row("GET", path, "", "", status, media_type, shape)


ERROR = {"error": str}
TEXT = {"translatedText": str}
DETECTED = {"confidence": float, "language": str}
LANGUAGE = {"code": str, "name": str}
SETTINGS = {
    "charLimit": int,
    "frontendTimeout": int,
    "apiKeys": bool,
    "keyRequired": bool,
    "suggestions": bool,
    "filesTranslation": bool,
    "supportedFilesFormat": list,
    "language": {"source": LANGUAGE, "target": LANGUAGE},
}
ASK = {"q": "ba de", "source": "en", "target": "fr"}

LIBRETRANSLATE = {
    "form": translation(FORM, "q=ba+de&source=en&target=fr", TEXT),
    "form without content type": translation("", "q=ba+de&source=en&target=fr", ERROR, 400),
    "query string": post("/translate?q=ba&source=en&target=fr", "", "", 200, TEXT),
    "query string and form": post("/translate?source=en&target=fr", FORM, "q=ba&source=fr", 200, TEXT),
    "multipart form": translation(PARTS, parts(**ASK), TEXT),
    "multipart form with a file": translation(PARTS, parts(**ASK, file="x"), TEXT),
    "form in Latin-1": translation(FORM, "q=%E9t%E9&source=en&target=fr", TEXT),
    "multipart form in Latin-1": translation(PARTS, parts(**ASK | {"q": "été"}), TEXT),
    "q as a file": translation(PARTS, parts(source="en", target="fr", file="x"), ERROR, 400),
    "JSON": translation(JSON, ASK, TEXT),
    "JSON with charset": translation("application/json; charset=utf-8", ASK, TEXT),
    "JSON list": translation(JSON, ASK | {"q": ["ba", "de"]}, {"translatedText": [str]}),
    "key": translation(JSON, ASK | {"api_key": "abc"}, TEXT),
    "unknown field": translation(JSON, ASK | {"callback": "f"}, TEXT),
    "HTML": translation(JSON, ASK | {"q": "<p>ba</p>", "format": "html"}, TEXT),
    "no format": translation(JSON, ASK | {"format": ""}, TEXT),
    "alternatives": translation(JSON, ASK | {"alternatives": 2}, TEXT | {"alternatives": [str]}),
    "auto": translation(JSON, ASK | {"q": ENGLISH, "source": "auto"}, TEXT | {"detectedLanguage": DETECTED}),
    "auto of a list": translation(
        JSON, ASK | {"q": [ENGLISH], "source": "auto"}, {"translatedText": [str], "detectedLanguage": [DETECTED]}
    ),
    "auto, not served": translation(JSON, ASK | {"q": GERMAN, "source": "auto"}, TEXT | {"detectedLanguage": DETECTED}),
    "q twice": translation(FORM, "q=ba&q=de&source=en&target=fr", TEXT),
    "double slash": post("//translate", JSON, ASK, 200, TEXT),
    "closing slash": Row("POST", "/translate/", JSON, json.dumps(ASK), 404, HTML, str),
    "whole URL": post("http://127.0.0.1/translate", JSON, ASK, 200, TEXT),
    "GET": get("/translate?q=ba&source=en&target=fr", 405, HTML, str),
    "DELETE": Row("DELETE", "/translate", "", "", 405, HTML, str),
    "OPTIONS": Row("OPTIONS", "/translate", "", "", 200, HTML, None),
    "detect": post("/detect", FORM, "q=I+think+that+it+is", 200, [DETECTED]),
    "detect a list": post("/detect", JSON, {"q": [ENGLISH, "ba"]}, 200, [DETECTED]),
    "detect nothing": post("/detect", JSON, {"q": "12"}, 200, [DETECTED]),
    "detect without q": post("/detect", FORM, "", 400, ERROR),
    "detect by GET": get("/detect?q=ba", 405, HTML, str),
    "languages": get("/languages", 200, JSON, [LANGUAGE | {"targets": [str]}]),
    "languages, JSON without a body": Row("GET", "/languages", JSON, "", 200, JSON, [LANGUAGE | {"targets": [str]}]),
    "languages, double slash": get("//languages", 200, JSON, [LANGUAGE | {"targets": [str]}]),
    "HEAD": Row("HEAD", "/languages", "", "", 200, JSON, None),
    "health": get("/health", 200, JSON, {"status": str}),
    "settings": get("/frontend/settings", 200, JSON, SETTINGS),
    "spec": get(
        "/spec",
        200,
        JSON,
        {"swagger": str, "info": {"title": str, "version": str}, "basePath": str, "definitions": dict, "paths": dict},
    ),
    "suggest": post("/suggest", FORM, "q=ba&s=de&source=en&target=fr", 403, ERROR),
    "files disabled": post("/translate_file", PARTS, parts(source="en", target="fr", file="x"), 403, ERROR),
    "large file": post("/translate_file", PARTS, parts(source="en", target="fr", file="x" * 2**21), 403, ERROR),
    "unknown path": get("/nothing", 404, HTML, str),
}

DIFFERENCES: dict[str, tuple[int, str, Any, str]] = {
    "form without content type": (200, JSON, TEXT, "the body can only be a form"),
    "form in Latin-1": (400, JSON, ERROR, "it translates characters that the text lacks"),
    "multipart form in Latin-1": (400, JSON, ERROR, "it translates characters that the text lacks"),
    "auto, not served": (400, JSON, ERROR, "it translates German as if it were English"),
    "q twice": (200, JSON, {"translatedText": [str]}, "it ignores all texts but the first"),
    "closing slash": (200, JSON, TEXT, "the endpoint is clear"),
    "GET": (405, JSON, ERROR, "clients show the message of a JSON error"),
    "DELETE": (405, JSON, ERROR, "clients show the message of a JSON error"),
    "detect by GET": (405, JSON, ERROR, "clients show the message of a JSON error"),
    "unknown path": (404, JSON, ERROR, "clients show the message of a JSON error"),
    "OPTIONS": (200, "", None, "there is no content to have a type"),
}


@pytest.mark.parametrize("name", LIBRETRANSLATE)
def test_response_equals_that_of_libretranslate(server, name):
    row = LIBRETRANSLATE[name]
    status, media_type, shape, _ = DIFFERENCES.get(name, (row.status, row.media_type, row.shape, ""))
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    headers = {"Content-Type": row.content_type} if row.content_type else {}
    body = row.body.encode("latin-1" if "Latin-1" in name else "utf-8")
    connection.request(row.method, row.path, body, headers)
    response = connection.getresponse()
    content = response.read().decode()
    assert response.headers.get("Access-Control-Allow-Origin") == "*"
    assert (response.status, (response.headers["Content-Type"] or "").partition(";")[0]) == (status, media_type), (
        content
    )
    if shape is None:
        assert content == ""
    else:
        assert_shape(json.loads(content), shape)
    connection.close()


def assert_shape(value: Any, shape: Any) -> None:
    """Assert that a JSON value has a shape: a type, a dict of shapes, or a list with the shape of all its members."""
    if isinstance(shape, dict):
        assert value.keys() == shape.keys()
        for key, member in value.items():
            assert_shape(member, shape[key])
    elif isinstance(shape, list):
        assert isinstance(value, list)
        for member in value:
            assert_shape(member, shape[0])
    else:
        assert isinstance(value, (int, float) if shape is float else shape)


def test_preflight_request(server):
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    asked = "content-type, x-requested-with, cache-control, x-file-name, authorization"
    headers = {"Origin": "https://example.org", "Access-Control-Request-Method": "POST"}
    connection.request("OPTIONS", "/translate", headers=headers | {"Access-Control-Request-Headers": asked})
    response = connection.getresponse()
    allowed = response.headers["Access-Control-Allow-Headers"].lower().split(", ")
    assert response.status == 200 and response.read() == b"" and set(asked.split(", ")) <= set(allowed)
    assert {"GET", "POST"} <= set(response.headers["Access-Control-Allow-Methods"].split(", "))
    connection.close()
