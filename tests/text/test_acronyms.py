"""Acronyms are left as they are, unless the training text translates them."""

from mt.text.acronyms import Acronyms
from tests import languages


def test_acronyms_are_values_unless_translated_or_frequent():
    pairs = [("The TV is on.", "Der Fernseher ist an.")] * 2 + [("NASA is not old.", "Die NASA ist alt.")] * 2
    learned = Acronyms.learn(lambda: iter(pairs), "en")
    assert learned == {"translated_capitals": ["NOT", "TV"]}
    line = "NATO and the TV: DO NOT use PDFs, IT or USA-wide; NOTE"
    acronyms = Acronyms(languages.layer(translated_capitals=("TV",)))
    assert [line[slice(*span)] for span in acronyms.find_values(line, 0, "")] == ["NATO", "PDFs", "IT", "NOTE"]
    assert [acronyms.find_values(text, 0, "") for text in ("YES", "NATO", "NOTE: it ran")] == [[], [(0, 4)], []]
