"""ICU messages: their texts are found, and other messages are recognized."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mt.formats.messages import has_alternatives, message_arguments

WORDS = st.sampled_from(["a dog", "# dogs", "{name} sleeps", "it''s {n} o'clock", "so", "two  words"])


@st.composite
def arguments(draw, depth=2):
    """An argument and its outermost texts."""
    text = WORDS if depth == 0 else st.one_of(WORDS, arguments(depth - 1).map(lambda each: f"so {each[0]}!"))
    kind = draw(st.sampled_from(["plural", "select", "selectordinal"]))
    keys = [*draw(st.lists(st.sampled_from(["one", "few", "many"]), unique=True)), "other"]
    texts = [draw(text) for _ in keys]
    space = draw(st.sampled_from(["", " ", "\n  "]))
    options = " ".join(f"{key} {{{space}{each}{space}}}" for key, each in zip(keys, texts, strict=True))
    return f"{{n, {kind}, {options}}}", texts


@given(st.lists(arguments(), min_size=1, max_size=3), st.sampled_from(["", "You have ", "{0} "]))
def test_message_arguments_of_generated_messages(expected, before):
    message = before + " and ".join(argument for argument, _ in expected)
    arguments = message_arguments(message)
    assert [
        (message[argument.start : argument.end], [message[slice(*span)] for span in argument.parts])
        for argument in arguments
    ] == expected


@pytest.mark.parametrize(
    ("message", "texts"),
    [
        ("{v, select, A {a cat} B {a dog}}", ["a cat", "a dog"]),  # Angular needs no other
        ("Hello {name}, {n, number} and {d, date, short}", []),
        ("tree | trees", []),
    ],
)
def test_message_arguments(message, texts):
    assert [message[slice(*span)] for each in message_arguments(message) for span in each.parts] == texts


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("tree | trees", True),
        ("{0} No cat|{1} A cat|]1,Inf[ %n% cats", True),
        ("A file.|{{ n|raw }} files.", True),
        ("Hello {{ user.name | titlecase }}, ${x || 'you'}, {{ {a: b} | c }}", False),
        ("{a {b} | c", True),
        ("{n, plural, one {a | b} other {c}}", False),
        ("a dog", False),
    ],
)
def test_has_alternatives(text, expected):
    assert has_alternatives(text) is expected


@pytest.mark.parametrize(
    "message",
    [
        "{n, plural, other {x}",
        "{a, select, }",
        "I have {0,choice,0#no cat|1#one cat|1<{0} cats}.",
        "{n, plural, other {{0,choice,0#x}}}",
        "{n, plural,",
        "{n,plural,other{" * 11 + "x" + "}}" * 11,
    ],
)
def test_message_arguments_rejects_unsupported_messages(message):
    with pytest.raises(ValueError):
        message_arguments(message)
