"""Reads the pairs of tables (TSV, CSV, JSON, JSONL, Parquet), and of translation memories in TMX (1.1 to 1.4b), the
exchange format of CAT tools.

If a single row cannot be read, an InputError is yielded in its place. Every reader raises InputError, with the path and
the line, if the file cannot be read or lacks a column.
"""

import json
import logging
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, Final, cast
from xml.etree import ElementTree

import pyarrow
from pyarrow import parquet

from mt.core.errors import InputError, did_you_mean
from mt.core.files import open_input
from mt.core.text_files import Lines, csv_rows, text_lines

logger = logging.getLogger(__name__)

COLUMN_KEYS = "set data.source_column and data.target_column"
Columns = tuple[str | int, str | int]
"""The columns of the sources and of the targets: names, or numbers from 0."""

Pairs = Iterable[tuple[str, str]]
"""Sources with their targets."""
Rows = Iterable[tuple[str, str] | InputError]
"""Pairs, and an error in place of each row that cannot be read although later rows can."""


PROBED_LINES = 10_000
"""The number of lines by which it is detected whether a TSV file has quoted cells."""
QUOTED_CELL = re.compile(r'(?<![^\t\n])"((?:[^"]|"")*)"(?![^\t\n])')
EVENTS: Final = ("start", "end")
UNIT_START, UNIT_END = re.compile(rb"<tu[\s>]"), b"</tu>"
READ_BYTES = 1 << 16
MAX_PART_BYTES = 1 << 23
LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"
HIGHLIGHT = "hi"
"""The only inline element that contains text. All others (bpt, ept, it, ph, ut) contain codes of another program."""
WHITESPACE_CODE = re.compile(r"(\s|\\[nrt]|<br\s*/?>)+", re.IGNORECASE)
"""Matches the content of an inline code that represents whitespace. Such a code, and every code of type ``lb`` (line
break), is replaced by a space, so that the words before and after it are not joined."""


def tsv_pairs(path: Path, columns: Columns) -> Rows:
    """Yield the pairs of a TSV file, whose cells are separated by tabs.

    If the cells are quoted, the file is read by the rules of CSV.
    """
    lines = list(islice(text_lines(path), PROBED_LINES))
    text = "\n".join(lines)
    cells = QUOTED_CELL.findall(text)
    if len(cells) < 0.8 * len(lines):  # the cells with quotation marks may be quoted, with the marks doubled
        cells = [cell for cell in cells if '""' in cell]
    if QUOTED_CELL.sub("", text).count('"') < 0.1 * len(cells):  # nearly all quotation marks are those of CSV
        logger.info("%s: its cells are quoted, so it is read by the rules of CSV", path)
        rows = csv_rows(path, "\t")
    else:
        rows = ((number, line.split("\t")) for number, line in enumerate(text_lines(path), 1))
    return _cell_pairs(path, rows, columns)


def csv_pairs(path: Path, columns: Columns, delimiter: str = ",") -> Rows:
    """Yield the pairs of a CSV file, whose cells may be quoted. A carriage return becomes a space.

    All rows except blank ones must have as many cells as the first row.
    """
    return _cell_pairs(path, csv_rows(path, delimiter), columns, delimiter)


def _cell_pairs(path: Path, rows: Lines, columns: Columns, delimiter: str = "") -> Rows:
    """Yield the cells of two columns as pairs. A blank line yields a pair of empty texts.

    Args:
        path: The file, for messages.
        rows: The line number and the cells of each row.
        columns: The two columns. If they are names, the first row is the header.
        delimiter: The delimiter of a CSV file, whose rows must all have as many cells as the first one.
    """
    width = None
    if isinstance(columns[0], int):
        source, target = map(int, columns)
    else:
        names = next(rows, (0, []))[1]
        width = len(names)
        hint = f"{COLUMN_KEYS}, to column numbers from 0 if the file has no header line"
        source, target = map(names.index, check_columns(columns, names, path, hint))
    for number, cells in rows:
        width = width or len(cells)
        if cells in ([], [""]):
            yield "", ""
        elif delimiter and len(cells) != width:
            yield InputError(
                f"{path}: line {number} has {len(cells)} columns but the first has {width}: put values with the "
                f"delimiter in quotes, or correct data.delimiter={delimiter!r}"
            )
        elif len(cells) <= max(source, target):
            yield InputError(
                f"{path}: line {number} has {len(cells)} columns, numbered from 0, and no number "
                f"{max(source, target)}; correct the line, or {COLUMN_KEYS}"
            )
        else:
            yield cells[source], cells[target]


