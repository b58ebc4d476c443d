"""What files hold does not steer the terminal that a message about them is shown on."""

import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mt.core.errors import VisibleFormatter, visible
from mt.training.command import _log_to_file


@given(st.text())
def test_visible_escapes_control_characters_only(text):
    shown = visible(text)
    assert not any(character < " " and character not in "\t\n" for character in shown)
    assert not any("\x7f" <= character <= "\x9f" or "\u202a" <= character <= "\u202e" for character in shown)
    shown.encode()
    assert visible("Zeile 1\n\tשלום עולם 😀 " + shown) == "Zeile 1\n\tשלום עולם 😀 " + shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[2J", "\\x1b[2J"),
        ("a\rb", "a\\x0db"),
        ("\x9b31m\x7f", "\\x9b31m\\x7f"),
        ("a\u202eb\u2066", "a\\u202eb\\u2066"),
        ("\udcff.txt", "\\udcff.txt"),
    ],
)
def test_escapes_are_those_of_python(text, shown):
    assert visible(text) == shown


def test_message_keeps_lines_and_escapes_quoted_text():
    record = logging.makeLogRecord({"msg": "\n  source  %s\n", "args": ("\x1b]0;title\x07",)})
    assert VisibleFormatter("%(message)s").format(record) == "\n  source  \\x1b]0;title\\x07\n"


def test_the_log_of_a_run_shows_and_does_not_obey(tmp_path):
    with _log_to_file(tmp_path / "train.log"):
        logging.getLogger("mt.anything").warning("pair 7 of %s: %s", "a\x1b[31m.txt", "\x1b[2Jba")
    assert (tmp_path / "train.log").read_text().endswith("WARNING pair 7 of a\\x1b[31m.txt: \\x1b[2Jba\n")
