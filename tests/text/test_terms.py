"""Terms of a glossary in a source, and the words that render them in its translation."""

from mt.text.placement import AlignmentLink
from mt.text.segment import Term
from mt.text.terms import TermFinder, english_plurals, find_linked_words, find_rendered_terms, values_with_terms


def found(terms: str, text: str, language: str = "en") -> list[str]:
    finder = TermFinder({term: ("x",) for term in terms.split(", ")}, language)
    return [str(term) for _, term in finder.find(text)]


def test_find_terms_as_whole_words():
    terms = "Berg, Berg Pro, C++, .NET, x(y"
    assert found(terms, "A Berg Pro and a Berg.") == ["Berg Pro", "Berg"]
    assert found(terms, "Bergen, Iceberg, Berg-like, berg") == ["Berg"]
    assert found(terms, "Berg Prose, Berg  Pro") == ["Berg", "Berg  Pro"]
    assert found(terms, "C++ and C++x, x(y)") == ["C++", "x(y"]
    assert found(terms, "ASP.NET or .NET") == [".NET"]
    assert found(terms, "Bergé Berg_ xBerg") == []
    assert found("shirt, clock", "A T-shirt at five o'clock, no shirt.") == ["shirt"]
    assert found("arte, hôtel", "L'hôtel de l’arte", "fr") == ["hôtel", "arte"]
    assert found("微信, Berg", "我用微信付，看Berg吧", "zh") == ["微信", "Berg"]
    assert found("red car, red car park, car", "A red carpark, red car park, red car") == [
        "red car park",
        "red car",
    ]


def test_find_lowercase_terms_in_uppercase_or_capitalized():
    assert found("station", "Station one. Station two, said Station. STATION") == ["Station", "Station", "STATION"]
    assert found("station", "“Station closed” and “Station closed”") == ["Station"]
    assert found("old station", "See The Old Station") == ["Old Station"]
    assert found("Station", "station, STATION, Station") == ["Station"]
    finder = TermFinder({"bank": ("rive",), "Bank": ("Banque",)}, "en")
    assert [term.forms for _, term in finder.find("the bank, the Bank. Bank on it.")] == [
        ("rive",), ("Banque",), ("Banque",),
    ]  # fmt: skip
    ((_, term),) = TermFinder({"station": ("gare",)}, "en").find("AT THE STATION")
    assert term.model_text == "station"


def test_find_capitalized_terms_in_uppercase_lines():
    terms = "Lieferschein, Start-up, US, Straße"
    assert found(terms, "LIEFERSCHEIN FÜR EIN START-UP IN DEN US, STRASSE", "de") == [
        "LIEFERSCHEIN", "START-UP", "US", "STRASSE",
    ]  # fmt: skip
    assert found(terms, "lieferschein, us, der LIEFERSCHEIN, Strasse", "de") == []
    assert found("Mail", "E-MAIL FROM US", "de") == []


def test_find_terms_of_several_words_in_title_case():
    finder = TermFinder({"train station": ("gare",), "brown": ("brun",)}, "en")
    terms = [term for _, term in finder.find("Train Station closed, said Mr. Brown at the Train station.")]
    assert [(term, term.model_text) for term in terms] == [
        ("Train Station", "Train station"), ("Train station", "train station"),
    ]  # fmt: skip


def test_find_the_longest_of_overlapping_terms():
    assert found("red car, car park hall, park", "the red car park hall, red car park") == [
        "car park hall", "red car", "park",
    ]  # fmt: skip
    assert found("a b, b c", "a b c") == ["a b"]
    assert found("a, b", "a b, a/b, a-b") == ["a", "b", "a", "b"]


def test_find_english_plurals_and_possessives():
    assert found("dog, city, box", "Dogs in the cities, boxes. The dog's and the dogs’ city") == [
        "Dogs", "cities", "boxes", "dog", "dogs", "city",
    ]  # fmt: skip
    assert found("dog", "dogs, dog's", "de") == ["dog"]
    assert found("can", "I can't, the can's lid") == ["can"]
    assert [*english_plurals("toy"), *english_plurals("potato"), *english_plurals("C++")] == [
        "toys",
        "potatoes",
        "potatos",
    ]
    finder = TermFinder({"new": ("neu",), "news": ("Nachrichten",)}, "en")
    assert [term.forms for _, term in finder.find("the news")] == [("Nachrichten",)]


def test_find_takes_no_time_for_many_terms_with_one_prefix():
    terms = {f"the word{number} of it": (f"w{number}",) for number in range(10_000)}
    ((span, term),) = TermFinder(terms, "en").find("So the word9999 of it was.")
    assert (span, term.forms) == ((3, 21), ("w9999",))


def test_values_with_terms_resolves_overlaps():
    text = "See Berg 7 at http://Berg.com or Berg"
    finder = TermFinder({"Berg": ("Mont",), "Berg 7": ("Mont 7",)}, "en")
    values = values_with_terms(text, [(9, 10), (14, 29)], [finder])
    assert [(value, isinstance(value, Term)) for _, value in values] == [
        ("Berg 7", True), ("http://Berg.com", False), ("Berg", True),
    ]  # fmt: skip
    assert [value for _, value in values_with_terms("жук Berg кит", [(0, 12)], [finder])] == ["жук", "Berg", "кит"]
    own = TermFinder({"Berg": ("Pic",)}, "en")
    assert [value.forms for _, value in values_with_terms("a Berg", [], [own, finder]) if isinstance(value, Term)] == [
        ("Pic",)
    ]


def test_find_rendered_terms():
    terms = {"a": Term("dog", ("chien", "le chien")), "b": Term("dog", ("chien",)), "c": Term("cat", ("chat",))}
    text = "Le chien et chiens, chien, chien"
    assert find_rendered_terms(terms, text, "fr") == {"a": (0, 8), "b": (20, 25)}
    names = {"a": Term("Tom", ("Thomas",)), "b": Term("Tom", ("Thomas",))}
    assert find_rendered_terms(names, "Thomas a vu Tom", "fr") == {"a": (0, 6), "b": (12, 15)}


def test_find_linked_words_returns_the_longest_sequence():
    translation = "J'ai un mal de tête fort, un mal"
    links = [
        AlignmentLink(*link) for link in ((0, 1, 2, 4), (2, 3, 8, 11), (2, 3, 12, 14), (2, 3, 15, 19), (2, 3, 29, 32))
    ]
    assert find_linked_words(2, translation, links, []) == (8, 19)
    assert find_linked_words(2, translation, links, [(12, 14)]) == (15, 19)
    assert find_linked_words(30, translation, links, []) is None
    assert find_linked_words(0, "L'un dort", [AlignmentLink(0, 3, 0, 1)], []) is None  # an elided article