def jsonl_pairs(path: Path, columns: Columns) -> Rows:
    """Yield the pairs of a file with a JSON object or array in each line. A blank line yields a pair of empty texts."""
    for number, line in enumerate(text_lines(path), 1):
        where = f"{path}: line {number}"
        try:
            yield _json_pair(_parse_json(line, where), columns, where) if line else ("", "")
        except InputError as error:
            yield error


def json_pairs(path: Path, columns: Columns) -> Rows:
    """Yield the pairs of a file with a single JSON array, whose items are an object or array for each pair."""
    rows = _parse_json("\n".join(text_lines(path)), str(path))
    if not isinstance(rows, list):
        raise InputError(
            f'{path}: must be a JSON array of pairs; write [{{"{columns[0]}": "…", "{columns[1]}": "…"}}, …], '
            "or a .jsonl file with an object in each line"
        )
    for number, row in enumerate(rows, 1):
        try:
            yield _json_pair(row, columns, f"{path}: item {number}")
        except InputError as error:
            yield error


def _json_pair(row: Any, columns: Columns, where: str) -> tuple[str, str]:
    """Return the two columns of a row: values of an object, or items of an array.

    If the object lacks the columns, they are looked up in the object at its key ``translation``, as in datasets of the
    Hugging Face hub.

    Raises:
        InputError: The row has no such columns of text. The message begins with ``where``.
    """
    if isinstance(row, list):
        row = dict(enumerate(row))
    if not isinstance(row, dict):
        raise InputError(f"{where}: must be a JSON object or array; correct or remove it")
    if isinstance(row.get("translation"), dict) and not set(columns) <= row.keys():
        row = row["translation"]
    check_columns(columns, list(row), where)
    source, target = (row[column] for column in columns)
    if not isinstance(source, str | None) or not isinstance(target, str | None):
        raise InputError(f"{where}: {columns[0]} and {columns[1]} must be text; correct the line, or {COLUMN_KEYS}")
    return source or "", target or ""


