"""What is done to single sentences."""

import itertools
import re
import unicodedata

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from mt.core.errors import InputError
from mt.core.randomness import generator
from mt.evaluation.robustness import variants
from mt.evaluation.robustness.variants import ITEM_KINDS, Variant, draw_item, find_item, make_lines, without_item
from mt.evaluation.systems import EvaluationSet

LINES = st.text(st.characters(codec="utf-8", exclude_characters="\n"), max_size=60)
WORDS = st.lists(st.sampled_from(["Anna", "the", "don't", "x", "ÉCOLE", "ß", "3.5", "«oui»", "кот", "..."]), min_size=1)
TYPED = WORDS.map(" ".join) | LINES
SEEDS = st.integers(0, 1000)


@given(TYPED)
def test_upper_and_lower_variants(line):
    made = _by_name(_made([f"{line} We saw a dog."], ["Nous."]))
    assert made["upper"].lines[0].source == f"{line} We saw a dog.".upper()
    assert made["lower"].lines[0].source == f"{line} We saw a dog.".replace("İ", "i").lower()


def test_title_capitalizes_every_word():
    assert variants.title('he said: "it\'s a dog," twice', "en") == 'He Said: "It\'s A Dog," Twice'


@given(TYPED)
def test_title_changes_first_letters_only(line):
    made = variants.title(line, "en")
    assert made.upper() == line.upper()
    assert all(word[0].upper() == word[0] for word in made.split())


@given(TYPED, SEEDS)
def test_with_tag_encloses_one_word(line, seed):
    assume("<" not in line)
    made = variants.with_tag(line, True, generator(seed, "test"))
    assert variants.BOLD_TAG.sub("", made) == line
    if variants.word_spans(line, has_spaces=True):
        before, _, rest = made.partition("<b>")
        word, _, after = rest.partition("</b>")
        assert (len(before), len(before + word)) in variants.word_spans(line, has_spaces=True)
        assert "<b>" not in after and "</b>" not in after
    else:
        assert made == line


@given(TYPED)
def test_word_spans_exclude_punctuation(line):
    spans = variants.word_spans(line, has_spaces=True)
    for start, end in spans:
        word = line[start:end]
        assert any(map(str.isalpha, word)) and not any(map(str.isspace, word)) and len(word) > 1
        assert all(unicodedata.category(character)[0] not in "PS" for character in (word[0], word[-1]))
    assert all(first[1] <= second[0] for first, second in zip(spans, spans[1:], strict=False))


# What becomes of a whole test set

SOURCES = [f"We saw number {n} with Anna in town, didn't we?" for n in range(30)] + ["Too short here.", "No."]
REFERENCES = [f"Nous avons vu le {n} avec Anna en ville, non ?" for n in range(30)] + ["Trop court.", "Non."]


def _made(sources=SOURCES, references=REFERENCES, languages=("en", "fr"), sentences=500, seed=1):
    return make_lines(EvaluationSet(list(sources), list(references), *languages), sentences, seed)


def _by_name(lines) -> dict[str, Variant]:
    return {variant.name: variant for variant in lines.variants}


@pytest.mark.parametrize("languages", [("en", "fr"), ("fr", "en"), ("zh", "fr")])
@pytest.mark.parametrize("seed", range(3))
def test_item_variants_have_each_item_once(languages, seed):
    found = _by_name(_made(languages=languages, seed=seed))
    for kind in ITEM_KINDS:
        for line in found[kind].lines:
            assert find_item(line.source, line.item)
            assert line.item in line.source[-50:] and line.source.endswith(("?", "."))
            assert line.reference == line.pairs[0].reference
    assert len({line.item for line in found["number"].lines}) > 20


@pytest.mark.parametrize(
    ("line", "spaces", "expected"),
    [
        ("Come here.", True, "Come here B-207."),
        ("Viens ici !", True, "Viens ici B-207 !"),
        ("Come here", True, "Come here B-207"),
        ("我们走吧。", False, "我们走吧B-207。"),
        ("这是A3。", False, "这是A3 B-207。"),
        ("?!", True, "B-207?!"),
    ],
)
def test_with_item_at_end(line, spaces, expected):
    assert variants.with_item_at_end(line, "B-207", spaces) == expected


def test_make_lines_depends_on_seed_and_sentence():
    one, again, other = _made(seed=1), _made(seed=1), _made(seed=2)
    few = _made(sentences=10)
    assert one == again and one != other
    for variant in one.variants:
        is_random = variant.planted != "nothing" or variant.name == "typos"
        assert (variant.lines != _by_name(other)[variant.name].lines) == is_random
        if variant.name != "three_sentences":  # a sentence becomes the same however many others are chosen
            assert set(_by_name(few)[variant.name].lines) <= set(variant.lines)


def test_make_lines_chooses_sentences_evenly():
    assert [pair.number for pair in _made(sentences=10).chosen] == list(range(1, 31, 3))
    assert len(_made().chosen) == 30


def test_three_sentences_variant_joins_by_language():
    lines = _by_name(_made())["three_sentences"].lines
    assert len(lines) == 10
    assert lines[1].source == " ".join(SOURCES[3:6]) and lines[1].reference == " ".join(REFERENCES[3:6])
    chinese = _by_name(_made(REFERENCES, SOURCES, ("zh", "en")))["three_sentences"].lines
    assert chinese[0].source == "".join(REFERENCES[:3]) and chinese[0].reference == " ".join(SOURCES[:3])


