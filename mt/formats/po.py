"""Reads gettext's PO files and templates (.pot), as documents to translate or as parallel text.

A translated file differs from the original only in ``msgstr``, in the flag ``fuzzy`` and in header fields that were
missing.
"""

import re
from collections.abc import Iterator
from functools import partial
from gettext import c2py  # the parser of plural expressions in Python's standard library
from typing import NamedTuple

from mt.core.coded_text import CodedText, Splice
from mt.core.errors import InputError
from mt.core.files import UNDECODABLE
from mt.core.language import base_language
from mt.formats.document import Document, Languages, Passage, decode_declared, line_pairs
from mt.formats.kinds import NON_TRANSLATABLE
from mt.formats.layout import cut_paragraphs
from mt.formats.messages import placeholder_syntax
from mt.formats.po_entries import Entry, format_statement, parse_entries

PO_CHARSET = re.compile(rb'"Content-Type:[^"\n]*?charset=([^\s"\\;]+)', re.IGNORECASE)

PLURAL_RULES = {
    "nplurals=1; plural=0;": "id ja ko lo ms my th vi zh",
    "nplurals=2; plural=(n != 1);": (
        "af az bg bn ca da de el en eo es et eu fi fo fy gl gu ha he hi hu ia it ka kk kn ku ky lb ml mn mr nb ne nl "
        "nn no or pa ps pt rm so sq sv sw ta te tk tr ug ur uz"
    ),
    "nplurals=2; plural=(n%10!=1 || n%100==11);": "is",
    "nplurals=2; plural=(n > 1);": "am fa fil fr ln mg oc ti tl wa",
    "nplurals=3; plural=(n%10==1 && n%100!=11 ? 0 : n%10>=2 && n%10<=4 && (n%100<10 || n%100>=20) ? 1 : 2);": (
        "be bs hr ru sr uk"
    ),
    "nplurals=3; plural=(n==1) ? 0 : (n>=2 && n<=4) ? 1 : 2;": "cs sk",
    "nplurals=3; plural=(n==1 ? 0 : n%10>=2 && n%10<=4 && (n%100<10 || n%100>=20) ? 1 : 2);": "pl",
    "nplurals=3; plural=(n%10==1 && n%100!=11 ? 0 : n%10>=2 && (n%100<10 || n%100>=20) ? 1 : 2);": "lt",
    "nplurals=3; plural=(n%10==1 && n%100!=11 ? 0 : n != 0 ? 1 : 2);": "lv",
    "nplurals=3; plural=n==1 ? 0 : (n==0 || (n%100 > 0 && n%100 < 20)) ? 1 : 2;": "ro",
    "nplurals=4; plural=(n%100==1 ? 0 : n%100==2 ? 1 : n%100==3 || n%100==4 ? 2 : 3);": "sl",
    "nplurals=3; plural=n==1 ? 0 : n==2 ? 1 : 2;": "ga",
    "nplurals=6; plural=n==0 ? 0 : n==1 ? 1 : n==2 ? 2 : n%100>=3 && n%100<=10 ? 3 : n%100>=11 ? 4 : 5;": "ar",
}
"""Maps the value of the header field Plural-Forms to the languages that use it."""
PLURAL_FORMS = re.compile(r"\s*nplurals\s*=\s*(\d{1,3})\s*;\s*plural\s*=\s*([^;]+?)\s*;?\s*")
SAMPLED_NUMBERS = range(1000)
"""The numbers for which an expression is computed to check it."""
MAX_NUMBERS_OF_RARE_FORM = 5
"""gettext accepts a form without its number, such as ``one file`` for ``%d file``, if the form is used for at most this
many of SAMPLED_NUMBERS."""


class PluralRule(NamedTuple):
    """The plural rule of a PO file's header, which maps each number to the index of a plural form, from 0."""

    header: str
    """The value of the header field Plural-Forms: ``nplurals=2; plural=(n != 1);``"""
    forms: int
    """The number of plural forms."""
    singular: int | None
    """The index of the form for the number 1, which other numbers may share. None if there is a single form."""
    singular_is_rare: bool
    """Whether at most MAX_NUMBERS_OF_RARE_FORM of SAMPLED_NUMBERS have the same form as the number 1."""


