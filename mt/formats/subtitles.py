"""Reads subtitles: SubRip (.srt) and WebVTT (.vtt)."""

import re
from functools import partial
from itertools import pairwise
from xml.sax.saxutils import escape

from mt.core.coded_text import Mark, coded_text
from mt.core.errors import InputError
from mt.formats.document import (
    Document,
    Languages,
    Passage,
    decode_utf8,
    is_translatable,
    replacement_passage,
    untranslated_passage,
)
from mt.formats.layout import cut_paragraphs
from mt.formats.tags import coded_markup

TIME = r"\d+[ \t]*:[ \t]*\d+(?:[ \t]*[:.,][ \t]*\d+){0,2}"
TIME_OF_DAY = r"\d+[ \t]*:[ \t]*\d+[ \t]*[^\w:.,]"
"""The start of a range such as 10:30 - 11:30, which may be the text of a subtitle."""
CUE_TIMES = re.compile(
    rf"(?<![^\r\n])[ \t\ufeff]*(?:{TIME}[ \t]*[-–—]{{1,3}}>[^\r\n]*"
    rf"|(?!{TIME_OF_DAY}){TIME}[ \t]*[^\w\r\n]{{1,5}}{TIME}[ \t]*(?![^\r\n]))"
)
"""The line with the times of a subtitle. ``->``, additional spaces and times without milliseconds are permitted."""
MALFORMED_TIMES = re.compile(r"-->|(?<![^\r\n])\d+:\d\d(?::\d\d)?[.,]\d")
"""A part of a line that may be a malformed line of times."""
NUMBER = re.compile(r"(?<![^\r\n])[ \t\ufeff]*\d+\s*\Z")
"""The number of the next subtitle, on the last line before its times."""
VTT_NAME = re.compile(r"(?:(?>\r*\n|\r){2}[^\r\n]+|(?<![^\r\n])\d+)(?>\r*\n|\r)\Z")
"""The number or name of the next subtitle in WebVTT, directly before its times. An empty line precedes a name."""
LINE = re.compile(r"[^\s\ufeff][^\r\n]*")
LINE_END = re.compile(r"\r*\n|\r")
NON_CUE_BLOCK = re.compile(
    r"(?:\A\ufeff?|(?>\r*\n|\r){2})(?:WEBVTT|NOTE|STYLE|REGION)(?!\S)(?:(?!(?>\r*\n|\r){2}).)*+", re.DOTALL
)
"""A WebVTT block other than a subtitle. It ends at an empty line, which must not have spaces."""
CUE_TAG = r"<[^<>]*>|\{\\[^{}]*\}"
KEPT_CODE = re.compile(rf"<{TIME}>|&#0*(?:1[0-3]|[xX]0*[a-dA-D])(?![0-9a-fA-F]);?")
"""A WebVTT tag with the start time of the next words, or the entity of a line break, which must stay an entity."""
SRT_TAG = re.compile(r"<(/?)(b|font|i|s|u)\b[^<]*?>|\{\\[^{}]*\}", re.IGNORECASE)
"""A tag of SubRip, or a code such as {\\an8}."""
SPEECH_MARK = re.compile(rf"(?:{CUE_TAG}|[ \t])*(?:[-‐‑–—―−]++(?!>)|(?:>|&gt;)+|[♪♫♬]+|[#*](?=\s))[ \t]*")
"""The mark of a new speaker or of a song at the beginning of a line. It is not translated."""
SPEAKER = re.compile(rf"(?:{CUE_TAG}|[ \t])*(?:[A-Z][A-Z .']+:|\[)|<v\b")
"""The name of a speaker, or a sound. It also begins a new text, and is translated."""
MAX_END_CHARACTERS = 30
TEXT_END = re.compile(r"(?:\]\s+[^\s]|</\w+>\s+<)\Z")
"""The border of two lines that are separate texts (after a sound, between tags), up to the first character after it."""
FINAL_NOTES = re.compile(rf"(?<![\s♪♫♬])(?:(?:\s*+[♪♫♬]++)++|\s++#)\s*(?:{CUE_TAG})*\Z")
BLANK_LINES = re.compile(r"((?>\r*\n|\r))(?:[^\S\r\n]*(?>\r*\n|\r))+")


