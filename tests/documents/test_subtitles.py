"""Subtitles keep their times, and none is lost."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mt.core.errors import InputError
from mt.data.parsers.document import Languages
from mt.documents.subtitles import read_srt, read_vtt

FRENCH = Languages("en", "fr")


def lines(read, content):
    return [line.text for line in read(content.encode(), FRENCH, False).lines()]


def test_a_subtitle_is_translated_as_a_whole_unless_somebody_else_speaks():
    content = (
        "1\n00:00:01,000 --> 00:00:02,000\nHello there,\nhow are you?\n\n"
        "2\r\n00:00:03,000 --> 00:00:04,000\r\n- <i>Fine.</i>\r\n- And you?\r\n\r\n"
        "3\n00:00:05,000 --> 00:00:06,000\n\n4\n00:00:07,000 --> 00:00:08,000\n1984\n"
    )
    document = read_srt(content.encode(), FRENCH, False)
    assert [line.text for line in document.lines()] == ["Hello there, how are you?", "- <i>Fine.</i>", "- And you?"]
    written = document.render(["Bonjour, comment vas-tu ?", "- <i>Bien.</i>", "- Et toi ?"])[0].decode()
    expected = content.replace("Hello there,\nhow are you?", "Bonjour,\ncomment vas-tu ?")
    assert written == expected.replace("Fine", "Bien").replace("And you?", "Et toi ?")


def test_vtt_keeps_notes_voices_and_times_inside_of_subtitles():
    content = (
        "WEBVTT - title\n\nNOTE\na note\n\nSTYLE\n::cue { color: red }\n\nintro\n00:01.000 --> 00:02.000 align:left\n"
        "<v Bob>Hello <00:01.500>there &amp; you</v>\n\n01:00:00.000 --> 01:00:01.000\nTom <b>and</b> Ann\n"
    )
    document = read_vtt(content.encode(), FRENCH, False)
    first, second = document.lines()
    assert (first.text, first.markup) == ("<v Bob>Hello <c-0/>there &amp; you</v>", "html")
    written = document.render(["<v Bob>Salut &lt; <c-0/>toi</v>", second.text])[0].decode()
    assert written == content.replace("Hello <00:01.500>there &amp; you", "Salut &lt; <00:01.500>toi")


@pytest.mark.parametrize(
    ("read", "content", "message"),
    [
        (read_srt, "Hello\n", "has no line such as 00:00:01,000 .*, so it is no SubRip"),
        (read_vtt, "00:01.000 --> 00:02.000\nHello\n", "is no WebVTT"),
        (read_srt, b"1\n00:00:01,000 --> 00:00:02,000\nCaf\xe9\n", "line 3 is not in UTF-8; .* iconv -f WINDOWS-1252"),
    ],
)
def test_what_cannot_be_read_is_told(read, content, message):
    with pytest.raises(InputError, match=message):
        read(content if isinstance(content, bytes) else content.encode(), FRENCH, False)


SPOKEN = st.text(st.sampled_from("ab-é <>/&\n\r♪1>") | st.characters(codec="utf-8"), max_size=25)
TIMES = re.compile(r"^.*-->.*$", re.MULTILINE)


@given(st.lists(SPOKEN, min_size=1, max_size=5), st.sampled_from(["\n", "\r\n"]), st.booleans(), st.data())
def test_times_and_blank_lines_stay(texts, end, is_vtt, data):
    content = f"WEBVTT{end}{end}" if is_vtt else ""
    for number, text in enumerate(texts, 1):
        content += f"{number}{end}00:00:0{number},000 --> 00:00:0{number},500{end}{text}{end}{end}"
    document = (read_vtt if is_vtt else read_srt)(content.encode(), FRENCH, False)
    found = document.lines()
    assert document.render([line.text for line in found])[0] == content.encode()
    translations = [data.draw(SPOKEN.map(lambda text: " ".join(text.split()))) for _ in found]
    written = document.render(translations)[0].decode()
    times = re.compile(r"\d\d:\d\d:\d\d,\d{3} --> [^\r\n]*")
    assert times.findall(written) == times.findall(content)
    assert written.count("-->") <= content.count("-->")

    def blank(text: str) -> int:
        return len(re.findall(r"\n[ \t]*(?:\r\n|\n)", text.replace("\r\n", "\n")))

    assert blank(written) <= blank(content)
