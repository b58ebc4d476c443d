"""The placeholders of programming languages and libraries, by the names of gettext's flags: ``c`` for ``c-format``.

A document names the syntax of a text. Only then its placeholders are values, too: ``%sB`` is ``%s`` and a letter in a
string of C, and a word in other text.
"""

import regex

_PERCENT = (
    r"%\{\w+\}|%(?:\([^()\n]+\)|<\w+>|\d+[$:]|\[\d+\])?[-+#0'I,]*+(?:\d+|\*(?:\d+\$)?)?(?:\.(?:\d+|\*)?)?"
    r"(?:(?:hh?|ll?|[Lqjztw])?[A-Za-z@%]|<PRI\w+>)(?:[A-Za-z]{1,3}(?![A-Za-z]))?"  # a unit that touches: %sB
)
_BRACES = r"\{\{|\}\}|\{[^{}]*\}"
_NUMBERED = r"%L?[0-9]{1,2}%?|%L?n|%%"
_PRINTF = {
    "awk", "c", "d", "elisp", "gcc-internal", "gfc-internal", "go", "java-printf", "javascript", "librep", "lua",
    "modula2", "object-pascal", "objc", "ocaml", "perl", "php", "python", "ruby", "sh-printf", "tcl",
}  # fmt: skip
ORDERED = _PRINTF | {"scheme", "lisp"}
"""The syntaxes of directives such as ``%s`` and ``~a``, which take values in their order unless they have numbers or
names."""

SYNTAXES = {
    name: regex.compile(pattern)
    for names, pattern in (
        (_PRINTF, _PERCENT),
        (["python-brace", "csharp", "java", "c++", "rust", "perl-brace"], _BRACES),
        (["qt", "qt-plural", "kde", "kde-kuit", "ycp", "smalltalk"], _NUMBERED),
        (["boost"], rf"%\|[^|\s]*\||{_PERCENT}|{_NUMBERED}"),
        (["sh"], r"\$(?:\w+|\{\w+\})"),
        (["scheme", "lisp"], r"~[-\d,'#v]*[:@]*[A-Za-z%~(){}\[\];^&|$/<>*?]"),
        (["icu"], r"''|'[{}#|](?:[^']|'')*+'?|\#"),
    )
    for name in names
}
"""Maps each syntax to the pattern of its placeholders."""
