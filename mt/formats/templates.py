"""Finds the constructs of template languages in pages: Jinja, Liquid, Handlebars, Vue, Hugo, ERB, PHP and WordPress."""

import re

from mt.formats.kinds import NON_TRANSLATABLE

_ATTRIBUTES = r"(?:\s+[\w-]+=(?:\"[^\"\]]*+\"|'[^'\]]*+'|[^\s\]\"']++))"
_CODE = r"(?:highlight|comment|verbatim)\b"
TEMPLATE = re.compile(
    rf"\{{%-?\s*{_CODE}(?:(?!\{{%-?\s*(?:end)?{_CODE}).)*+\{{%-?\s*end{_CODE}\s*-?%\}}|"
    r"\{\{\{?(?:(?!\}\}|\{\{).)*+\}\}\}?|\{%(?:(?!%\}|\{%).)*+%\}|\{\#(?:(?!\#\}|\{\#).)*+\#\}"
    r"|<%(?:(?!%>|<%).)*+%>|<\?(?:(?!\?>|<\?).)*+\?>"
    rf"|\[[a-z][\w-]*+{_ATTRIBUTES}++\s*+/?\](?!\()|\[/[a-z][\w-]*+\](?!\()",
    re.DOTALL,
)
"""A construct: ``{{ name }}``, ``{% if x %}``, ``{# note #}``, ``<%= x %>``, ``<?php x ?>``, ``[caption id="a"]``.

The construct of a block of code includes the code."""
CONTROL = re.compile(r"\{%|\{\{\s*(?:[#/^<%]|else\b)|<%(?![=-])|<\?(?!=)|\[")
"""The start of a construct that controls or encloses the text beside it."""
BRANCH = re.compile(r"\{%-?\s*(?:el|when|plural)|\{\{\s*(?:else|\^)|<%-?\s*(?:\}\s*)?el")
"""The start of a construct that divides the text of another one, such as ``{% else %}``."""
_KEYS = re.compile(r"(?:\{\{[<%]?|\{%|\[)-?\s*(?:(?P<closes>/|end)|\#)?\s*(?P<name>\w+)")


def mask_templates(text: str) -> str:
    """Return a text of the same length with blanks and private-use characters in place of its constructs."""
    return TEMPLATE.sub(lambda match: " " + "\ue000" * (len(match.group()) - 2) + " ", text)


def is_protected(construct: str) -> bool:
    """Return whether the translator recognises an expression as a placeholder, and HTML has no codes for it."""
    return NON_TRANSLATABLE.fullmatch(construct) is not None and not re.search("[<>&]", construct)


def construct_keys(construct: str) -> tuple[str, str]:
    """Return which construct a statement starts and which it ends, as ``opens`` and ``closes`` of ``Mark``."""
    match = _KEYS.match(construct) if CONTROL.match(construct) else None
    if not match:
        return "", ""
    return ("", match["name"]) if match["closes"] else (match["name"], "")
