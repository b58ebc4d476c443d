"""Reads JSON files of messages, such as those of i18next."""

import json
import re

from mt.core.errors import InputError
from mt.data.parsers.document import Document, Languages, decode_utf8, is_translatable, replaced_passage
from mt.data.parsers.layout import cut_paragraphs

STRING = re.compile(r'"(?:[^"\\]|\\.)*+"(?P<is_key>\s*+:)?')
"""A JSON string, with the colon after it if it is a key."""


def read_json_messages(content: bytes, languages: Languages, retranslate: bool) -> Document:
    """Read a JSON file. All strings except keys are passages to translate; everything else is kept.

    Raises:
        InputError: The content is not JSON, or not in UTF-8.
    """
    text = decode_utf8(content)
    try:
        json.loads(text.removeprefix("\ufeff"))
    except json.JSONDecodeError as error:
        raise InputError(f"line {error.lineno} is not valid JSON ({error.msg}); correct it") from None
    except ValueError as error:  # such as a number with thousands of digits
        raise InputError(f"is JSON that cannot be read ({error}); shorten this value") from None
    except RecursionError:
        raise InputError("is nested too deeply to be read; move the innermost objects to a file of their own") from None
    is_ascii = text.isascii() and r"\u" in text
    passages = []
    for match in STRING.finditer(text):
        value = "" if match["is_key"] else json.loads(match.group())
        if is_translatable(value):
            layout = cut_paragraphs(value, syntax="vue-i18n")
            passages.append(replaced_passage(*match.span(), layout, lambda new: json.dumps(new, ensure_ascii=is_ascii)))
    return Document(text, tuple(passages))
