"""The text layer as a whole: preparing lines and pairs, and restoring translations."""

import pickle
from dataclasses import replace

import pytest
import regex
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mt.core.files import UNDECODABLE
from mt.storage.model_description import TextLayerDescription
from mt.text.layer import TextLayer
from mt.text.numbers import is_plain_number
from mt.text.placeholders import (
    FIRST_NUMBER_PLACEHOLDER,
    PLACEHOLDER,
    placeholder,
)
from mt.text.segment import Case, Segment
from mt.text.sentences import COLUMN, split_sentences
from mt.text.spelling import Spelling
from mt.text.values import Replacement
from tests import languages

A, B, C, D, E = map(placeholder, range(5))
N, M = placeholder(FIRST_NUMBER_PLACEHOLDER), placeholder(FIRST_NUMBER_PLACEHOLDER + 1)
LINE_PARTS = [
    "\U0010f000", "\U0010f001\U0010f03f", "\U0010f040", "\ue000", "\u200f", "\u202e", "\0", "\ud800",
    "<b>", "</b>", "{x}", "%s", "{{a}}", "&amp;", "https://x.example/a.", "a@b.example", "1,000.5", "½",
    "x²", "😀", "👩‍👩‍👧", "🇫🇷", "1️⃣", "👍🏽", "ALL CAPS HERE NOW", "This Is Title Case", "İSTANBUL ANKARA",
    "İstanbul Ankara İzmir", "STRAẞE IST LANG", "STRASSE", "ΌΣΟΣ ΟΔΟΣ", "ᲡᲐᲥᲐᲠᲗᲕᲔᲚᲝ", "ǅungla", "ⅣⅤⅥⅦ",
    "ⒶⒷⒸⒹ", "слово", "مرحبا", "你好。", "世界！", "龘", " ", "  ", "\n", "\t", "\u00a0", "\u3000", ". ", "! ",
    "? ", "Mr. Smith went. ", "He said no. ", "\u2028", "\r", "\x85", "e\u0301", "\ufeff", "ſ", "ŉ", "ﬁ",
    "ẞ", "ΐ", "word ", "wrod ", "Teh dgo doog ", "HTE DGO WENT ", "Smmith ", "dont ", "don’tt ", "Word ",
    "WORD ", "iPhone ", "McDonald's ", "e.V. ",
]  # fmt: skip
LINES = st.one_of(
    st.text(),
    st.lists(st.one_of(st.sampled_from(LINE_PARTS), st.text(max_size=4)), max_size=15).map("".join),
    st.lists(st.sampled_from(["{x}", "😀", "1,000", " ", "a", "A", ". "]), min_size=20, max_size=80).map("".join),
    st.lists(st.sampled_from(["😀", "👍🏽", " ", "\n"]), max_size=12).map("".join),
    st.tuples(st.sampled_from([" ", "\n ", "\u3000"]), st.text(), st.sampled_from(["", " ", "\t"])).map("".join),
    st.sampled_from(LINE_PARTS).flatmap(
        lambda segment: st.integers(1, 4).map(lambda times: " ".join([segment] * times))
    ),
)
PAIRS = [("en", "de"), ("de", "tr"), ("tr", "en"), ("el", "de"), ("zh", "en"), ("en", "zh"), ("ka", "el")]


def restored(layer: TextLayer, line: str, split: bool = True) -> str:
    return "".join(layer.restore(segment, segment.text) for segment in layer.segment(line, split))


