"""Reads subtitles: SubRip (.srt) and WebVTT (.vtt)."""

import re
from functools import partial

from mt.core.errors import InputError
from mt.data.parsers.codes import TaggedText, replace_codes
from mt.data.parsers.document import Document, Languages, decode_utf8, is_translatable, replaced_passage
from mt.data.parsers.layout import cut_paragraphs
from mt.text.markup.marks import Mark

TIME = r"(?:\d+:)?\d+:\d\d[.,]\d{1,3}"
CUE_TIMES = re.compile(rf"^[ \t]*{TIME}[ \t]*-->[ \t]*{TIME}[^\r\n]*(?:\r\n|\n|\r|\Z)", re.MULTILINE)
"""The line with the times of a subtitle."""
CUE_END = re.compile(r"(?>\r\n|\n|\r)[ \t]*[\r\n]|\s*\Z")
"""The end of a subtitle: a blank line, or the end of the file."""
TIME_TAG = re.compile(rf"<{TIME}>")
"""A WebVTT tag with the start time of the next words."""
STARTS_SPEECH = re.compile(r"[-–—♪#]")
"""The first character of a line if another person begins to speak or sing."""
NOT_IN_CUES = re.compile(r"-->|(?>\r\n|\n|\r)\s*(?=[\r\n])")
"""An arrow or a blank line, neither of which a subtitle may contain."""


def read_srt(content: bytes, languages: Languages, retranslate: bool) -> Document:
    """Read SubRip subtitles. The text of each subtitle is a passage to translate; times and numbers are kept.

    Raises:
        InputError: The content has no line with times, or is not in UTF-8.
    """
    text = decode_utf8(content)
    if text.strip() and not CUE_TIMES.search(text):
        raise InputError("has no line such as 00:00:01,000 --> 00:00:04,000, so it is no SubRip; set another format")
    return _read(text, is_vtt=False)


def read_vtt(content: bytes, languages: Languages, retranslate: bool) -> Document:
    """Read WebVTT subtitles. The text of each subtitle is a passage to translate.

    Times, notes, styles and settings are kept.

    Raises:
        InputError: The content does not begin with WEBVTT, or is not in UTF-8.
    """
    text = decode_utf8(content)
    if not text.removeprefix("\ufeff").startswith("WEBVTT"):
        raise InputError("is no WebVTT, because it does not begin with WEBVTT; set another format")
    return _read(text, is_vtt=True)


def is_same_speech(line: str, following: str) -> bool:
    """Return whether the second of two lines in a subtitle continues the speech of the first."""
    return not STARTS_SPEECH.match(following)


def _read(text: str, is_vtt: bool) -> Document:
    """Return the document with a passage for each subtitle. In WebVTT, subtitles may have tags."""
    passages = []
    for times in CUE_TIMES.finditer(text):
        start = times.end()
        blank_line = CUE_END.search(text, start)
        end = blank_line.start() if blank_line and not text[start : start + 1].isspace() else start
        speech = text[start:end]
        if is_translatable(re.sub("<[^<>]*>", "", speech)):
            tagged = replace_codes(speech, [Mark(*tag.span()) for tag in TIME_TAG.finditer(speech)] if is_vtt else [])
            layout = cut_paragraphs(tagged.text, is_same_speech, "html" if is_vtt else None, columns=False)
            passages.append(replaced_passage(start, end, layout, partial(_restore, tagged)))
    return Document(text, tuple(passages))


def _restore(tagged: TaggedText, text: str) -> str:
    """Put the time tags back into a translation. Replace --> by → and remove blank lines: both would end it."""
    return NOT_IN_CUES.sub(lambda match: "→" if match.group() == "-->" else "", tagged.restore(text))
