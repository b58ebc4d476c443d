"""Reads files of messages: JSON, such as that of i18next, browser extensions (messages.json) and Flutter (.arb), and
YAML, such as the locales of Rails."""

import json
import re
from collections.abc import Iterator
from functools import partial
from typing import Any

import yaml

from mt.core.coded_text import Splice
from mt.core.errors import InputError
from mt.core.installation import optional_packages
from mt.core.language import base_language, english_name
from mt.formats.document import Document, Languages, Passage, decode_utf8, replacement_passage, untranslated_passage
from mt.formats.layout import BREAK, cut_paragraphs
from mt.formats.messages import has_alternatives
from mt.formats.string_files import is_text

JSON_TOKEN = re.compile(r'(?P<string>"(?:[^"\\]|\\.)*+")(?P<is_key>\s*+:)?|[{}\[\],]')
"""A string, with the colon after it if it is a key, or a bracket, brace or comma."""
STRING_TAG, MAPPING_TAG = "tag:yaml.org,2002:str", "tag:yaml.org,2002:map"
BLOCK_SCALAR = re.compile(r"([|>][^\n]*\n)(\s*\n)*([ \t]+)")
"""The beginning of a block scalar, with its indicators as group 1 and its indentation as group 3."""
TRUTH_VALUE = re.compile("y|yes|n|no|on|off|true|false|null|~", re.IGNORECASE)
"""A plain scalar that is not a string in YAML 1.1, the version that Rails reads."""
PROPERTIES = re.compile(r"\A(?:[&!]\S*\s+)*")
"""The anchor and the tag before a scalar."""


def read_json_messages(content: bytes, languages: Languages, retranslate: bool) -> Document:
    """Read a JSON file. The values that are texts are translated; everything else is preserved.

    In messages of browser extensions, only ``message`` is translated. Keys that begin with ``@`` are skipped. Texts
    with alternatives stay untranslated and are counted, except in files of browser extensions and Flutter, which do not
    have this notation.

    Raises:
        InputError: The content is not JSON, not in UTF-8, or declares another language.
    """
    text = decode_utf8(content)
    try:
        parsed = json.loads(text.removeprefix("\ufeff"))
    except json.JSONDecodeError as error:
        raise InputError(f"line {error.lineno} is not valid JSON ({error.msg}); correct it") from None
    except ValueError as error:  # such as a number with thousands of digits
        raise InputError(f"has a JSON value that cannot be read ({error}); shorten it") from None
    except RecursionError:
        raise InputError("is nested too deeply to be read; move the innermost objects to a separate file") from None
    is_ascii = text.isascii() and r"\u" in text
    fields = parsed if isinstance(parsed, dict) else {}
    is_extension = bool(fields) and all(isinstance(entry, dict) and "message" in entry for entry in fields.values())
    may_have_alternatives = not is_extension and "@@locale" not in fields

    def escape(value: str) -> str:
        return json.dumps(value, ensure_ascii=is_ascii)

    passages, changes = [], []
    for keys, string in _json_values(text):
        value, span = json.loads(string["string"]), string.span("string")
        key = ".".join(map(str, keys))
        if keys == ["@@locale"]:
            languages.check_language(value)
            changes.append(Splice(*span, escape(languages.target.replace("-", "_"))))
        is_skipped = str(*keys[:1]).startswith("@") or (is_extension and keys[1:] != ["message"])
        if not is_skipped and is_text(value):
            passages.append(
                untranslated_passage(span[0], key)
                if may_have_alternatives and has_alternatives(value)
                else replacement_passage(*span, cut_paragraphs(value), escape, key, "javascript-format")
            )
    return Document(text, passages, changes=changes)


def _json_values(text: str) -> Iterator[tuple[list[str | int], re.Match[str]]]:
    """Yield each string that is a value.

    Yields:
        The keys of objects and indices of lists that lead to the value, the outermost first; and its match of
        JSON_TOKEN.
    """
    keys: list[str | int] = []
    for token in JSON_TOKEN.finditer(text):
        symbol = token.group()
        if symbol in "{[":
            keys.append(0 if symbol == "[" else "")
        elif symbol in "}]":
            keys.pop()
        elif symbol == ",":
            if isinstance(keys[-1], int):
                keys[-1] += 1
        elif token["is_key"]:
            keys[-1] = json.loads(token["string"])
        else:
            yield list(keys), token


def read_yaml_messages(content: bytes, languages: Languages, retranslate: bool) -> Document:
    """Read a YAML file. The values that are texts are translated; everything else is preserved.

    If a key of the outermost mapping is the source language, as in Rails, it is replaced by the target language, and
    the values of other languages are preserved.

    Raises:
        InputError: The content is not YAML, not in UTF-8, in another language, or in both languages of the model.
    """
    with optional_packages():
        from ruamel.yaml import YAML, YAMLError  # reads [:year, :month], as PyYAML does not
    text = decode_utf8(content)
    passages: list[Passage] = []
    changes: list[Splice] = []
    reader = YAML(typ="safe", pure=True)
    reader.composer.warn_double_anchors = False  # YAML permits them
    try:
        for root in reader.compose_all(text):
            key, tree = _source_tree(root, languages)
            if key:
                code = _dump_scalar(languages.target.replace("_", "-"), key.style, False)
                changes.append(Splice(key.start_mark.index, key.end_mark.index, code))
            for name, node, is_inside in _yaml_scalars(tree, key.value if key else "", False, set()):
                if is_text(node.value):
                    start, end = node.start_mark.index, node.end_mark.index
                    old = PROPERTIES.sub("", text[start:end])
                    write = partial(_write_yaml, old, node.style, is_inside)
                    layout = cut_paragraphs(node.value, syntax="printf")
                    passages.append(replacement_passage(end - len(old), end, layout, write, name, "ruby-format"))
    except YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f"line {mark.line + 1} " if mark else ""
        raise InputError(f"{line}is not valid YAML ({getattr(error, 'problem', error)}); correct it") from None
    except RecursionError:
        raise InputError("is nested too deeply to be read; move the innermost values to a separate file") from None
    return Document(text, passages, changes=changes)


