"""A line to translate and the options of its translation."""

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
    """Escapes the text between the codes of the translation, for example ``&`` in HTML."""
    original: str | None = None
    """The line before markup was parsed, which is returned if the line cannot be translated; None: ``text``."""
    terms: TermFinder | None = None
    """Finds additional terms, which take precedence over the model's glossary."""
    n_best: int = 1
    """Maximum number of translations, if fewer than ``decoding.n_best``."""
    aligned: bool = False
    """Whether the translations come with word alignments, which cost a forced pass through the model."""
    confident: bool = False
    """Whether the best translation comes with its confidence, unless the search is greedy."""
    number: int = 0
    """The index of the line, for the statistics and as a seed of sampling."""

    def with_text(self, text: str, markup: MarkupKind | Literal[False] | None = None) -> "Line":
        """Return the line with another text.

        Args:
            text: The text, which may have tags.
            markup: ``html`` or ``xml`` to parse the tags; any other value for plain text.
        """
        if markup in ("html", "xml"):
            return self._replace(text=coded_markup(text, markup), is_plain=False, escape=encode, original=text)
        return self._replace(text=CodedText(text), is_plain=True, escape=str, original=text)
