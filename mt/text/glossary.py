"""Reads glossaries: tables of terms and their translations in TSV or CSV, and lists of pairs."""

import logging
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from mt.config.text import Terms
from mt.core.errors import InputError, brief
from mt.core.files import UNDECODABLE, format_suffix
from mt.core.language import base_language
from mt.core.text_files import csv_rows, text_lines
from mt.text.layer import TextLayer
from mt.text.segment import LETTER
from mt.text.terms import TermFinder
from mt.text.values import INVENTED

logger = logging.getLogger(__name__)

TSV_SUFFIXES, CSV_SUFFIX = ("", ".tsv", ".txt"), ".csv"
FORMS_SEPARATOR = "|"
HEADER = ("source", "target")
MAX_TERMS, MAX_TERM_CHARACTERS = 200_000, 500

Row = tuple[str, Sequence[str]]
"""The location of a glossary row, for messages, and its cells."""


def read_terms(path: str | None, source: str, target: str) -> Terms:
    """Read the glossary file of ``text.terms``. Log a warning if it has only one column, and so no translations.

    Args:
        path: The file, which may be compressed; None for an empty glossary.
        source, target: The languages of the terms and of their translations.

    Raises:
        InputError: The file cannot be read or used. The message has its path and the line.
    """
    if path is None:
        return {}
    file = Path(path)
    suffix = format_suffix(file).lower()
    if suffix not in (*TSV_SUFFIXES, CSV_SUFFIX):
        start = next(text_lines(file), "")  # refuses a document of an office program by its content
        raise InputError(f"text.terms={path}: unknown format (begins with {brief(start)!r}); give a .tsv or .csv file")
    rows = list(_table_rows(file, suffix == CSV_SUFFIX, source, target))
    terms = terms_from_rows(rows)
    if not terms:
        raise InputError(f"text.terms={path}: the glossary has no terms; add some, or do not set text.terms")
    if len(rows[0][1]) == 1:
        logger.warning(
            "text.terms=%s: has one column, so its terms stay untranslated: %s. If it has translations, separate them "
            "from the terms by %s",
            path,
            f"{len(terms):,}",
            "commas" if suffix == CSV_SUFFIX else "tabs",
        )
    return terms


def _table_rows(path: Path, is_csv: bool, source: str, target: str) -> Iterator[Row]:
    """Yield the rows of a table, without empty rows and a header."""
    lines = csv_rows(path) if is_csv else ((n, line.split("\t")) for n, line in enumerate(text_lines(path), 1))
    headers = HEADER, (base_language(source), base_language(target))
    is_first = True
    for number, cells in lines:
        if any(map(str.strip, cells)):
            if not (is_first and tuple(cell.strip().lower() for cell in cells[:2]) in headers):
                yield f"{path}: line {number}", cells
            is_first = False


def terms_from_rows(rows: Iterable[Row]) -> Terms:
    """Return the glossary with the terms of some rows.

    Args:
        rows: Rows of a term, its translations (one, or several separated by ``|``), and any number of notes. If rows
            have one cell, terms stay untranslated.

    Raises:
        InputError: A row cannot be used, or two rows give different translations of a term.
    """
    terms: dict[str, tuple[str, ...]] = {}
    first_rows: dict[str, str] = {}
    has_targets: bool | None = None
    for where, cells in rows:
        has_targets = len(cells) > 1 if has_targets is None else has_targets
        if has_targets != (len(cells) > 1):
            counts = ("one column", "two or more columns")
            count, first_count = counts if has_targets else reversed(counts)
            raise InputError(f"{where}: has {count}, but the first line has {first_count}; separate all columns alike")
        source, targets = cells[0].strip(), cells[1] if has_targets else cells[0]
        forms = tuple(dict.fromkeys(filter(None, map(str.strip, targets.split(FORMS_SEPARATOR)))))
        for text, name in ((source, "term"), ("".join(forms), "translation")):
            if not text:
                raise InputError(f"{where}: the {name} is empty; fill it in or remove the line")
            if UNDECODABLE.search(text):
                raise InputError(f"{where}: the {name} is not UTF-8; save the file in UTF-8")
            if INVENTED.search(text) or not LETTER.search(text):
                raise InputError(
                    f"{where}: {brief(text)!r} has a link, tag or placeholder, or no letter, so it is always copied; "
                    "remove the line"
                )
        if max(map(len, (source, *forms))) > MAX_TERM_CHARACTERS:
            raise InputError(f"{where}: has more than {MAX_TERM_CHARACTERS} characters; shorten the term")
        if terms.setdefault(source, forms) != forms:
            raise InputError(
                f"{where}: {brief(source)!r} has another translation at {first_rows[source]}; remove one of the "
                f"lines, or write both translations in one: {FORMS_SEPARATOR.join((*terms[source], *forms))}"
            )
        first_rows.setdefault(source, where)
        if len(terms) > MAX_TERMS:
            raise InputError(f"{where}: a glossary has at most {MAX_TERMS:,} terms; remove the others")
    return terms


def validate_pairs(pairs: object) -> Sequence[Sequence[str]]:
    """Return a list of [term, translation] pairs. Raise InputError if the value is anything else."""
    if not isinstance(pairs, list | tuple) or not all(
        isinstance(pair, list | tuple) and len(pair) == 2 and all(isinstance(text, str) for text in pair)
        for pair in pairs
    ):
        raise InputError("glossary must be a list of pairs: [[source, target], …]")
    return pairs


def term_finder(pairs: object, layer: TextLayer) -> TermFinder:
    """Return a finder of the terms of a glossary.

    Args:
        pairs: A list of [term, translation] pairs.
        layer: The text layer of the model.

    Raises:
        InputError: ``pairs`` is not such a list, a pair cannot be used, or the text layer is off.
    """
    if not layer.phenomena:
        raise InputError("glossary: this model has no text layer (text.enabled=false); leave the glossary out")
    rows = ((f"glossary: pair {number}", pair) for number, pair in enumerate(validate_pairs(pairs), 1))
    return TermFinder(terms_from_rows(rows), layer.source_language)