@given(
    pair=st.sampled_from(PAIRS),
    line=LINES,
    split=st.booleans(),
    longest=st.sampled_from([None, 1, 2, 5]),
    marks=st.booleans(),
)
@example(pair=("en", "de"), line=" ".join(["{x}"] * 100) + " a", split=True, longest=None, marks=False)
@example(pair=("en", "zh"), line="SEE {x} AT 1,000 OR 😀. 😀", split=True, longest=None, marks=True)
@example(pair=("tr", "en"), line="İstanbul Ankara İzmir", split=True, longest=3, marks=False)
@example(pair=("de", "tr"), line="Ab Cd. Ef Gh! Ij Kl Mn? OP QR ST", split=True, longest=None, marks=True)
@settings(max_examples=200)
def test_restore_inverts_segment(pair, line, split, longest, marks):
    layer = languages.layer(*pair, corrects=True, marks=marks)
    segments = layer.segment(line, split, max_tokens=longest)
    assert "".join(layer.restore(segment, segment.text) for segment in segments) == UNDECODABLE.sub("\ufffd", line)
    for segment in segments:
        placeholders = PLACEHOLDER.findall(segment.text)
        assert len(placeholders) == len(set(placeholders)) == len(segment.values) <= 2 * languages.SLOTS
        assert [token >= N for token in placeholders] == list(map(is_plain_number, segment.values))
        assert segment.text == segment.text.strip()
        assert not segment.text or regex.search(r"\p{L}", segment.text)
        assert segment.text or not segment.values


@pytest.mark.parametrize(("source", "target"), [("en", "de"), ("tr", "tr"), ("el", "el"), ("en", "zh")])
@given(
    line=LINES, odd=st.text(st.sampled_from("aßﬁŉiıσςΐ B.¿?😀"), max_size=8), copied=st.booleans(), marks=st.booleans()
)
@example(line="SEE {x} AND %s", odd="Straße", copied=False, marks=False)
@example(line="HTE DGO {x} WNET DONT", odd="", copied=True, marks=False)
@example(line="IS TEH DGO", odd="¿ß?", copied=False, marks=True)
@example(line="smith saw smmith. the dog", odd="", copied=True, marks=True)
@example(line="Is teh dgo {x}", odd="", copied=True, marks=True)
def test_positions_agree_with_restore(source, target, line, odd, copied, marks):
    layer = languages.layer(source, target, corrects=True, marks=marks)
    for segment in layer.segment(line):
        translation = segment.text if copied else f"{odd}{segment.text[::-1]}{odd}"
        positions, whole = layer.positions(segment, translation), layer.restore(segment, translation)
        assert len(positions) == len(translation) + 1
        assert positions[0] == len(segment.before) and positions[-1] == len(whole) - len(segment.after)
        assert positions == sorted(positions)
        for token, start, end in zip(translation, positions, positions[1:], strict=False):
            if PLACEHOLDER.match(token):
                assert whole[start:end] == segment.by_placeholder[token]
            elif segment.case is not Case.UPPER and translation != segment.text and end > start:
                assert whole[start:end].lower() == token.lower()


@given(LINES)
def test_disabled_layer_changes_nothing(line):
    layer = languages.layer(enabled=False)
    assert layer.segment(line) == [Segment(line, original=line)]
    assert restored(layer, line) == line
    assert layer.prepare_pair(line, line + "x") == (line, line + "x")
    (segment,) = layer.segment(line)
    assert segment.has_words  # so the model is asked, also for numbers alone
    assert layer.restore(segment, A + line.upper()) == A + line.upper()
    assert layer.positions(segment, f"ß{A}") == [0, 1, 2]