def plural_rule(language: str) -> PluralRule | None:
    """Return the plural rule of a language, or None for a language that PLURAL_RULES lacks."""
    code = base_language(language)
    header = next((header for header, languages in PLURAL_RULES.items() if code in languages.split()), "")
    return parse_plural_rule(header)


def parse_plural_rule(header: str) -> PluralRule | None:
    """Parse the header field ``Plural-Forms``. Return None if it is empty or the placeholder of a template.

    Raises:
        InputError: The expression cannot be computed, or gives the index of a form that does not exist.
    """
    match = PLURAL_FORMS.fullmatch(header)
    if not match or match[2] == "EXPRESSION":
        return None
    forms = int(match[1])
    try:
        form_of_number = list(map(c2py(match[2]), SAMPLED_NUMBERS))
        if not set(form_of_number) <= set(range(forms)):
            raise ValueError(f"plural={match[2]} has values other than 0 to {forms - 1}")
    except (ArithmeticError, SyntaxError, RecursionError, ValueError) as error:
        raise InputError(
            f"Plural-Forms in its header cannot be computed: {error}; correct or delete this field"
        ) from None
    singular = form_of_number[1]
    is_rare = form_of_number.count(singular) <= MAX_NUMBERS_OF_RARE_FORM
    return PluralRule(header, forms, singular if forms > 1 else None, is_rare)


class PoFile:
    """A parsed PO file: its text, its entries, and the fields of its header.

    Raises:
        InputError: The content is not a PO file.
    """

    def __init__(self, content: bytes) -> None:
        declared = PO_CHARSET.search(content)
        encoding = declared[1].decode("ascii", "replace") if declared else "CHARSET"
        self.text, self.encoding = decode_declared(content, "UTF-8" if encoding == "CHARSET" else encoding)
        self.line_end = "\r\n" if "\r\n" in self.text else "\n"
        self.entries = parse_entries(self.text, self.line_end)
        self.header = next((entry for entry in self.entries if entry.is_header), None)
        lines = self.header.forms[0].split("\n") if self.header else []
        self.fields = {
            name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)
        }
        self.language = self.fields.get("language", "")

    def plural_rule(self, target: str) -> PluralRule | None:
        """Return the plural rule of the header or, without one, of the language ``target``; None if it is unknown."""
        return parse_plural_rule(self.fields.get("plural-forms", "")) or plural_rule(target)

    def encode(self, text: str) -> bytes:
        try:
            return text.encode(self.encoding)
        except UnicodeEncodeError as error:
            raise InputError(
                f"is in {self.encoding}, which has no {error.object[error.start]}; convert it with: msgconv -t UTF-8"
            ) from None


def read_po(content: bytes, languages: Languages, retranslate: bool) -> Document:
    """Read a PO file as a document to translate.

    Args:
        content: The content of the file.
        languages: The languages of the model.
        retranslate: Whether to also translate the entries that already have a translation.

    Raises:
        InputError: The content is not a PO file, or its header names another target language.
    """
    file = PoFile(content)
    if file.language and not languages.match(languages.source, file.language):
        raise InputError(
            f"is a translation into {file.language} by its header, and the model translates into {languages.target}; "
            "use a model of that language, or correct the field Language"
        )
    rule = file.plural_rule(languages.target)
    passages, translated = [], 0
    for entry in file.entries:
        if entry.is_header or not all(source.strip() and not UNDECODABLE.search(source) for source in entry.sources):
            continue
        if all(entry.forms) and not retranslate:
            translated += 1
            continue
        flags = entry.flag_names
        layouts = tuple(cut_paragraphs(source, True, placeholder_syntax(flags)) for source in entry.sources)
        write = partial(_translate_entry, entry, rule, retranslate)
        passages.append(Passage(layouts, write, entry.start, flags=flags))
    is_plural = any(entry.is_plural for entry in file.entries)
    changes = _complete_header(file, languages, rule if is_plural else None)
    return Document(file.text, passages, file.encode, changes, translated)


