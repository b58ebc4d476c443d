"""A sample of the recorded inputs gets the recorded answers, which are sound. ``python -m tests.golden`` takes all."""

import re
from collections import Counter
from html import unescape

import pytest

from tests.golden import recording

STEP = 60
DIGIT = re.compile(r"\d")
TAG = re.compile(r"<(?:/[a-z]+|[a-z]+(?: \w+=\"[^\"<>\s]*\")*/?)>")
PLACEHOLDER = re.compile(r"%s(?!\w)|%\(\w+\)s|\{\{\w+\}\}|(?<!\S)https://\w+\.\w+/\w+")


@pytest.fixture(scope="module")
def content():
    return recording.read()


@pytest.fixture(scope="module")
def answers(content):
    return recording.answers(content, STEP)


@pytest.mark.parametrize("kind", ["lines", "documents"])
def test_answers_are_as_recorded(content, answers, kind):
    assert answers[kind] == content["answers"][kind][::STEP]


def test_lines_keep_their_tags_placeholders_and_digits(content, answers):
    for (source, markup, _, name), hypotheses in zip(content["lines"][::STEP], answers["lines"], strict=True):
        assert hypotheses
        for text, *_, is_source in hypotheses:
            assert len(text.splitlines()) <= 1
            if not is_source and name not in ("off", "unrepaired"):
                for pattern in [TAG, PLACEHOLDER] if markup in ("html", "xml") else [PLACEHOLDER]:
                    assert Counter(pattern.findall(text)) == Counter(pattern.findall(source))
                assert set(DIGIT.findall(unescape(text))) <= set(DIGIT.findall(unescape(source)))