EXAMPLES = [
    # Each is a line and, for each of its segments: text, items, what it was in other case, before, after.
    ("the dog", [("the dog", (), None, "", "")]),
    ("see {x} or %s", [(f"see {A} or {B}", ("{x}", "%s"), None, "", "")]),
    ("1,000 dogs", [(f"{N} dogs", ("1,000",), None, "", "")]),
    ("turn to p. 5", [(f"turn to p. {N}", ("5",), None, "", "")]),
    ("turn to No. 5 😀", [(f"turn to No. {N}", ("5",), None, "", " 😀")]),
    ("buy 1,000", [(f"buy {N}", ("1,000",), None, "", "")]),
    ("buy 1,000 😀", [(f"buy {N}", ("1,000",), None, "", " 😀")]),
    ("→ the dog →", [("the dog", (), None, "→ ", " →")]),
    ("<b>the dog</b>", [(f"{A}the dog{B}", ("<b>", "</b>"), None, "", "")]),
    (" \tthe dog\n", [("the dog", (), None, " \t", "\n")]),
    ("1,000 - 5 😀 !", [("", (), None, "1,000 - 5 😀 !", "")]),
    ("{x}", [("", (), None, "{x}", "")]),
    ("SEE {x} NOW!", [(f"See {A} now!", ("{x}",), f"SEE {A} NOW!", "", "")]),
    ("See The Old {x}", [(f"See the old {A}", ("{x}",), f"See The Old {A}", "", "")]),
    ("USA", [("", (), None, "USA", "")]),
    ("YES", [("YES", (), None, "", "")]),
    ("The dog. It ran.", [("The dog.", (), None, "", " "), ("It ran.", (), None, "", "")]),
    (
        "😀 Hi there. 😀 You there. 5",
        [
            ("Hi there.", (), None, "😀 ", " "),
            ("You there.", (), None, "😀 ", " "),
            ("", (), None, "5", ""),
        ],
    ),
    ("STOP NOW. It ran.", [("Stop now.", (), "STOP NOW.", "", " "), ("It ran.", (), None, "", "")]),
    ("see https://a.example/b. It ran.", [(f"see {A}.", ("https://a.example/b",), None, "", " "),
                                         ("It ran.", (), None, "", "")]),
    ("a {1} {2} {3} {4} {5} {6} b", [(f"a {A} {B} {C} {D} {E}", ("{1}", "{2}", "{3}", "{4}", "{5}"), None,
                                      "", " "), (f"{A} b", ("{6}",), None, "", "")]),
    ("a {1} {2} {3} {4} {5} {6}!", [(f"a {A} {B} {C} {D} {E}", ("{1}", "{2}", "{3}", "{4}", "{5}"), None,
                                     "", " "), ("", (), None, "{6}!", "")]),
]  # fmt: skip


