"""ICU messages: their texts are found, and other messages are recognized."""

import pytest

from mt.formats.messages import has_alternatives, message_arguments

DOGS = "{n, plural, one {# dog} other {\n  # dogs }}"
TIME = "{m, selectordinal, other {it''s {n} o'clock}}"
NESTED = "{n, select, a {so {m, plural, other {x}}!} b {} other {two  words}}"


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (f"You have {DOGS} and {TIME}", [(DOGS, ["# dog", "# dogs"]), (TIME, ["it''s {n} o'clock"])]),
        (NESTED, [(NESTED, ["so {m, plural, other {x}}!", "two  words"])]),
        ("{v, select, A {a cat}}", [("{v, select, A {a cat}}", ["a cat"])]),  # Angular needs no "other"
        ("Hello {name}, {n, number} and {d, date, short}", []),
        ("tree | trees", []),
    ],
)
def test_message_arguments(message, expected):
    assert [
        (message[argument.start : argument.end], [message[slice(*span)] for span in argument.parts])
        for argument in message_arguments(message)
    ] == expected


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
