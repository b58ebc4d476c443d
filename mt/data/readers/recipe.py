"""Read corpora that a recipe, a Python file in the folder data/, downloads and splits."""

import importlib.util
from pathlib import Path

from mt.config import RecipeConfig
from mt.core.errors import InputError
from mt.core.installation import RECIPES, corpora
from mt.data.readers.many_files import read_text_files
from mt.data.split_report import Split


def read_recipe(corpus: RecipeConfig, split: str) -> Split:
    """Read a split of a recipe's corpus. If one of its files is missing, the recipe is run, which writes them all."""
    folder = _prepared_folder(corpus)
    return read_text_files(folder / f"{split}.{corpus.source_language}", folder / f"{split}.{corpus.target_language}")


def _prepared_folder(corpus: RecipeConfig) -> Path:
    """Return the folder with the files of a recipe. If one of them is missing, run the recipe first."""
    path = RECIPES / f"{corpus.recipe}.py"
    specification = importlib.util.spec_from_file_location(corpus.recipe, path)
    assert specification and specification.loader
    recipe = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(recipe)
    for language in (corpus.source_language, corpus.target_language):
        if language not in recipe.LANGUAGES:
            raise InputError(
                f"data={corpus.recipe} has {' and '.join(recipe.LANGUAGES)}, not {language}; set data.source_language "
                "and data.target_language to these"
            )
    folder = corpora() / corpus.recipe
    names = [f"{split}.{language}" for split in ("train", "valid", "test") for language in recipe.LANGUAGES]
    if not all((folder / name).exists() for name in names):
        recipe.prepare(folder)
    return folder
