"""Finds paired marks in plain text, such as ``<1>…</1>``, ``**…**`` and ``{linkStart}…{linkEnd}``.

Their content is translated, and they are kept around it, like the tags of HTML. A mark without a counterpart is text.
"""

import re

import regex

from mt.core.coded_text import Mark, nested_pairs
from mt.formats.kinds import emphasis_mark

_URL = r"\([^()\s]++(?:\s\"[^\"]*+\")?\)"
_LIMIT = "(?i:start|begin|open|end|close)"
_NAME = rf"(?=[\w.-]*?{_LIMIT})[A-Za-z][\w.-]*+"


MARK = regex.compile(
    r"<(?P<tag>[A-Za-z][\w.:-]*+|\d{1,3})(?:\s(?:[^<>\"']|\"[^\"]*+\"|'[^']*+')*+)?(?<!/)>"
    r"|</(?P<tag_end>[A-Za-z][\w.:-]*+|\d{1,3})\s*+>"
    r"|&lt;(?P<escaped>[A-Za-z]\w*+)(?:\s(?:(?!&[lg]t;)[^<>])*+)?(?<!/)&gt;"
    r"|&lt;/(?P<escaped_end>[A-Za-z]\w*+)&gt;"
    rf"|(?P<link>!?\[)(?=(?:[^\[\]]|\[[^\[\]]{{0,100}}\]){{1,300}}+\]{_URL})|(?P<link_end>\]){_URL}"
    r"|\[(?P<code>[A-Za-z]\w{0,20}+)(?:[= ][^\[\]]{0,200}+)?\](?!\()|\[/(?P<code_end>[A-Za-z]\w{0,20}+)\]"
    r"|(?<![^\W_])(?P<letter>[BILSU])<(?![-/.!\d>]|[a-z][^<>\s]*+>)(?![^<>]*+>\()|(?P<letter_end>(?:\|[^<>|\s]*+)?>)"
    r"|\{(?P<curly>\w{1,5}+)>|<(?P<curly_end>\w{1,5}+)\}"  # {b>…<b}, in files of Phrase
    rf"|(?:[%$\#@]?\{{\{{?\s?\$?|[%$])(?P<named>{_NAME})(?:\s?\}}\}}?|[%$])"
    r"|(?<!\w)(?P<bare>(?:START|OPEN|BEGIN)_[A-Z0-9_]++)(?!\w)\s?"
    r"|\s?(?<!\w)(?P<bare_end>(?:CLOSE|END)_[A-Z0-9_]++)(?!\w)"
    rf"|(?P<emphasis>{emphasis_mark('*', 1, 3)}|{emphasis_mark('_', 1, 3)}|{emphasis_mark('~', 1, 2)})"
)
MARK_TRIGGER = regex.compile(r"[<\[{$%*_~]|&lt;")
"""A pattern that matches in every opening mark, so texts without a match need not be searched for pairs."""
_PARTS = regex.compile(r"[A-Z]?[a-z]++|[A-Z]++")
_OPENING, _CLOSING = {"start", "begin", "open"}, {"end", "close"}


def find_pairs(text: str) -> list[tuple[Mark, Mark]]:
    """Return the pairs of an opening and a closing mark in a text, properly nested, in the order of their openings."""
    if not MARK_TRIGGER.search(text):
        return []
    marks = [_read_mark(match) for match in MARK.finditer(text)]
    pairs = [(marks[opening], marks[closing]) for opening, closing in nested_pairs(marks).items()]
    return sorted(pair for pair in pairs if _is_pair(text[pair[0].end : pair[1].start], pair[0].opens))


def mark_keys(text: str) -> tuple[str, str]:
    """Return the ``opens`` and the ``closes`` of a text that is a mark; "" and "" for other texts."""
    match = MARK.fullmatch(text)
    return _read_mark(match)[2:4] if match else ("", "")


def emphasis_keys(match: re.Match[str] | regex.Match[str], in_words: bool = False) -> tuple[str, str]:
    """Return the ``opens`` and the ``closes`` of a delimiter of emphasis.

    The rules are simplified from CommonMark's rules for left- and right-flanking delimiters.

    Args:
        match: A match of the delimiter.
        in_words: Whether the delimiter may be inside a word.
    """
    before, after = match.string[: match.start()][-1:], match.string[match.end() :][:1]
    opens = after.strip() and (in_words or not before.isalnum())
    closes = before.strip() and (in_words or not after.isalnum())
    return match[0] if opens else "", match[0] if closes else ""


def _read_mark(match: regex.Match[str]) -> Mark:
    """Return a match of MARK as a mark.

    The keys of named marks, such as ``{linkStart}``, are the other words of their name (``link``). The keys of other
    marks are their kind and name.
    """
    kind = match.lastgroup or ""
    name = match[kind]
    opens, closes = "", ""
    if kind in ("named", "bare", "bare_end"):
        parts = [part.lower() for part in _PARTS.findall(name)]
        limit = next((part for part in (parts[0], parts[-1]) if part in _OPENING | _CLOSING), "")
        rest = " ".join(part for part in parts if part != limit)
        opens = rest if limit in _OPENING else ""
        closes = rest if limit in _CLOSING else ""
    elif kind == "emphasis":
        opens, closes = emphasis_keys(match)
    else:
        key = kind.removesuffix("_end")
        key += "" if key in ("link", "letter") else f" {name}"
        opens, closes = ("", key) if kind.endswith("_end") else (key, "")
    return Mark(match.start(), match.end(), opens, closes)


def _is_pair(content: str, key: str) -> bool:
    """Return whether marks with this key may enclose a text.

    Emphasis needs letters. Between underscores it also needs a space, because ``_name_`` may be an identifier.
    """
    return key[0] not in "*_~" or any(map(str.isalpha, content)) and (key[0] != "_" or " " in content)