WHOLE = [
    ("😀 the dog. 😀 :)", [("the dog.", (), None, "😀 ", " 😀 :)")]),
    ("the dog. 1,000", [("the dog.", (), None, "", " 1,000")]),
    ("the dog! (1999)", [(f"the dog! ({N})", ("1999",), None, "", "")]),
    ("the dog.” 1999", [("the dog.”", (), None, "", " 1999")]),
    ("😀 1999 the dog", [(f"{N} the dog", ("1999",), None, "😀 ", "")]),
    ("the dog, 1999", [(f"the dog, {N}", ("1999",), None, "", "")]),
    ("Hi. 😀 You. 5", [(f"Hi. {A} You.", ("😀",), None, "", " 5")]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("line", "segments", "split"), [(*one, True) for one in EXAMPLES] + [(*one, False) for one in WHOLE]
)
def test_segment(line, segments, split):
    expected = [
        Segment(text, items, cased or text, before=before, after=after)
        for text, items, cased, before, after in segments
    ]
    found = languages.layer().segment(line, split)
    assert [replace(segment, is_continued=False, case=None) for segment in found] == expected
    assert [segment.case in (Case.UPPER, Case.TITLE) for segment in found] == [bool(one[2]) for one in segments]


@pytest.mark.parametrize("between", ["\t", " \t\t"])
@pytest.mark.parametrize("bullet", ["", "    ", "- ", "-", "  • ", ">> ", "> > ", "— ", "2) ", "(iv) ", "a) ", "* - "])
def test_columns_and_bullets_are_set_aside(bullet, between):
    columns = ["The dog ran.", "12", "It went over."]
    line = between.join(f"{bullet}{column}" for column in columns)
    segments = languages.layer().segment(line)
    assert [segment.text for segment in segments] == ["The dog ran.", "", "It went over."]
    assert "".join(segment.before + segment.text + segment.after for segment in segments) == line


@pytest.mark.parametrize("text", ["-5 dogs", "--dog", "well-known", "a dog) ran", "2)", "-the dog"])
def test_lookalikes_of_bullets_stay_in_their_sentence(text):
    ((segment),) = languages.layer().segment(text)
    assert segment.before in ("", text)


MARKS = ["()", "[]", "“”", "‘’", "**", "–\u00a0", "&\u00a0"]
WRAPPED = st.recursive(
    st.just("The dog ran."), lambda inside: st.builds("{1[0]}{0}{1[1]}".format, inside, st.sampled_from(MARKS))
)


@given(WRAPPED)
def test_rare_punctuation_around_a_sentence_is_an_edge(text):
    rules = TextLayerDescription(rare_characters=dict.fromkeys("()[]“”‘’*–&", 0))
    layer = TextLayer(rules, languages.layer().tokenizers, "en", "de")
    assert [segment.text for segment in layer.segment(text) if segment.text] == ["The dog ran."]


def test_segment_source_has_no_brackets():
    segment = Segment(f"a {A}b{B} {C} d", values=("(“", ")", "–"))
    assert segment.source == f"a b {C} d"
    assert Segment("a").source == "a"


def test_reorder_symbols_keeps_the_order_of_the_source():
    segment = Segment(f"a {A}b{B} {C}", values=("☺", "☹", "x1"))
    assert segment.reorder_symbols(f"{C}{B} b {A}") == f"{C}{A} b {B}"


def test_long_sentences_are_split_into_usual_lengths():
    layer = languages.layer(long_source=24, usual_source=16)
    tokenizer = layer.tokenizers.source
    sentence = "The dog ran to the house and the boy saw it, but he did not go to the dog"
    segments = layer.segment(sentence)
    assert "".join(layer.restore(segment, segment.text) for segment in segments) == sentence
    assert len(segments) > 1 and all(len(tokenizer.encode([segment.text])[0]) <= 16 for segment in segments)
    assert [segment.is_continued for segment in segments] == [True] * (len(segments) - 1) + [False]
    assert [
        segment.added_punctuation
        for segment in languages.layer(marks=True, long_source=24, usual_source=16).segment(sentence)
    ][-1]
    assert len(languages.layer(long_source=200, usual_source=16).segment(sentence)) == 1
    assert len(layer.segment(sentence, max_tokens=200)) == 1
    assert all(len(tokenizer.encode([segment.text])[0]) <= 8 for segment in layer.segment(sentence, max_tokens=8))


def test_uppercase_sentences_are_split_like_lowercase_ones():
    layer = languages.layer(long_source=24, usual_source=16)
    sentence = "The dog ran to the house and the boy saw it, but he did not go to the dog"
    for written in (sentence.upper(), sentence.title()):
        segments = layer.segment(written)
        assert [segment.text for segment in segments] == [segment.text for segment in layer.segment(sentence)]
        assert "".join(layer.restore(segment, segment.text) for segment in segments) == written
        assert {segment.case for segment in segments} == {Case.UPPER if written.isupper() else Case.TITLE}
    with_names = TextLayer(layer.config, layer.tokenizers, "en", "de", Spelling(WITH_NAMES, "en"))
    # Only the first part begins with a capital.
    assert [segment.text for segment in with_names.segment(sentence.upper())] == [
        segment.text for segment in layer.segment(sentence)
    ]


def test_max_sentences_decides_whether_lines_are_split():
    line = "The dog. It ran. He saw."
    for most in (1, 2, 3, 4):
        layer = languages.layer(max_sentences=most)
        assert [segment.text for segment in layer.segment(line)] == (
            [line] if most >= 3 else ["The dog.", "It ran.", "He saw."]
        )
        assert [segment.text for segment in layer.segment(line, split=False)] == [line]


def test_no_sentence_ends_inside_a_term():
    assert len(split_sentences("See Fi. Go! Ku now.", "en")) == 3
    layer = replace(languages.layer(), terms={"Fi. Go! Ku": ("Fi",)})
    assert [segment.source for segment in layer.segment("See Fi. Go! Ku now.")] == ["See Fi. Go! Ku now."]


def test_restore_uppercases_by_the_target_language():
    for target, word, capitals in (("de", "straße", "STRASSE"), ("tr", "istanbul", "İSTANBUL"), ("en", "ice", "ICE")):
        layer = languages.layer("en", target)
        (segment,) = layer.segment("SEE {x} NOW 😀")
        assert layer.restore(segment, f"{word} {A}") == f"{capitals} {{x}} 😀"
        assert layer.restore(segment, f"See {A} now") == "SEE {x} NOW 😀"
        (segment,) = layer.segment("See The Old {x}")
        assert layer.restore(segment, f"{word} {A}") == f"{word} {{x}}"
        (segment,) = layer.segment("see it")
        assert layer.restore(segment, word) == word


@pytest.mark.parametrize(
    ("source", "target", "line", "translations", "expected"),
    [
        ("en", "de", "The dog. It ran.", ["Der Hund.", "Er lief."], "Der Hund. Er lief."),
        ("en", "de", "The dog.  It ran.\n", ["Der Hund.", "Er lief."], "Der Hund.  Er lief.\n"),
        ("en", "zh", "The dog. It ran. ", ["你好。", "世界。"], "你好。世界。"),
        ("en", "zh", "The dog.\tIt ran.", ["你好。", "世界。"], "你好。\t世界。"),
        ("en", "zh", "The dog.  It ran.", ["你好。", "世界。"], "你好。  世界。"),
        ("zh", "en", "你好。世界。", ["Hi there.", "World."], "Hi there. World."),
        ("zh", "en", "你好。 世界。", ["Hi there.", "World."], "Hi there. World."),
        ("zh", "en", "你好。😀世界。", ["Hi there.", "World."], "Hi there. 😀World."),
        ("zh", "en", "5。世界。看。", ["", "World.", "Look."], "5。World. Look."),
        ("zh", "ja", "你好。世界。", ["ba。", "de。"], "ba。de。"),
        ("en", "de", "", [], ""),
    ],
)
def test_adapt_spacing(source, target, line, translations, expected):
    layer = languages.layer(source, target)
    segments = layer.segment(line) if line else []
    whole = [layer.restore(segment, one) for segment, one in zip(segments, translations, strict=True)]
    gaps = layer.adapt_spacing(segments, whole)
    assert len(gaps) == len(segments)
    assert "".join(gaps) == expected
    assert layer.adapt_spacing([], []) == []


SHARED = ["{x}", "%s", "https://a.example/b", "😀", "слово", "B-207", "1999", "\U0010f002", "x²"]
SIDES = st.lists(st.one_of(st.sampled_from(SHARED), st.sampled_from(["word", "Word", "WORD", ".", "你好", "5"]),
                           st.text(max_size=3)), max_size=14).map(" ".join)  # fmt: skip


@pytest.mark.parametrize(("source_language", "target_language"), [("en", "de"), ("en", "zh"), ("zh", "en")])
@given(source=SIDES, target=SIDES, order=st.one_of(st.none(), st.permutations(range(5))))
@example(source="1999 ¢", target="¢ 1999", order=None)
def test_prepare_pair_gives_both_sides_the_same_placeholders(source_language, target_language, source, target, order):
    layer = languages.layer(source_language, target_language)
    sides = [PLACEHOLDER.findall(text) for text in layer.prepare_pair(source, target, (), order)]
    assert sorted(sides[0]) == sorted(sides[1])
    assert len(set(sides[0])) == len(sides[0]) <= layer.placeholder_count
    for kind in (range(FIRST_NUMBER_PLACEHOLDER), range(FIRST_NUMBER_PLACEHOLDER, 2 * FIRST_NUMBER_PLACEHOLDER)):
        used = [token for token in sides[0] if ord(token) - ord(A) in kind]
        assert used == [placeholder(kind.start + number) for number in order or range(5)][: len(used)]


@pytest.mark.parametrize(
    ("pair", "prepared"),
    [
        (("see {x} or %s", "%s oder {x}"), (f"see {A} or {B}", f"{B} oder {A}")),
        (("{x} and {x}", "{x} und {x}"), (f"{A} and {B}", f"{A} und {B}")),
        (("{x} and {x}", "{x} und"), ("{x} and {x}", "{x} und")),
        (("{x} here", "%s hier"), ("{x} here", "%s hier")),
        (("in 1,000.5", "in 1 000,5"), (f"in {N}", f"in {N}")),
        (("3 in {x} or 2", "2 oder {x} in 3"), (f"{N} in {A} or {M}", f"{M} oder {A} in {N}")),
        (("3 in May", "drei im Mai"), ("3 in May", "drei im Mai")),
        (("in 1999", "in 1998"), ("in 1999", "in 1998")),
        (("pay 1.5 of 15", "15 und 1,5"), (f"pay {N} of {M}", f"{M} und {N}")),
        (("1,249.99 at $5", "zu 5 $ 1.249,99"), (f"{N} at {A}", f"zu {A} {N}")),
        (("at 50%, −5 or ٣٤", "34, -5 bei 50 %"), (f"at {A}, {B} or {N}", f"{N}, {B} bei {A}")),
        (("1,250 km or ٥٠٪", "1.250km, 50 %"), (f"{A} or {B}", f"{A}, {B}")),
        (("pay $5", "zahle 5 €"), ("pay $5", "zahle 5 €")),
        (("at ١٬٢٤٩", "zu 1,249"), (f"at {N}", f"zu {N}")),
        (("see AB1C/2", "sieh A1BC/2"), ("see AB1C/2", "sieh A1BC/2")),
        (("at 9:30", "um 930"), ("at 9:30", "um 930")),
        (("SEE THAT {x}", "DAS {x} SEHEN"), (f"See that {A}", f"Das {A} sehen")),
        (("See The Old Dog", "Sieh Den Alten Hund"), ("See the old dog", "Sieh Den Alten Hund")),
        (("see it", "DAS SEHEN"), ("see it", "Das sehen")),
        (("{1} {2}. {3}, {4}; {5}: {6} x", "{6} {5} {4} {3} {2} {1} y"), (
            f"{A} {B}. {C}, {D}; {E}: {{6}} x", f"{{6}} {E} {D} {C} {B} {A} y"
        )),
        (("a \ud800 b", "\udfff c"), (f"a {A} b", f"{A} c")),
        ((f"a {A} b", "c"), ("a \ufffd b", "c")),
        (("ⅣⅤⅥⅦ", "ⒶⒷⒸⒹ"), ("ⅳⅴⅵⅶ", "ⓐⓑⓒⓓ")),
    ],
)  # fmt: skip
def test_prepare_pair(pair, prepared):
    assert languages.layer().prepare_pair(*pair) == prepared


def test_prepare_pair_with_replacements():
    layer, number = languages.layer(), placeholder(FIRST_NUMBER_PLACEHOLDER + 3)
    more = layer.prepare_pair(
        "Anna has {x} of Berg",
        "{x} von Berg hat Anna",
        [Replacement("Berg", "Berg", False), Replacement("Anna", "Anna", True)],
        [3, 1, 0],
    )
    assert more == (f"{number} has {D} of {placeholder(1)}", f"{D} von {placeholder(1)} hat {number}")
    whole = layer.prepare_pair(
        "to Anna@a.example 12.5 b",
        "an Anna@a.example 12.5 b",
        [Replacement("Anna", "Anna", False), Replacement("12", "12", False)],
    )
    assert whole == (f"to {A} {N} b", f"an {A} {N} b")
    inner = layer.prepare_pair("to x@Anna.example b", "an x@Anna.example b", [Replacement("Anna", "Anna", False)])
    assert inner == (f"to {A} b", f"an {A} b")
    last = layer.prepare_pair("to x@a.example b", "an x@a.example b", [Replacement("example", "example", True)])
    assert last == (f"to {A} b", f"an {A} b")
    one_side = layer.prepare_pair("to Anna@a.example b", "an Anna b", [Replacement("Anna", "Anna", False)])
    assert one_side == ("to Anna@a.example b", "an Anna b")
    translated = layer.prepare_pair(
        "a dog sees {x}", "{x} sieht ein Hund", [Replacement("sees", "sieht", False), Replacement("dog", "Hund", False)]
    )
    assert translated == (f"a {A} {B} {C}", f"{C} {B} ein {A}")
    assert layer.prepare_pair("a {x}", "b {x}", (), []) == ("a {x}", "b {x}")


@given(LINES, st.sampled_from([("ba", "fi"), ("Ba", "Fi"), ("BABA", "FIFI")]))
def test_prepare_pair_agrees_with_segment(line, words):
    """What a model is trained on is what it translates later."""
    layer = languages.layer("en", "en")
    line = f"{words[0]} {line} {words[1]}"
    segments = layer.segment(line, split=False)
    if len(segments) == 1 and not segments[0].anchors and segments[0].text and not PLACEHOLDER.search(line):
        assert layer.prepare_pair(line, line)[0] == segments[0].text


def test_text_layer_is_pickled():
    """It gets it as a pickle."""
    layer = languages.layer("en", "de")
    copy = pickle.loads(pickle.dumps(layer))
    pair = "Ring 030 1234 at 7 😀: https://x.example/a", "Ring 030 1234 um 7 😀: https://x.example/a"
    assert copy.prepare_pair(*pair) == layer.prepare_pair(*pair) != pair
    assert copy.segment("Teh dgo doog went.") == layer.segment("Teh dgo doog went.")
    assert copy.tokenizers.joint == layer.tokenizers.joint
    assert copy.tokenizers.target.model == layer.tokenizers.target.model


WITH_NAMES = {"Tom": 5, "Boston": 3, "I": 9, "am": 4, "where": 2, "is": 8}


@pytest.mark.parametrize(
    ("line", "texts"),
    [
        ("WHERE IS TOM? I AM IN BOSTON.", ["Where is Tom? I am in Boston."]),
        ("Where Is Tom In Boston", ["Where is Tom in Boston"]),
        ("where is tom? i am in boston.", ["Where is Tom? I am in Boston."]),
        ("where is tom? i am in Rome.", ["where is tom? i am in Rome."]),
        ("is tom", ["is tom"]),
        ("3 cats saw tom. and me", [f"{placeholder(FIRST_NUMBER_PLACEHOLDER)} cats saw Tom. And me"]),
    ],
)
def test_names_and_starts_of_sentences_are_capitalized(line, texts):
    usual = languages.layer(max_sentences=2)
    usual = TextLayer(usual.config, usual.tokenizers, "en", "de", Spelling(WITH_NAMES, "en"))
    segments = usual.segment(line)
    assert [segment.text for segment in segments] == texts
    # A model learns from such lines what it gets of them.
    assert usual.prepare_pair(line, "Ja.")[0].replace("3", texts[0][0]) == texts[0]
    assert "".join(usual.restore(segment, segment.text) for segment in segments) == line


def test_training_text_in_lowercase_disables_truecasing():
    plain = languages.layer()
    plain = TextLayer(plain.config, plain.tokenizers, "en", "de", Spelling({"where": 3, "tom": 2}, "en"))
    assert plain.segment("where is tom now?")[0].text == "where is tom now?"


@pytest.mark.parametrize("period", [">", ">>a ", "-", "- ", "> "])
def test_many_bullets_take_linear_time(period):
    line = period * (100_000 // len(period)) + "a"
    assert "".join(map("".join, COLUMN.findall(line))) == line


def test_prepare_pair_removes_rare_brackets():
    rules = TextLayerDescription(rare_characters=dict.fromkeys("()–", 0))
    layer = TextLayer(rules, languages.layer().tokenizers, "en", "de")
    pair = layer.prepare_pair("The dog (Tom) ran – 12 times.", "Der Hund (Tom) lief – 12 Mal.")
    assert pair == (f"The dog Tom ran {A} {N} times.", f"Der Hund Tom lief {A} {N} Mal.")
    assert layer.segment("The dog(Tom) ran – 12 times.")[0].source == f"The dogTom ran {C} {N} times."
    assert layer.prepare_pair("The dog (Tom) ran.", "Der Hund lief.")[0] == "The dog (Tom) ran."  # on one side only


def test_closing_brackets_stay_in_their_sentence():
    rules = TextLayerDescription(rare_characters=dict.fromkeys('()"', 0), final_marks=languages.MARKS)
    layer = TextLayer(rules, languages.layer().tokenizers, "en", "de")
    line = 'He saw "the dog." The boy saw it("too.")'
    segments = layer.segment(line)
    assert [segment.source for segment in segments] == ["He saw the dog.", "The boy saw ittoo."]
    assert not any(segment.added_punctuation for segment in segments)
    assert "".join(layer.restore(segment, segment.text) for segment in segments) == line
