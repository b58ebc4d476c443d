"""JSON files of messages, such as those of i18next."""

import json
import re

from mt.core.errors import InputError
from mt.data.parsers.document import Document, Languages, decoded, in_place, is_text
from mt.data.parsers.layout import cut

STRING = re.compile(r'"(?:[^"\\]|\\.)*+"(?P<is_key>\s*+:)?')


def read_json(content: bytes, languages: Languages, retranslate: bool) -> Document:
    """Reads a JSON file, of which all strings that are no keys are translated.

    Raises:
        InputError: It is no JSON, or not in UTF-8.
    """
    text = decoded(content)
    try:
        json.loads(text.removeprefix("\ufeff"))
    except json.JSONDecodeError as error:
        raise InputError(f"line {error.lineno} is no JSON: {error.msg}") from None
    except ValueError as error:  # such as a number with thousands of digits
        raise InputError(f"is no JSON that can be read: {error}") from None
    except RecursionError:
        raise InputError("is nested too deeply") from None
    is_ascii = text.isascii() and r"\u" in text
    passages = []
    for string in STRING.finditer(text):
        meant = json.loads(string.group()) if not string["is_key"] else ""
        if is_text(meant):
            layout = cut(meant, accelerators=False)
            passages.append(in_place(*string.span(), layout, lambda one: json.dumps(one, ensure_ascii=is_ascii)))
    return Document(text, tuple(passages))