def test_word_variant_has_words_with_translations():
    nouns = [("tree", "Baum"), ("house", "Haus"), ("river", "Fluss")]
    sources = [f"There was a {noun} at number {n} then." for n in range(5) for noun, _ in nouns]
    references = [f"Da stand damals bei {n} so ein {noun}." for n in range(5) for _, noun in nouns]
    lines = _by_name(_made(sources, references, ("en", "de")))["word"].lines
    assert [(line.source, line.reference) for line in lines] == [
        ("Tree", "Baum"),
        ("House", "Haus"),
        ("River", "Fluss"),
    ]
    assert [line.pairs[0].number for line in lines] == [1, 2, 3]


def test_label_bracket_and_slash_variants_use_lexicon():
    words = ["tree", "house", "river", "road", "dog", "town"]
    pairs = list(itertools.combinations(words, 2))  # each word is in as many pairs as the lexicon needs
    sources = [f"There is a {first} and a {second} here." for first, second in pairs]
    references = [f"Da ist ein {first}en und {second}en." for first, second in pairs]
    made = _by_name(_made(sources, references, ("en", "de")))
    for name, pattern in {"label": r"(\w+): ", "bracket": r"\((\w+)\) ", "slash": r"\w+/(\w+)"}.items():
        assert len(made[name].lines) == len(pairs)
        for line in made[name].lines:
            word, translation = (re.search(pattern, text)[1] for text in (line.source, line.reference))
            assert translation == f"{word}en" and word.lower() in words


def test_make_lines_skips_variants_without_changes():
    lines = [f"第{n}次我在城里看见了很多人" for n in range(20)]
    made = _made(lines, lines, ("zh", "ja"))
    assert made.skipped == ["upper", "title", "lower", "no_end", "word", "label", "bracket", "slash"]
    assert "three_sentences" in _made(SOURCES[:2], REFERENCES[:2]).skipped


def test_make_lines_requires_long_sentences():
    with pytest.raises(InputError, match="no sentence of the test set has 4 words or more"):
        _made(["No.", "So what?"], ["Non.", "Et alors ?"])
    with pytest.raises(InputError, match="8 characters"):
        _made(["你好。"], ["Hello."], ("zh", "en"))


ITEMS = st.builds(
    lambda kind, seed: draw_item(kind, generator(seed, "test")), st.sampled_from([*ITEM_KINDS]), st.integers(0, 500)
)
TEXTS = st.lists(st.sampled_from(["un", "chien", "noir", "d'ici", "là-bas", ","]), max_size=6).map(" ".join)


@given(TEXTS, ITEMS, TEXTS)
def test_find_item_and_without_item(before, item, after):
    text = f"{before} {item} {after}".strip()
    start, end = find_item(text, item)
    assert text[start:end] == item
    assert without_item(text, item) == f"{before} {after}".strip()


@given(TEXTS, ITEMS)
def test_find_item_requires_a_single_occurrence(before, item):
    text = f"{before} {item} et {item}"
    assert find_item(text, item) is None
    assert without_item(text, item) == f"{before} et {item}".strip()


@given(TEXTS, ITEMS)
def test_without_item_keeps_text_without_item(text, item):
    assert find_item(text, item) is None and without_item(text, item) == text


WHOLE = [
    ("la 12345.", "12345"), ("价格12345元", "12345"), ("12345에서", "12345"), ("12345: là", "12345"),
    ("12 345 et 12.346", "12345"), ("$19.99", "19.99"), ("19,99 €", "19.99"), ("$19.99", "19,99"),
    ("a B-207-et", "B-207"), ("à anna.berg@example.org !", "anna.berg@example.org"), ("chien🎉", "🎉"), ("«%d»", "%d"),
    ("voir https://www.example.org/news/7.", "https://www.example.org/news/7"), ("{name}!", "{name}"),
]  # fmt: skip
NOT_WHOLE = [
    ("123456", "12345"), ("012345", "12345"), ("12345,6", "12345"), ("1,12345", "12345"), ("119.99", "19.99"),
    ("19.991", "19.99"), ("19.99 ou 19,99", "19.99"), ("AB-207", "B-207"), ("B-2071", "B-207"), ("b-207", "B-207"),
    ("https://www.example.org/news/77", "https://www.example.org/news/7"), ("%days", "%d"), ("🎉🎉", "🎉"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "item"), WHOLE + NOT_WHOLE)
def test_find_item_requires_the_complete_item(text, item):
    assert (find_item(text, item) is not None) == ((text, item) in WHOLE)


@pytest.mark.parametrize("kind", ITEM_KINDS)
def test_draw_item_varies(kind):
    assert len({draw_item(kind, generator(seed, "test")) for seed in range(100)}) >= 7


def test_draw_item_price_separators():
    prices = [draw_item("price", generator(seed, "test")) for seed in range(50)]
    assert {re.fullmatch(r"\d{1,2}(\D)\d\d", price)[1] for price in prices} == {".", ","}
