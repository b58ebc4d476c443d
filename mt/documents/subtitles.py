"""Subtitles: SubRip (.srt) and WebVTT (.vtt)."""

import re
from functools import partial

from mt.core.errors import InputError
from mt.data.parsers.codes import Code, Coded, coded
from mt.data.parsers.document import Document, Languages, decoded, in_place, is_text
from mt.data.parsers.layout import cut

TIME = r"(?:\d+:)?\d+:\d\d[.,]\d{1,3}"
TIMES = re.compile(rf"^[ \t]*{TIME}[ \t]*-->[ \t]*{TIME}[^\r\n]*(?:\r\n|\n|\r|\Z)", re.MULTILINE)
CUE_END = re.compile(r"(?>\r\n|\n|\r)[ \t]*[\r\n]|\s*\Z")
TIME_TAG = re.compile(rf"<{TIME}>")
"""In WebVTT, says when the next words are sung."""
STARTS_SPEECH = re.compile(r"[-–—♪#]")
NOT_IN_CUES = re.compile(r"-->|(?>\r\n|\n|\r)\s*(?=[\r\n])")


def read_srt(content: bytes, languages: Languages, retranslate: bool) -> Document:
    """Reads SubRip subtitles. Their times and numbers stay.

    Raises:
        InputError: There are no times in it, or it is not in UTF-8.
    """
    return _read(content, is_vtt=False)


def read_vtt(content: bytes, languages: Languages, retranslate: bool) -> Document:
    """Reads WebVTT subtitles; see ``read_srt``. Notes, styles and settings stay, too."""
    return _read(content, is_vtt=True)


def same_speech(line: str, following: str) -> bool:
    """Whether the second line of a subtitle goes on with the first. It does, unless somebody else speaks."""
    return not STARTS_SPEECH.match(following)


def _read(content: bytes, is_vtt: bool) -> Document:
    text = decoded(content)
    if is_vtt and not text.removeprefix("\ufeff").startswith("WEBVTT"):
        raise InputError("is no WebVTT: it does not begin with WEBVTT")
    passages, found = [], False
    for times in TIMES.finditer(text):
        found = True
        start = times.end()
        blank = CUE_END.search(text, start)
        end = blank.start() if blank and not text[start : start + 1].isspace() else start
        spoken = text[start:end]
        whole = coded(spoken, [Code(*tag.span()) for tag in TIME_TAG.finditer(spoken)] if is_vtt else [])
        layout = cut(whole.text, same_speech, "html" if is_vtt else None, columns=False)
        if is_text(re.sub("<[^<>]*>", "", spoken)):
            passages.append(in_place(start, end, layout, partial(_spelt, whole)))
    if not found and text.strip() and not is_vtt:
        raise InputError("has no subtitles: there is no line such as 00:00:01,000 --> 00:00:04,000")
    return Document(text, tuple(passages))


def _spelt(whole: Coded, text: str) -> str:
    """Returns a text with its codes, in which no subtitle ends and none begins."""
    return NOT_IN_CUES.sub(lambda found: "→" if found.group() == "-->" else "", whole.restored(text))
