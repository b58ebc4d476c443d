"""Tokenizers and text layers for several languages, made from invented words in a moment."""

import random
from collections.abc import Iterable
from functools import cache

import regex

from mt.config import TokenizerConfig
from mt.core.coded_text import Span
from mt.storage.model_description import TextLayerDescription
from mt.text.acronyms import acronym_spans
from mt.text.characters import FamiliarCharacters
from mt.text.layer import TextLayer
from mt.text.placeholders import all_placeholders
from mt.text.spelling import Spelling
from mt.text.values import find_values, merge_spans
from mt.tokenizer.tokenizer import Tokenizer, TokenizerPair
from mt.tokenizer.training import train_tokenizer

SLOTS = 5
LATIN = "abcdefghijklmnopqrstuvwxyzäöüßẞığşçéèñåø"
OTHERS = "αβγδεζηθικλμνξοπρσςτυφχψωάέήίόύώ" + "აბგდევზთიკლმნოპჟრსტუფქღყშჩცძწჭხჯჰ"
HAN = "你好世界他说真的我们去海边看船一二三大小红绿花鸟鱼山水"
WORDS = {
    "the": 9000, "dog": 3000, "dig": 500, "word": 900, "went": 90, "Smith": 80, "don't": 700, "doggy": 2, "over": 130,
} | dict.fromkeys(LATIN, 1)  # fmt: skip
"""Words that typing errors are corrected by, among them the letters of the alphabet."""
MARKS = {".": (), "?": ("is", "the", "where's")}
"""What a sentence ends with, by its first word."""
PUNCTUATION = ".,;:!?…'’\"“”„«»()[]{}<>/\\-–—_%&$€£#@*+=~^|`。，！？、：；（）"


def words(letters: str, count: int, seed: int) -> list[str]:
    """Invented words, small, with a capital and in uppercase, so that every letter occurs in both forms."""
    draw = random.Random(seed)
    invented = ["".join(draw.choices(letters, k=draw.randint(1, 7))) for _ in range(count)] + list(letters)
    return [form for word in invented for form in (word, word.capitalize(), word.upper())]


@cache
def tokenizer(letters: str, language: str, kind: str = "char", slots: int = SLOTS) -> Tokenizer:
    """A tokenizer that has a piece for every one of the letters, the digits and the usual punctuation marks."""
    known = words(letters, 150, 1) + list("0123456789") + list(PUNCTUATION)
    # Every letter often enough, because some tokenizers of Chinese leave out rare ones.
    text = [" ".join(random.Random(seed).sample(known, len(known))) for seed in range(5)]
    config = TokenizerConfig(kind=kind, vocabulary_size=1500 if kind == "char" else 900)
    return train_tokenizer(text, (language,), config, all_placeholders(slots))


@cache
def layer(
    source: str = "en",
    target: str = "de",
    slots: int = SLOTS,
    corrects: bool = False,
    marks: bool = False,
    **rules: object,
) -> TextLayer:
    """A text layer. Chinese, Greek and Georgian have tokenizers that know their letters, too. Typing errors are
    corrected by WORDS, if at all, and MARKS put at the end of sentences without punctuation."""
    if marks:
        rules["final_marks"] = MARKS
    return TextLayer(
        TextLayerDescription.model_validate(rules),
        TokenizerPair(*(_of_language(language, slots) for language in (source, target))),
        source,
        target,
        Spelling(WORDS, source) if corrects else None,
    )


def values(text: str, characters: FamiliarCharacters, patterns: Iterable[regex.Pattern[str]] = ()) -> list[Span]:
    """The spans of values."""
    return list(
        merge_spans([*find_values(text, patterns), *characters.find_unfamiliar(text), *acronym_spans(text)], text)
    )


def _of_language(language: str, slots: int) -> Tokenizer:
    if language.startswith("zh"):
        return tokenizer(LATIN + HAN, "zh", slots=slots)
    return tokenizer(LATIN + (OTHERS if language in ("el", "ka") else ""), "xx", slots=slots)
