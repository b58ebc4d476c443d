"""An existing run keeps what was the default when it began."""

from pathlib import Path

from mt.config import AugmentationConfig, TextConfig, TrainingConfig
from mt.storage.run_folder import CONFIG, write_config
from mt.training.run_state import _as_begun
from tests import toy


def test_a_run_keeps_the_length_and_the_text_layer_that_it_began_with(tmp_path: Path) -> None:
    without_layer = {"rules": 0, "slots": 10, "augmentation": toy.UNCHANGED}
    begun = toy.config(tmp_path, text=without_layer, training={"max_updates": 20})
    begun.folder.mkdir(parents=True)
    write_config(begun.folder, begun)
    by_default = begun.model_copy(update={"text": TextConfig(), "training": TrainingConfig()})
    kept = _as_begun(begun.folder, by_default)
    assert kept.training.max_updates == 20 < TrainingConfig().max_updates
    assert kept.text == begun.text


def test_a_run_keeps_the_older_rules_beside_settings_that_are_given(tmp_path: Path) -> None:
    begun = toy.config(tmp_path, text={"rules": 1, "terms": ["Acme"], "augmentation": {"typos": 0.2}})
    begun.folder.mkdir(parents=True)
    write_config(begun.folder, begun)
    typed = TextConfig(terms=("Acme",), slots=toy.SLOTS, augmentation=begun.text.augmentation)
    assert _as_begun(begun.folder, begun.model_copy(update={"text": typed})).text == begun.text
    asked = begun.model_copy(update={"text": TextConfig(rules=2, terms=("Acme",))})
    assert _as_begun(begun.folder, asked) == asked
    asked = begun.model_copy(update={"text": TextConfig(rules=2)})
    assert _as_begun(begun.folder, asked) == asked


def test_what_is_asked_for_is_not_replaced(tmp_path: Path) -> None:
    begun = toy.config(tmp_path, text={"rules": 0, "slots": 10, "augmentation": toy.UNCHANGED})
    begun.folder.mkdir(parents=True)
    write_config(begun.folder, begun)
    asked = {
        "text": TextConfig(augmentation=AugmentationConfig(typos=0.3)),
        "training": TrainingConfig(max_updates=500),
    }
    config = begun.model_copy(update=asked)
    assert _as_begun(begun.folder, config) == config


def test_a_run_from_before_embeddings_were_counted_goes_on_with_the_command_that_began_it(tmp_path: Path) -> None:
    begun = toy.config(tmp_path)
    begun.folder.mkdir(parents=True)
    write_config(begun.folder, begun)
    today = begun.training.model_copy(update={"initial_embeddings": "co_occurrence"})
    config = begun.model_copy(update={"training": today})
    assert _as_begun(begun.folder, config) == config  # it could have been asked for, and was not
    file = begun.folder / CONFIG
    file.write_text("".join(line for line in file.open() if "initial_embeddings" not in line))
    assert _as_begun(begun.folder, config).training == begun.training
