"""The recorded inputs and answers: a JSON file in xz.

- ``tokenizer``, ``words``, ``terms``: the learned state and the glossary of the text layer.
- ``settings``: by name, the description of the text layer (``rules``), changes of DecodingConfig (``decoding``) and
  arguments of the call (``call``).
- ``lines``: text, markup, syntax and name of the settings of each line, sorted by this name.
- ``documents``: format, content, and whether existing translations are replaced.
- ``versions``: libraries whose other versions may give other answers.
- ``answers``: to all lines, documents and versions.
"""

import base64
import json
import lzma
from importlib.metadata import version
from itertools import groupby
from pathlib import Path

from mt.core.coded_text import CodedText
from mt.core.errors import InputError
from mt.formats.document import Languages
from mt.formats.registry import FORMATS
from mt.storage.model_description import TextLayerDescription
from mt.text.glossary import term_finder
from mt.text.layer import TextLayer
from mt.text.line import Line
from mt.text.spelling import Spelling
from mt.tokenizer.tokenizer import Tokenizer, TokenizerPair
from tests.golden.engine import KeyedTranslator

FILE = Path(__file__).with_name("recording.json.xz")
LANGUAGES = Languages("en", "de")
BYTES = "utf-8", "surrogateescape"
"""The encoding of documents as text."""


def read() -> dict:
    return json.loads(lzma.decompress(FILE.read_bytes()))


def write(recording: dict) -> None:
    FILE.write_bytes(lzma.compress(json.dumps(recording).encode()))


def answers(recording: dict, step: int = 1) -> dict:
    """Return the answers of today's code to every ``step``-th input by kind, as JSON gives them back, rounded."""
    today = {
        "versions": list(map(version, recording["versions"])),
        "lines": answer_lines(recording, step),
        "documents": answer_documents(recording, step),
    }
    return json.loads(json.dumps(today), parse_float=lambda number: round(float(number), 3))


def compared(recording: dict, step: int = 1) -> dict:
    """Return triples of every ``step``-th input, its recorded answer and its present one, by kind."""
    return {
        kind: list(zip(recording[kind][::step], recording["answers"][kind][::step], today, strict=True))
        for kind, today in answers(recording, step).items()
    }


def translator(recording: dict, name: str = "default") -> KeyedTranslator:
    """Return a translator with the settings of a name."""
    settings, tokenizer = recording["settings"][name], Tokenizer(base64.b64decode(recording["tokenizer"]))
    rules = TextLayerDescription.model_validate(settings["rules"])
    spelling = Spelling(recording["words"], LANGUAGES.source, target_language=LANGUAGES.target)
    layer = TextLayer(rules, TokenizerPair(tokenizer, tokenizer), *LANGUAGES, spelling, recording["terms"])
    return KeyedTranslator(layer, **settings["decoding"])


def answer_lines(recording: dict, step: int) -> list:
    """Return the hypotheses of lines: text, score, alignment, confidence, and whether the text is the source."""
    results = []
    lines = [(number, *line) for number, line in enumerate(recording["lines"])][::step]
    for name, group in groupby(lines, key=lambda line: line[-1]):
        own_translator, call = translator(recording, name), dict(recording["settings"][name]["call"])
        glossary = call.pop("glossary", ())
        asked = Line(terms=term_finder(glossary, own_translator.layer) if glossary else None, **call)
        results += own_translator.hypotheses(
            [
                asked._replace(number=number, syntax=syntax).with_text(text, markup)
                for number, text, markup, syntax, _ in group
            ]
        )
    return [
        [(own.text, own.score, own.alignment, own.confidence, own.is_source) for own in hypotheses]
        for hypotheses in results
    ]


def answer_documents(recording: dict, step: int) -> list:
    """Return translated documents with the numbers of their skipped passages, or the message on an unreadable one."""
    own_translator = translator(recording)
    return [answer_document(own_translator, *document) for document in recording["documents"][::step]]


def answer_document(own_translator: KeyedTranslator, name: str, content: str, retranslate: bool) -> list:
    try:
        document = FORMATS[name].read(content.encode(*BYTES), LANGUAGES, retranslate)
        lines = [Line(*line, number=number) for number, line in enumerate(document.lines())]
        results = own_translator.hypotheses(lines)
        translations = [CodedText("") if best.is_source else best.coded for (best,) in results]
        rendered, skipped = document.render(translations)
    except InputError as error:
        return [str(error)]
    return [rendered.decode(*BYTES), skipped]
