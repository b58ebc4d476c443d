"""A run keeps the glossary that it was trained with."""

from pathlib import Path

import pytest

from mt.core.errors import InputError
from mt.storage.folders import read_description
from mt.storage.model_folder import NativeFolder
from mt.storage.run_folder import TERMS
from mt.training.command import train
from mt.translation.translator import Translator
from tests import toy


def test_a_glossary_is_copied_into_the_run_and_must_not_change_until_its_end(tmp_path: Path) -> None:
    toy.write_corpus(tmp_path, "copy", train=200)
    glossary = tmp_path / "terms.tsv"
    glossary.write_text("ba\tba\nde fi\tde fi|zuzu\n")
    text = {"terms": str(glossary), "slots": toy.SLOTS}
    begun = toy.config(tmp_path, text=text, training={"max_updates": 10})
    train(begun)
    assert NativeFolder(begun.folder).read_terms() == {"ba": ("ba",), "de fi": ("de fi", "zuzu")}
    glossary.write_text("ba\tzaza\n")
    with pytest.raises(InputError, match=r"text\.terms=.*terms\.tsv has changed since .*toy was begun"):
        train(toy.config(tmp_path, text=text, training={"max_updates": 20}))
    glossary.unlink()
    assert Translator.load(begun.folder, device="cpu").translate(["ba"]) == ["ba"]
    with pytest.raises(InputError, match=r"terms\.tsv: no such file"):
        train(toy.config(tmp_path, name="other", text=text))
    (begun.folder / TERMS).unlink()
    with pytest.raises(InputError, match=r"terms\.json"):
        Translator.load(begun.folder)
    assert read_description(begun.folder).text.terms is not None


def test_a_glossary_without_translations_gets_one_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    toy.write_corpus(tmp_path, "copy", train=200)
    (tmp_path / "terms.tsv").write_text("ba = ba\nfi go\n")
    text = {"terms": str(tmp_path / "terms.tsv"), "slots": toy.SLOTS}
    train(toy.config(tmp_path, text=text, training={"max_updates": 6}))
    assert caplog.text.count("terms.tsv: has one column, so its terms stay untranslated: 2.") == 1
