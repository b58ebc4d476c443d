"""A line to translate and its options, one value from the readers of requests to the tokenizer and back."""

from collections.abc import Callable
from typing import Literal, NamedTuple

from mt.core.coded_text import CodedText
from mt.formats.tags import MarkupKind, coded_markup, encode
from mt.text.terms import TermFinder


class Line(NamedTuple):
    """A line to translate, with the options of its translation."""

    text: CodedText = CodedText("")
    syntax: str = ""
    """The syntax of its placeholders: a key of SYNTAXES; "" for none."""
    is_plain: bool = False
    """Whether it is plain text, in which ``decoding.markup=auto`` finds pairs of marks such as ``[b]…[/b]``."""
    escape: Callable[[str], str] = str
    """Writes the text between the codes of the translation."""
    original: str | None = None
    """The line as it was written, which comes back if it cannot be translated; None: ``text`` without escapes."""
    terms: TermFinder | None = None
    """Finds further terms, which come before those of the model's own glossary."""
    n_best: int = 1
    """Maximum number of translations, if fewer than ``decoding.n_best``."""
    aligned: bool = False
    """Whether the translations come with word alignments, which cost a forced pass through the model."""
    confident: bool = False
    """Whether the best translation, not found greedily, comes with its confidence."""
    number: int = 0
    """Its number, counted from 0, for the statistics and for the random numbers of sampling."""

    def with_text(self, text: str, markup: MarkupKind | Literal[False] | None = None) -> "Line":
        """Return the line with another text.

        Args:
            text: The text as it is written.
            markup: ``html`` or ``xml`` if it has tags; any other value for plain text.
        """
        if markup in ("html", "xml"):
            return self._replace(text=coded_markup(text, markup), is_plain=False, escape=encode, original=text)
        return self._replace(text=CodedText(text), is_plain=True, escape=str, original=text)
