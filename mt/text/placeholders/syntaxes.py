"""The placeholders of programming languages and libraries.

There are directives such as ``%s``, and names and numbers in braces. A document names the syntax of a text. Only then
all its placeholders are values: ``%sB`` is ``%s`` and a unit in a string of C, and a word in other text.
"""

import regex

DIRECTIVE = (
    r"%(?:L?\d{1,2}%?(?![\w$%]|\.[\d*]|:[A-Za-z])"  # Qt, KDE and Boost: %1, %L1, %1%
    r"|\{\w++\}"  # Ruby: %{name}
    # %s, %(total)5.2f, %<name>s, %1$s, %0:s, %[1]d, %'x5d, %*d, %<PRIu64>
    r"|(?:\([^()\n]++\)|<\w++>|\d++[$:]|\[\d++\])?(?:'\D(?=\d))?[-+#0',]*+(?:\d++|\*(?:\d++\$)?)?(?:\.(?:\d++|\*)?)?"
    r"(?:(?:hh?|ll?|[Lqjztvw])?[A-Za-z@]|<PRI\w++>))"
)
"""Matches a directive of any language. Two percent signs, which print one, are none."""

SYNTAXES = {
    "printf": regex.compile(rf"%%|{DIRECTIVE}(?:[A-Za-z]{{1,3}}(?![A-Za-z]))?"),  # with a unit that touches: %sB
    "braces": regex.compile(r"\{\{|\}\}|\{[^{}]*\}|[{}]"),
    "icu": regex.compile(r"''|'[{}#|](?:[^']|'')*+'?|\#"),
}
"""Maps each syntax to the pattern of its placeholders."""
