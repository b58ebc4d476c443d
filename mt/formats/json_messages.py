"""Reads JSON files of messages, such as those of i18next, browser extensions (messages.json) and Flutter (.arb)."""

import json
import re
from collections.abc import Iterator

from mt.core.errors import InputError
from mt.core.splices import Splice
from mt.formats.document import Document, Languages, decode_utf8, kept_passage, replaced_passage
from mt.formats.layout import cut_paragraphs
from mt.formats.messages import has_alternatives
from mt.formats.string_values import is_text

TOKEN = re.compile(r'(?P<string>"(?:[^"\\]|\\.)*+")(?P<is_key>\s*+:)?|[{}\[\],]')
"""A string, with the colon after it if it is a key, or a sign."""


def read_json_messages(content: bytes, languages: Languages, retranslate: bool) -> Document:
    """Read a JSON file. The values that are texts are passages to translate; everything else is kept.

    In messages of browser extensions, only ``message`` is translated. Keys that begin with ``@`` are not. Texts with
    alternatives, which browser extensions and Flutter do not have, are left as they are and counted.

    Raises:
        InputError: The content is not JSON, not in UTF-8, or declares another language.
    """
    text = decode_utf8(content)
    try:
        parsed = json.loads(text.removeprefix("\ufeff"))
    except json.JSONDecodeError as error:
        raise InputError(f"line {error.lineno} is not valid JSON ({error.msg}); correct it") from None
    except ValueError as error:  # such as a number with thousands of digits
        raise InputError(f"is JSON that cannot be read ({error}); shorten this value") from None
    except RecursionError:
        raise InputError("is nested too deeply to be read; move the innermost objects to a file of their own") from None
    is_ascii = text.isascii() and r"\u" in text
    entries = parsed.values() if isinstance(parsed, dict) else []
    is_extension = bool(entries) and all(isinstance(entry, dict) and "message" in entry for entry in entries)
    may_have_alternatives = not is_extension and not (isinstance(parsed, dict) and "@@locale" in parsed)

    def escape(value: str) -> str:
        return json.dumps(value, ensure_ascii=is_ascii)

    passages, changes = [], []
    for keys, string in _values(text):
        value, span = json.loads(string["string"]), string.span("string")
        key = ".".join(map(str, keys))
        if keys == ["@@locale"]:
            languages.refuse_other(value)
            changes.append(Splice(*span, escape(languages.target.replace("-", "_"))))
        is_skipped = str(*keys[:1]).startswith("@") or (is_extension and keys[1:] != ["message"])
        if not is_skipped and is_text(value):
            passages.append(
                kept_passage(span[0], key)
                if may_have_alternatives and has_alternatives(value)
                else replaced_passage(*span, cut_paragraphs(value), escape, key, "javascript-format")
            )
    return Document(text, passages, changes=changes)


def _values(text: str) -> Iterator[tuple[list[str | int], re.Match[str]]]:
    """Yield each string that is a value: its keys and its indices in lists, the outermost first, and its match."""
    keys: list[str | int] = []
    for token in TOKEN.finditer(text):
        sign = token.group()
        if sign in "{[":
            keys.append(0 if sign == "[" else "")
        elif sign in "}]":
            keys.pop()
        elif sign == ",":
            if isinstance(keys[-1], int):
                keys[-1] += 1
        elif token["is_key"]:
            keys[-1] = json.loads(token["string"])
        else:
            yield list(keys), token
