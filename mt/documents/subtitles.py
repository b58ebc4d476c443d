"""Subtitles: SubRip (.srt) and WebVTT (.vtt)."""

import re
from functools import partial

from mt.core.errors import InputError
from mt.data.parsers.codes import Code, TaggedText, replace_codes
from mt.data.parsers.document import Document, Languages, decode_utf8, is_translatable, replaced_passage
from mt.data.parsers.layout import cut_paragraphs

TIME = r"(?:\d+:)?\d+:\d\d[.,]\d{1,3}"
TIMES = re.compile(rf"^[ \t]*{TIME}[ \t]*-->[ \t]*{TIME}[^\r\n]*(?:\r\n|\n|\r|\Z)", re.MULTILINE)
CUE_END = re.compile(r"(?>\r\n|\n|\r)[ \t]*[\r\n]|\s*\Z")
TIME_TAG = re.compile(rf"<{TIME}>")
"""In WebVTT, the time when the next words are sung."""
STARTS_SPEECH = re.compile(r"[-–—♪#]")
NOT_IN_CUES = re.compile(r"-->|(?>\r\n|\n|\r)\s*(?=[\r\n])")


def read_srt(content: bytes, languages: Languages, retranslate: bool) -> Document:
    """Read SubRip subtitles. Times and numbers are kept.

    Raises:
        InputError: There are no times in it, or it is not in UTF-8.
    """
    text = decode_utf8(content)
    if text.strip() and not TIMES.search(text):
        raise InputError("has no subtitles: there is no line such as 00:00:01,000 --> 00:00:04,000")
    return _read(text, is_vtt=False)


def read_vtt(content: bytes, languages: Languages, retranslate: bool) -> Document:
    """Read WebVTT subtitles. Times, notes, styles and settings are kept.

    Raises:
        InputError: It does not begin as WebVTT, or is not in UTF-8.
    """
    text = decode_utf8(content)
    if not text.removeprefix("\ufeff").startswith("WEBVTT"):
        raise InputError("is no WebVTT: it does not begin with WEBVTT")
    return _read(text, is_vtt=True)


def is_same_speech(line: str, following: str) -> bool:
    """Return whether the same person speaks in the second line of a subtitle."""
    return not STARTS_SPEECH.match(following)


def _read(text: str, is_vtt: bool) -> Document:
    passages = []
    for times in TIMES.finditer(text):
        start = times.end()
        blank_line = CUE_END.search(text, start)
        end = blank_line.start() if blank_line and not text[start : start + 1].isspace() else start
        speech = text[start:end]
        if is_translatable(re.sub("<[^<>]*>", "", speech)):
            tagged = replace_codes(speech, [Code(*tag.span()) for tag in TIME_TAG.finditer(speech)] if is_vtt else [])
            layout = cut_paragraphs(tagged.text, is_same_speech, "html" if is_vtt else None, columns=False)
            passages.append(replaced_passage(start, end, layout, partial(_restore, tagged)))
    return Document(text, tuple(passages))


def _restore(tagged: TaggedText, text: str) -> str:
    """Put the time tags back into a translation. Replace --> by → and remove blank lines: both would end the cue."""
    return NOT_IN_CUES.sub(lambda mark: "→" if mark.group() == "-->" else "", tagged.restore(text))
