"""Reads YAML files of messages, such as the locales of Rails."""

import json
import re
from collections.abc import Iterator
from functools import partial
from typing import Any

import yaml

from mt.core.errors import InputError
from mt.core.extras import optional_packages
from mt.core.language import base_language, english_name
from mt.core.splices import Splice
from mt.data.parsers.document import Document, Languages, decode_utf8, replaced_passage
from mt.data.parsers.layout import BREAK, cut_paragraphs
from mt.documents.text_values import is_text

STRING_TAG, MAPPING_TAG = "tag:yaml.org,2002:str", "tag:yaml.org,2002:map"
BLOCK = re.compile(r"([|>][^\n]*\n)(\s*\n)*([ \t]+)")
"""The beginning of a block scalar, with its indicators as group 1 and its indentation as group 3."""
TRUTH_VALUE = re.compile("y|yes|n|no|on|off|true|false|null|~", re.IGNORECASE)
"""A plain scalar that is no string in YAML 1.1, which Rails reads."""
PROPERTIES = re.compile(r"\A(?:[&!]\S*\s+)*")
"""The anchor and the tag in front of a scalar."""
Scalar = tuple[str, Any, bool]
"""A scalar: its keys with dots between them, its node (of ruamel.yaml), and whether it stands in brackets."""


def read_yaml_messages(content: bytes, languages: Languages, retranslate: bool) -> Document:
    """Read a YAML file. The values that are texts are passages to translate; everything else is kept.

    If the only key of the outermost mapping is the source language, as in Rails, it becomes the target language.

    Raises:
        InputError: The content is not YAML, not in UTF-8, or in another language.
    """
    with optional_packages():
        from ruamel.yaml import YAML, YAMLError
    text = decode_utf8(content)
    try:
        roots = list(YAML(typ="safe", pure=True).compose_all(text))
        scalars = [scalar for root in roots for scalar in _scalars(root, "", False, set())]
    except YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f"line {mark.line + 1} " if mark else ""
        raise InputError(f"{line}is not valid YAML ({getattr(error, 'problem', error)}); correct it") from None
    except RecursionError:
        raise InputError("is nested too deeply to be read; move the innermost values to a file of their own") from None
    passages = []
    for key, node, is_inside in scalars:
        if is_text(node.value):
            start, end = node.start_mark.index, node.end_mark.index
            span = end - len(PROPERTIES.sub("", text[start:end])), end
            write = partial(_written, text[slice(*span)], node.style, is_inside)
            layout = cut_paragraphs(node.value, syntax="ruby")
            passages.append(replaced_passage(*span, layout, write, key, "ruby-format"))
    return Document(text, tuple(passages), changes=tuple(_locale(text, roots, languages)))


def _scalars(node: Any, key: str, is_inside: bool, visited: set[int]) -> Iterator[Scalar]:
    """Yield the strings in a node, except keys. Those that an alias repeats are yielded once.

    Args:
        node: The node; None for an empty document.
        key: The keys that lead to the node, with dots between them.
        is_inside: Whether the node stands in brackets.
        visited: The identities of the nodes that were yielded or searched; changed by this function.
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
        yield from _scalars(value, f"{key}.{name}" if key else str(name), is_inside, visited)


def _locale(text: str, roots: list[Any], languages: Languages) -> Iterator[Splice]:
    """Yield the change of the outermost key from the source to the target language.

    Raises:
        InputError: The key is another language.
    """
    for root in roots:
        if root and root.tag == MAPPING_TAG and len(root.value) == 1:
            key, value = root.value[0]
            code = str(key.value)
            if value.tag == MAPPING_TAG and english_name(code) != code:
                languages.refuse_other(code)
            if value.tag == MAPPING_TAG and base_language(code) == base_language(languages.source):
                span = key.start_mark.index, key.end_mark.index
                yield Splice(*span, _dumped(languages.target.replace("_", "-"), key.style, False))


def _written(old: str, style: str | None, is_inside: bool, new: str) -> str:
    """Return a string in the style of the scalar ``old``, or in quotation marks if that style cannot hold it."""
    if style not in ("|", ">"):
        return _dumped(new, style, is_inside)
    line_end = "\r\n" if "\r\n" in old else "\n"
    block = BLOCK.match(old)
    if block:
        separator = "\n" if style == "|" else "\n\n"
        lines = separator.join(new.rstrip("\n").split("\n")).split("\n")
        body = "\n".join(f"{block[3]}{line}" if line else "" for line in lines)
        written = block[1].replace("\r", "") + body + "\n"
        rest = old[len(old.rstrip()) :].replace("\r", "")[1:]
        if _loads(written + rest) == new:
            return (written + rest).replace("\n", line_end)
    return _dumped(new, '"', is_inside) + line_end


def _loads(scalar: str) -> object:
    try:
        return yaml.safe_load(f"key: {scalar}")["key"]
    except yaml.YAMLError:
        return None


def _dumped(new: str, style: str | None, is_inside: bool) -> str:
    """Return a string in one line."""
    style = '"' if BREAK.search(new) else style
    quoted = json.dumps(new, ensure_ascii=False)
    if style == '"' and _loads(quoted) == new:
        return quoted
    dumped = yaml.safe_dump(
        [new], default_style=style, default_flow_style=is_inside, allow_unicode=True, width=float("inf")
    )
    return dumped.strip()[1:-1] if is_inside else dumped[2:].rstrip("\n")