def _read_subtitles(is_vtt: bool, content: bytes, languages: Languages, retranslate: bool) -> Document:
    """Read WebVTT or SubRip subtitles. The words of each speaker in each subtitle are a passage to translate.

    Times, numbers, notes, styles and settings are preserved.

    Raises:
        InputError: WebVTT does not begin with WEBVTT, SubRip has no line with times, or the content is not in UTF-8.
    """
    text = decode_utf8(content)
    if is_vtt and not re.match("\ufeff?WEBVTT", text):
        raise InputError("is not a WebVTT file: it does not begin with WEBVTT; set another format")
    times = [match.span() for match in CUE_TIMES.finditer(text)]
    if not is_vtt and text.strip() and not times:
        raise InputError(
            "is not a SubRip file: it has no line such as 00:00:01,000 --> 00:00:04,000; set another format"
        )
    passages = []
    for (_, start), (end, _) in pairwise([(0, 0), *times, (len(text), 0)]):
        body = text[start:end]
        if is_vtt:
            body = NON_CUE_BLOCK.sub(lambda block: re.sub(r"[^\r\n]", " ", block[0]), body)
        name = (VTT_NAME if is_vtt else NUMBER).search(body)
        for speech in _split_speeches(body[: name.start()] if name and end < len(text) else body):
            if passage := _speech_passage(text, start + speech[0], start + speech[1], is_vtt):
                passages.append(passage)
    return Document(text, passages)


read_srt, read_vtt = partial(_read_subtitles, False), partial(_read_subtitles, True)


def _split_speeches(body: str) -> list[tuple[int, int]]:
    """Return the start and end of each speech in a subtitle: the words of one speaker up to a blank line."""
    spans: list[tuple[int, int]] = []
    done = 0
    for line in LINE.finditer(body):
        mark = SPEECH_MARK.match(body, *line.span())
        is_separate = len(LINE_END.findall(body, done, line.start())) != 1  # none before the first line of a file
        done = line.end()
        if spans and not (
            is_separate
            or mark
            or SPEAKER.match(line[0])
            or TEXT_END.search(body, line.start() - MAX_END_CHARACTERS, line.start() + 1)
        ):
            spans[-1] = (spans[-1][0], done)
        else:
            spans.append((mark.end() if mark else line.start(), done))
    return spans


def _speech_passage(text: str, start: int, end: int, is_vtt: bool) -> Passage | None:
    """Return the passage of a speech; None if it has no words.

    A speech that may be a malformed line of times stays untranslated.
    """
    notes = FINAL_NOTES.search(text, start, end)
    speech = text[start : notes.start() if notes else end]
    if not is_translatable(re.sub(CUE_TAG, "", speech)):
        return None
    if MALFORMED_TIMES.search(speech):
        return untranslated_passage(start)
    if is_vtt:
        source = coded_markup(speech, "html", [Mark(*tag.span()) for tag in KEPT_CODE.finditer(speech)])
    else:
        source = coded_text(speech, list(map(_tag_mark, SRT_TAG.finditer(speech))))
    layout = cut_paragraphs(source if is_vtt or source.codes else speech, flows=True)

    def enclose(written: str) -> str:
        # An arrow or a blank line would end the subtitle.
        return BLANK_LINES.sub(r"\1", written.replace("-->", "→")).lstrip("\r\n")

    return replacement_passage(start, start + len(speech), layout, escape if is_vtt else str, enclose=enclose)


def _tag_mark(tag: re.Match[str]) -> Mark:
    """Return a match of SRT_TAG as a mark."""
    name = (tag[2] or "").lower()
    return Mark(*tag.span(), *(("", name) if tag[1] else (name, "")))