def po_pairs(content: bytes, source: str, target: str) -> Iterator[tuple[str, str]]:
    """Yield the translated texts of a PO file as pairs (source, target).

    A text with several lines yields a pair for each line if its translation has the same number of lines
    (``line_pairs``). Entries with plural forms yield the singular and the last form. Fuzzy entries are skipped, because
    nobody has reviewed them.

    Args:
        content: The content of the file.
        source, target: The languages of the pairs. If the file is a translation into ``source``, its sides are
            swapped.

    Raises:
        InputError: The content is not a PO file, or its header names a third language.
    """
    file = PoFile(content)
    codes = [base_language(code) for code in (source, target)]
    if file.language and base_language(file.language) not in codes:
        raise InputError(
            f"is a translation into {file.language} by its header, not into {target}; remove the file from the corpus, "
            "or set data.source_language and data.target_language to its languages"
        )
    is_reversed = base_language(file.language) == codes[0]
    rule = file.plural_rule(source if is_reversed else target)
    for entry in file.entries:
        if entry.is_header or entry.is_fuzzy or not all(entry.forms):
            continue
        pairs = [(entry.sources[-1], entry.forms[-1])]
        singular = rule.singular if rule else 0
        if entry.is_plural and singular is not None:
            pairs.insert(0, (entry.sources[0], entry.forms[singular]))
        for pair in pairs:
            for text, translation in line_pairs(*pair):
                yield (translation, text) if is_reversed else (text, translation)


def _translate_entry(
    entry: Entry, rule: PluralRule | None, retranslate: bool, translations: list[CodedText]
) -> list[Splice]:
    """Return the changes that write a translation into an entry and mark it as fuzzy.

    Plural forms get the translation of the plural. The form for the number 1 gets that of the singular, unless the
    form is also used for many other numbers and the singular does not show the number.

    Args:
        entry: The entry.
        rule: The plural rule of the file, if it is known.
        retranslate: Whether to replace plural forms that already have a translation.
        translations: The translation of each of ``entry.sources``.
    """
    forms = [translation.text for translation in translations]
    if entry.is_plural:
        singular, plural = forms
        forms = [plural] * (rule.forms if rule else max(2, len(entry.forms)))
        number = rule.singular if rule else 0
        items = [sorted(NON_TRANSLATABLE.findall(source)) for source in entry.sources]
        if number is not None and (rule is None or rule.singular_is_rare or items[0] == items[1]):
            forms[number] = singular
        if not retranslate:
            forms[: len(entry.forms)] = [old or new for old, new in zip(entry.forms, forms, strict=False)]
    return [*entry.add_fuzzy_flag(), entry.replace_forms(forms)]


def _complete_header(file: PoFile, languages: Languages, rule: PluralRule | None) -> tuple[Splice, ...]:
    """Return the changes that add missing header fields: encoding, language and, given a rule, plural forms.

    A file without a header gets one. If a field is added to a header, its flag ``fuzzy`` is removed.
    """
    header = file.header
    fields = [
        ("Content-Type", "text/plain; charset=UTF-8", "charset=(?!CHARSET)"),
        ("Language", languages.target.replace("-", "_"), "."),
        ("Plural-Forms", rule.header if rule else "", "^(?!.*nplurals=INTEGER)."),
    ]
    """For each field: its name, its value, and a pattern that does not match the placeholders of templates."""
    text = header.forms[0] if header else "MIME-Version: 1.0\nContent-Transfer-Encoding: 8bit\n"
    for name, value, complete in fields:
        line = re.search(rf"(?im)^{name}:(.*)$\n?", text)
        if line and value and not re.search(complete, line[1].strip()):
            text = f"{text[: line.start()]}{name}: {value}\n{text[line.end() :]}"
        elif value and not line:
            text = f"{text.rstrip()}\n{name}: {value}\n".lstrip()
    if header is None:
        start = int(file.text.startswith("\ufeff"))
        return (
            Splice(
                start, start, file.line_end.join(('msgid ""', format_statement("msgstr", text, file.line_end), "", ""))
            ),
        )
    if text == header.forms[0]:
        return ()
    # gettext ignores a fuzzy header, its encoding and plural rule included.
    unset_fuzzy = [
        Splice(*comment.span(), re.sub(r"\s*fuzzy(,|$)|, fuzzy", "", comment.group())) for comment in header.flags
    ]
    return header.replace_forms([text]), *unset_fuzzy
