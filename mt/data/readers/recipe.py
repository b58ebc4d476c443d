"""Reads corpora that a recipe in the folder data/ fetches and splits."""

import importlib.util
from pathlib import Path

from mt.config import RecipeConfig
from mt.core.errors import InputError
from mt.core.installation import RECIPES, corpora
from mt.data.readers.many_files import read_text_files
from mt.data.split_report import Split


def read_recipe(corpus: RecipeConfig, split: str) -> Split:
    folder = _prepared_folder(corpus)
    return read_text_files((folder / f"{split}.{corpus.source_language}", folder / f"{split}.{corpus.target_language}"))


def _prepared_folder(corpus: RecipeConfig) -> Path:
    """Return the folder of a recipe's files. If one is missing, run the recipe, which writes them."""
    path = RECIPES / f"{corpus.recipe}.py"
    specification = importlib.util.spec_from_file_location(corpus.recipe, path)
    assert specification and specification.loader
    recipe = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(recipe)
    for language in (corpus.source_language, corpus.target_language):
        if language not in recipe.LANGUAGES:
            raise InputError(f"data={corpus.recipe} has {' and '.join(recipe.LANGUAGES)}, not {language}")
    folder = corpora() / corpus.recipe
    names = [f"{split}.{language}" for split in ("train", "valid", "test") for language in recipe.LANGUAGES]
    if not all((folder / name).exists() for name in names):
        recipe.prepare(folder)
    return folder