def _source_tree(root: Any, languages: Languages) -> tuple[Any, Any]:
    """Find the texts in the source language in a YAML document whose outermost keys may be languages, as in Rails.

    Returns:
        The node of the key to replace by the target language, and the node to translate. Without a key of the source
        language, the key is None and the node is the root. If the root has only one language and keys that are not
        languages, all of the root is translated.

    Raises:
        InputError: All languages are other ones, or the target language has texts, too.
    """
    pairs = root.value if root and root.tag == MAPPING_TAG else ()
    trees = {
        key.value: (key, value)
        for key, value in pairs
        if value.tag == MAPPING_TAG and english_name(str(key.value)) != key.value
    }
    source, target = map(base_language, languages)
    codes = [code for code in trees if base_language(code) == source]
    if not codes:
        if len(trees) > 1:
            raise InputError(f"has texts in {', '.join(trees)}, but not in {languages.source}; add these")
        if trees and len(pairs) == 1:
            languages.check_language(*trees)
        return None, root
    if any(base_language(code) == target for code in trees):
        raise InputError(
            f"has texts in {languages.source} and in {languages.target}; make a file of each language, and translate "
            f"that in {languages.source}"
        )
    code = languages.source if languages.source in codes else codes[0]
    key, value = trees[code]
    return key, value if len(trees) > 1 or len(pairs) == 1 else root


def _yaml_scalars(node: Any, key: str, is_inside: bool, visited: set[int]) -> Iterator[tuple[str, Any, bool]]:
    """Yield the strings in a node, except keys. A string that aliases repeat is yielded once.

    Yields:
        The keys of the string, separated by dots; its ruamel.yaml node; and whether it is inside brackets or braces.

    Args:
        node: The node; None for an empty document.
        key: The keys that lead to the node, separated by dots.
        is_inside: Whether the node is inside brackets or braces.
        visited: The ids of the nodes that were already visited. The visited nodes are added.
    """
    if node is None or id(node) in visited:
        return
    visited.add(id(node))
    if isinstance(node.value, str):
        if node.tag == STRING_TAG and (node.style or not TRUTH_VALUE.fullmatch(node.value)):
            yield key, node, is_inside
        return
    is_inside = is_inside or bool(node.flow_style)
    for index, item in enumerate(node.value):
        name, value = (item[0].value, item[1]) if isinstance(item, tuple) else (index, item)
        yield from _yaml_scalars(value, f"{key}.{name}" if key else str(name), is_inside, visited)


def _write_yaml(old: str, style: str | None, is_inside: bool, new: str) -> str:
    """Write a string as YAML, in the style of the scalar that it replaces or, if that is impossible, in quotes.

    Args:
        old: The scalar in the document.
        style: Its style in ruamel.yaml: a quotation mark, ``|``, ``>``, or None for a plain scalar.
        is_inside: Whether it is inside brackets or braces.
        new: The string to write.
    """
    if style not in ("|", ">"):
        return _dump_scalar(new, style, is_inside)
    line_end = "\r\n" if "\r\n" in old else "\n"
    block = BLOCK_SCALAR.match(old)
    if block:
        separator = "\n" if style == "|" else "\n\n"
        lines = separator.join(new.rstrip("\n").split("\n")).split("\n")
        body = "\n".join(f"{block[3]}{line}" if line else "" for line in lines)
        written = block[1].replace("\r", "") + body + "\n"
        rest = old[len(old.rstrip()) :].replace("\r", "")[1:]
        if _load_scalar(written + rest) == new:
            return (written + rest).replace("\n", line_end)
    return _dump_scalar(new, '"', is_inside) + line_end


def _load_scalar(scalar: str) -> object:
    """Return the value of a scalar in YAML, or None if it is not valid."""
    try:
        return yaml.safe_load(f"key: {scalar}")["key"]
    except yaml.YAMLError:
        return None


def _dump_scalar(new: str, style: str | None, is_inside: bool) -> str:
    """Write a string as YAML in a single line. See ``_write_yaml`` for the arguments."""
    style = '"' if BREAK.search(new) else style
    quoted = json.dumps(new, ensure_ascii=False)
    if style == '"' and _load_scalar(quoted) == new:
        return quoted
    dumped = yaml.safe_dump(
        [new], default_style=style, default_flow_style=is_inside, allow_unicode=True, width=float("inf")
    )
    return dumped.strip()[1:-1] if is_inside else dumped[2:].rstrip("\n")