def _parse_json(text: str, where: str) -> object:
    """Parse JSON. The message of an InputError begins with ``where``."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        reason = f"is not valid JSON: {error.msg} at line {error.lineno}, character {error.colno}"
    except ValueError as error:  # such as a number with thousands of digits
        reason = f"cannot be read: {error}"
    except RecursionError:
        reason = "is nested too deeply"
    raise InputError(f"{where} {reason}; correct or remove the line")


def parquet_pairs(path: Path, columns: Columns) -> Rows:
    """Yield the pairs of a Parquet file. Null values are empty texts."""
    try:
        file = parquet.ParquetFile(path)
        names = check_columns(columns, file.schema_arrow.names, path)
        for batch in file.iter_batches(columns=names):
            yield from column_pairs(batch, names, str(path))
    except (OSError, KeyError, pyarrow.ArrowException) as error:
        raise InputError(f"{path}: cannot be read: {error}; save the table again as Parquet") from None


def column_pairs(table: pyarrow.Table | pyarrow.RecordBatch, names: Sequence[str], where: str) -> Pairs:
    """Return the values of two columns of an Arrow table as pairs.

    Null values are empty texts. Bytes that are not UTF-8 become surrogates, which UNDECODABLE matches.

    Args:
        table: Some rows of the table.
        names: The names of the source column and the target column.
        where: The beginning of the message of an InputError.

    Raises:
        InputError: A column does not hold text.
    """
    columns = []
    for name in names:
        try:
            values = table[name].cast(pyarrow.large_binary()).to_pylist()
        except (pyarrow.ArrowInvalid, pyarrow.ArrowNotImplementedError):
            raise InputError(
                f"{where}: {name}: the values are {table[name].type}, not text; {COLUMN_KEYS} to columns of text"
            ) from None
        columns.append(["" if value is None else value.decode("utf-8", "surrogateescape") for value in values])
    return zip(*columns, strict=True)


def check_columns(columns: Columns, names: Sequence[str | int], where: object, hint: str = COLUMN_KEYS) -> list[str]:
    """Return the names of the two columns after checking that both are among ``names``.

    Raises:
        InputError: One of the columns is missing. The message begins with ``where`` and ends with ``hint``.
    """
    for column in columns:
        if column not in names:
            suggestion = did_you_mean(str(column), list(map(str, names)))
            raise InputError(f"{where}: no column {column!r} among {', '.join(map(str, names))}{suggestion} ({hint})")
    return list(map(str, columns))


def tmx_pairs(path: Path, source: str, target: str) -> Iterator[tuple[str, str] | InputError]:
    """Yield the source and target segments of a TMX file, without inline codes.

    An InputError is yielded for a unit that is not well-formed XML. Units without a segment in one of the languages are
    skipped, and their number is logged. ``en`` also selects ``en-US`` in a unit without a segment in plain ``en``. If a
    unit has several segments in a language, the first one is used.

    Args:
        path: A TMX file, which may be compressed.
        source, target: Language codes.

    Raises:
        InputError: The file is corrupted, is not XML, or has no segment in one of the languages.
    """
    all_languages: dict[str, None] = {}  # a set that keeps the order of insertion
    missing = [source, target]
    units = incomplete = 0
    try:
        for unit in _tmx_units(path):
            if isinstance(unit, ElementTree.ParseError):
                yield InputError(f"{path}: a unit is not well-formed XML: {unit}; correct it")
                continue
            segments: dict[str, str] = {}
            regional: dict[str, str] = {}
            for variant in unit.iter("tuv"):
                segment = variant.find("seg")
                language = _standard_code(variant.get(LANGUAGE) or variant.get("lang") or "")
                segments.setdefault(language, "" if segment is None else _tmx_text(segment))
                regional.setdefault(language.split("-")[0], segments[language])
            all_languages |= dict.fromkeys(segments)
            by_code = regional | segments
            pair = {code: by_code[name] for code in (source, target) if (name := _standard_code(code)) in by_code}
            missing = [code for code in missing if code not in pair]
            units += 1
            if len(pair) == 2:
                yield pair[source], pair[target]
            else:
                incomplete += 1
    except (ElementTree.ParseError, ValueError, LookupError, RecursionError) as error:
        # The parser raises ValueError or LookupError for an unknown encoding. Markup that is nested too deeply causes
        # RecursionError.
        raise InputError(f"{path}: is not well-formed XML: {error}; export the translation memory again") from None
    if all_languages and missing:
        raise InputError(
            f"{path}: no language {missing[0]!r} among {', '.join(all_languages)}"
            f"{did_you_mean(missing[0], list(all_languages))} (set data.source_column and data.target_column to codes "
            "of the file)"
        )
    if incomplete:
        logger.info(
            "%s: %s of %s units lack %s or %s and are skipped", path, f"{incomplete:,}", f"{units:,}", source, target
        )


def _tmx_units(path: Path) -> Iterator[ElementTree.Element | ElementTree.ParseError]:
    """Yield every ``tu`` element of a TMX file. Element names lose their namespace.

    An element is emptied when the next one is requested, because a translation memory can be larger than the memory of
    the computer. If a unit has an error, the error is yielded instead, and a new parser reads the next units. It is
    first fed the beginning of the file and as many line breaks as were read, so that its line numbers are right.
    """
    body: ElementTree.Element | None = None
    parser: ElementTree.XMLPullParser = ElementTree.XMLPullParser(EVENTS)
    head, lines = b"", 0
    with open_input(path) as stream:
        for part in _tmx_parts(stream):
            begin = UNIT_START.search(part)
            if begin and not head:
                head = part[: begin.start()]
            parser.feed(part)
            lines += part.count(b"\n")
            try:
                for event, element in cast(Iterator[tuple[str, ElementTree.Element]], parser.read_events()):
                    element.tag = element.tag.rpartition("}")[2]
                    if event == "start" and element.tag == "body":
                        body = element
                    elif event == "end" and element.tag == "tu":
                        yield element
                        if body is not None:
                            body.clear()
            except ElementTree.ParseError as error:
                if not begin or not part.endswith(UNIT_END):
                    raise
                yield error
                parser = ElementTree.XMLPullParser(EVENTS)
                parser.feed(head + b"\n" * (lines - head.count(b"\n")))
        parser.close()


def _tmx_parts(stream: BinaryIO) -> Iterator[bytes]:
    """Yield the content of a file in parts that end after a unit. Content without units has parts of MAX_PART_BYTES."""
    rest = b""
    while content := stream.read(READ_BYTES):
        *units, rest = (rest + content).split(UNIT_END)
        yield from (unit + UNIT_END for unit in units)
        if len(rest) > MAX_PART_BYTES:
            yield rest
            rest = b""
    yield rest


def _tmx_text(element: ElementTree.Element) -> str:
    """Return the text of a segment without its codes. Codes that represent whitespace become spaces."""
    parts = [element.text or ""]
    for inner in element:
        if inner.tag == HIGHLIGHT:
            parts.append(_tmx_text(inner))
        elif inner.get("type") == "lb" or WHITESPACE_CODE.fullmatch("".join(inner.itertext())):
            parts.append(" ")
        parts.append(inner.tail or "")
    return "".join(parts)


def _standard_code(language: str) -> str:
    return language.replace("_", "-").lower()
