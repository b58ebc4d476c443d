"""Glossaries: each occurrence of a term is translated by a target form."""

import re
import shutil
from dataclasses import replace

import pytest

from mt.config import DecodingChoice, KeptConfig
from mt.core.errors import InputError
from mt.core.language import Direction
from mt.storage.model_folder import NativeFolder, terms_checksum, write_description
from mt.storage.run_folder import TERMS
from mt.storage.validation import read_json, write_json
from mt.text.glossary import term_finder
from mt.text.placement import AlignmentLink
from mt.translation.drafts import SegmentDraft, fill_terms, insert_terms
from mt.translation.trained_model import open_model
from mt.translation.translator import Translator
from tests import toy
from tests.releases import FIXTURES

MODEL = FIXTURES / "transformer"
"""Translates a made-up language by reversing the order of its words."""


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    path = tmp_path_factory.mktemp("terms") / "terms.tsv"
    path.write_text("de\tzaza\nfi go\tmomo\nku\tku\nzebu\tnana|nono ra\n")
    return KeptConfig(terms=str(path))


@pytest.fixture(scope="module")
def translator(kept):
    return Translator.load(MODEL, kept=kept, device="cpu")


def test_terms_are_translated_once_per_occurrence(translator):
    lines = ["ba de su ku", "la fi go ra", "ba de wa de", "ba\tde su", "su, de/wa http://de.de {de}", "zebu ba zebu"]
    translations = translator.translate(lines)
    for word, counts in {"zaza": [1, 0, 2, 1, 1], "momo": [0, 1, 0, 0, 0], "ku": [1, 0, 0, 0, 0]}.items():
        assert [re.findall(r"\w+", text).count(word) for text in translations[:5]] == counts
    assert "http://de.de" in translations[4] and "{de}" in translations[4]
    assert translations[5].count("nana") + translations[5].count("nono ra") == 2
    plain = Translator.load(MODEL, device="cpu")
    assert translator.translate(["ba wa", "ra ku su"]) == plain.translate(["ba wa", "ra ku su"])


def test_line_of_terms_alone_has_their_target_forms(translator):
    assert translator.translate(["de", "De", "DE", " - de! ", "(fi go) / de", "😀 de"]) == [
        "zaza", "Zaza", "ZAZA", " - zaza! ", "(momo) / zaza", "😀 zaza",
    ]  # fmt: skip


def test_terms_in_uppercase_and_in_tags_are_translated(translator):
    assert translator.translate(["BA WA DE SU"]) == ["BA WA ZAZA SU"]  # the model knows no capitals
    (named,) = translator.translate(["ba KU su"], glossary=[["KU", "momo"]])
    assert "momo" in named
    tagged = translator.translate([toy.line("ba <b>de</b> su", "html"), toy.line("ba <b>fi</b> go wa", "html")])
    assert "<b>zaza</b>" in tagged[0] and tagged[1].count("momo") == 1 and tagged[1].count("<b>") == 1


def test_terms_are_in_all_hypotheses_and_texts_of_messages(kept):
    several = Translator.load(MODEL, DecodingChoice(n_best=3, beam_size=3), "cpu", kept=kept)
    for hypothesis in several.hypotheses(["ba de su ra wa"], aligned=True)[0]:
        assert hypothesis.text.split().count("zaza") == 1 and hypothesis.alignment
    single = Translator.load(MODEL, DecodingChoice(), "cpu", kept=kept)
    message = single.translate(["{n, plural, one {ba de} other {de wa}}"])[0]
    assert message.count("zaza") == 2 and message.startswith("{n, plural, one {")


def test_sentence_with_more_terms_than_placeholders_is_not_split(translator):
    line = "ba de de de de de wa"
    assert len(translator.segment([toy.line(line)])[0].segments) == 1
    assert [text.split().count("zaza") for text in translator.translate([line, "de " * 5000])] == [5, 5000]


def test_glossary_of_call_has_priority(translator):
    finder = term_finder([["de", "momo"]], translator.layer)
    for line in (toy.line("<p>ba de su</p>", "html", terms=finder), "ba de su"):
        (own,) = translator.translate([line], glossary=[["de", "momo"]])
        assert ("momo" in own, "zaza" in own) == (True, False)
    assert "zaza" in translator.translate(["ba de su"])[0]
    for wrong in ("de", [["de"]], [["de", 1]], {"de": "zaza"}):
        with pytest.raises(InputError, match="glossary must be a list of pairs"):
            translator.translate(["ba de su"], glossary=wrong)  # type: ignore[arg-type]


def test_fill_terms_chooses_form_with_best_score(translator):
    (line,) = translator.segment([toy.line("ba zebu su")])
    asked: list[str] = []

    def score(sources: list[str], targets: list[str]) -> list[float]:
        asked.extend(targets)
        return [float(target == "Su nono ra") for target in targets]

    (segment,) = line.segments
    draft = SegmentDraft(segment, "Su ba")
    insert_terms([draft], "yy", lambda sources, targets: [[AlignmentLink(3, 7, 3, 5)] for _ in targets])
    fill_terms([draft], "yy", score)
    assert asked == ["Su nana", "Su nono ra"]
    assert draft.filled.values == ("nono ra",)


def test_glossary_of_model_is_loaded_from_its_folder(tmp_path, kept):
    folder = shutil.copytree(MODEL, tmp_path / "model")
    described = NativeFolder(folder).read_description()
    terms = {"de": ("zaza",), "ba": ("bobo",)}
    text = described.text.model_copy(update={"terms": terms_checksum(terms)})
    write_description(folder, described.model_copy(update={"text": text}))
    with pytest.raises(InputError, match=r"terms\.json: cannot be read"):
        Translator.load(folder)
    write_json(folder / TERMS, {"terms": terms})
    assert Translator.load(folder, device="cpu").translate(["ba", "ku"]) == ["bobo", "ku"]
    both = Translator.load(folder, device="cpu", kept=kept)
    assert both.translate(["ba", "fi go"]) == ["bobo", "momo"]
    write_json(folder / TERMS, read_json(folder / TERMS) | {"terms": {"de": ["other"]}})
    with pytest.raises(InputError, match=r"terms\.json: corrupted.*not the terms that model\.yaml names"):
        Translator.load(folder)


def test_model_without_placeholders_rejects_glossary(kept):
    trained = open_model(MODEL)
    text = trained.description.text.model_copy(update={"enabled": False})
    without = replace(trained, description=trained.description.model_copy(update={"text": text}))
    with pytest.raises(InputError, match="text.terms and text.patterns need placeholders"):
        without.text_layer(kept, Direction("xx", "yy"))
    with pytest.raises(InputError, match="glossary: this model has no text layer"):
        term_finder([["de", "zaza"]], without.text_layer(KeptConfig(), Direction("xx", "yy")))
