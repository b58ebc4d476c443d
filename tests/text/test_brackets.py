"""Brackets and quotation marks are inserted around the translation of their words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mt.storage.model_description import TextLayerDescription
from mt.text.brackets import bracket_pairs, insert_brackets
from mt.text.layer import TextLayer
from mt.text.placeholders import placeholder
from mt.text.placement import AlignmentLink
from tests import languages

MARKS = [placeholder(number) for number in range(8)]
BRACKETS = ["(", ")", "[", "]", "“", "”", '"', "«", "»", '("', '")', "*"]


@pytest.mark.parametrize(
    ("values", "pairs"),
    [
        (["(", ")"], {0: 1}),
        (["(", "12", "[", "]", ")"], {2: 3, 0: 4}),
        (['"', '"', '"'], {0: 1}),
        (["„", "“"], {0: 1}),
        (["”", "”"], {0: 1}),
        (['("', '")'], {0: 1}),
        ([")", "("], {}),
        (["(", "]"], {}),
        (["x", "x"], {}),
    ],
)
def test_bracket_pairs(values, pairs):
    assert bracket_pairs(values) == pairs


@pytest.mark.parametrize(
    ("source", "translation", "links", "expected"),
    [
        ("a <good> book", "un livre bon", [(2, 6, 9, 12), (7, 11, 3, 8)], "un livre <bon>"),
        ("see <page 3>.", "voir la page 3.", [(4, 8, 8, 12), (9, 10, 13, 14)], "voir la <page 3>."),
        ("he said: <yes", "il dit : oui", [(9, 12, 9, 12)], "il dit : <oui"),
        ("<a> b", "b a", [(0, 1, 2, 3), (2, 3, 0, 1)], "b <a>"),
    ],
)
def test_insert_brackets_follows_word_links(source, translation, links, expected):
    """In the table, < and > are the brackets' placeholders."""
    opening, closing = MARKS[:2]
    masked = source.replace("<", opening).replace(">", closing)
    brackets = {mark: value for mark, value in ((opening, "("), (closing, ")")) if mark in masked}
    result = insert_brackets(masked, brackets, translation, [AlignmentLink(*link) for link in links])
    assert result.replace(opening, "<").replace(closing, ">") == expected


@given(
    words=st.lists(st.sampled_from(["a", "bc", "l'un", ",", "."]), min_size=1, max_size=8),
    translation=st.lists(st.sampled_from(["x", "yz", "l'un", "."]), min_size=1, max_size=8),
    inserted=st.lists(st.tuples(st.integers(0, 8), st.sampled_from(BRACKETS)), max_size=8),
    data=st.data(),
)
def test_insert_brackets_keeps_each_bracket_and_the_content_of_pairs(words, translation, inserted, data):
    value = placeholder(20)
    words.insert(data.draw(st.integers(0, len(words))), value)
    translation.insert(data.draw(st.integers(0, len(translation))), value)
    translation = " ".join(translation)
    inserted = sorted(((min(position, len(words)), value) for position, value in inserted), key=lambda item: item[0])
    parts = [*words]
    for mark, (position, _) in reversed(list(zip(MARKS, inserted, strict=False))):
        parts.insert(position, mark)
    source = " ".join(parts)
    brackets = {mark: value for mark, (_, value) in zip(MARKS, inserted, strict=False)}
    text = "".join(character for character in source if character not in brackets)
    spans = st.tuples(*(st.integers(0, len(side)) for side in (text, text, translation, translation)))
    links = [AlignmentLink(*sorted(link[:2]), *sorted(link[2:])) for link in data.draw(st.lists(spans, max_size=6))]
    result = insert_brackets(source, brackets, translation, links)
    tokens = [*brackets, value]
    assert sorted(character for character in result if character in tokens) == sorted(tokens)
    for opening, closing in bracket_pairs(list(brackets.values())).items():
        pair = tokens[opening], tokens[closing]
        assert result.index(pair[0]) < result.index(pair[1])
        for token in {*tokens} - {*pair}:
            before, after = (text.index(pair[0]) < text.index(token) < text.index(pair[1]) for text in (source, result))
            assert before == after


@pytest.mark.parametrize(
    ("line", "edges"),
    [
        ("(the dog)", [("(", ")")]),
        ("(the dog)s run", [("", "")]),
        ("((the dog)s run)", [("(", ")")]),
        ("(the dog", [("(", "")]),
        ("the (dog", [("", "")]),
    ],
)
def test_edges_split_off_pairs_of_brackets_together(line, edges):
    rules = TextLayerDescription(rare_characters={"(": 0, ")": 0})
    tokenizer = languages.layer().tokenizers
    layer = TextLayer(rules, tokenizer, "en", "de")
    segments = layer.segment(line)
    assert [(segment.before, segment.after) for segment in segments] == edges
    assert "".join(layer.restore(segment, segment.text) for segment in segments) == line
    assert not any(set("()") & set(segment.source) for segment in segments)


@pytest.mark.parametrize(
    ("target", "links", "expected"),
    [
        ("y , x 3.", [(2, 3, 2, 5)], "y , <x> 3."),  # punctuation stays outside
        ("x 3 z.", [(2, 3, 0, 1), (2, 3, 4, 5)], "<x z> 3."),  # a number leaves, and stays in front of the full stop
        ("y est-ce 3.", [(0, 1, 0, 1)], "y <est-ce> 3."),  # without a link of its own, b takes a whole word
    ],
)
def test_insert_brackets_keeps_punctuation_and_numbers_outside(target, links, expected):
    """In the table, < and > are the brackets' placeholders, and 3 is that of a value."""
    opening, closing, value = *MARKS[:2], placeholder(20)
    source = f"a {opening}b{closing} c {value}."
    aligned = [AlignmentLink(*link) for link in links]
    result = insert_brackets(source, {opening: "(", closing: ")"}, target.replace("3", value), aligned)
    assert result.translate({ord(opening): "<", ord(closing): ">", ord(value): "3"}) == expected
