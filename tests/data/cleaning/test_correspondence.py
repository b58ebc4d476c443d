"""Numbers and items that should be the same on both sides."""

import pytest

from mt.data.cleaning.correspondence import items_differ, numbers_differ


@pytest.mark.parametrize(
    ("differ", "source", "target"),
    [
        (False, "It costs 1,249.99 dollars.", "Es kostet 1 249,99 Dollar."),
        (False, "It costs 1,000 yen.", "Es kostet 1000 Yen."),
        (False, "at 6:30", "um halb sieben"),
        (False, "at 2:30 p.m.", "um 14.30 Uhr"),
        (False, "at 10 o'clock at night", "um 22 Uhr"),
        (False, "300 miles", "480 Kilometer"),
        (False, "30 pounds", "14 Kilo"),
        (False, "5 of the 12 pages", "zwölf Seiten, davon 5"),
        (False, "In the 1960s", "In den 60er-Jahren"),
        (False, "१२ pages", "12 Seiten"),
        (False, "no number", "keine"),
        (False, "9" * 400, "8" * 5000),
        (True, "in 1984", "im Jahr 1948"),
        (True, "room 12", "Zimmer 13"),
        (True, "at 7:30", "um 7 Uhr 35"),
        (True, "I have 5.", "Ich habe 8."),
        (True, "1,249.99", "1 249,98"),
        (True, "an MP3 player", "ein MP4-Spieler"),
    ],
)
def test_numbers(differ, source, target):
    assert numbers_differ(source, target) == differ == numbers_differ(target, source)


@pytest.mark.parametrize(
    ("source", "target", "differ"),
    [
        ("See https://example.com/a.", "Siehe https://example.com/a.", False),
        ("See https://example.com/a.", "Siehe dort.", True),
        ("<b>Stop</b>", "<b>Halt</b>", False),
        ('<img alt="a dog">', '<img alt="ein Hund">', False),
        ("<p>Stop", "Halt", True),
        ("Stop&nbsp;", "Halt", True),
        ("Hello {name}", "Hallo {name}", False),
        ("Hello {name}", "Hallo {nam}", True),
        ("a <file object>", "ein Dateiobjekt", False),
        ("R&D & 5 < 6", "F&E & 5 < 6", False),
        ("Mail anna@example.org", "Schreib an Anna", True),
    ],
)
def test_items(source, target, differ):
    assert items_differ(source, target) == differ == items_differ(target, source)
