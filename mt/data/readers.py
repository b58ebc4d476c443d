"""Read a split of a corpus in any of the formats of parallel text.

Line breaks inside a sentence (a lone CR, or any line break in a table's value) become spaces. Pairs that cannot be used
stay at their position; their column ``fault`` has the reason.

To add a kind of corpus, add a module with its reader, and a line in READERS. To add a file format, add a function that
yields its pairs, and a line in PAIR_READERS of ``mt.formats.registry``.
"""

from collections.abc import Callable
from runpy import run_path
from typing import Any

from mt.config import FilesConfig, HubConfig, RecipeConfig, TableConfig
from mt.core.errors import InputError
from mt.core.installation import RECIPES, corpora
from mt.data.hub import read_hub
from mt.data.input_files import read_input_files, read_text_files
from mt.data.split import Split


def read_recipe(corpus: RecipeConfig, split: str) -> Split:
    """Read a split of a recipe's corpus. If one of its files is missing, the recipe is run, which writes them all."""
    recipe = run_path(str(RECIPES / f"{corpus.recipe}.py"))
    languages = recipe["LANGUAGES"]
    for language in (corpus.source_language, corpus.target_language):
        if language not in languages:
            raise InputError(
                f"data={corpus.recipe} has {' and '.join(languages)}, not {language}; set data.source_language "
                "and data.target_language to these"
            )
    folder = corpora() / corpus.recipe
    names = [f"{split}.{language}" for split in ("train", "valid", "test") for language in languages]
    if not all((folder / name).exists() for name in names):
        recipe["prepare"](folder)
    return read_text_files(folder / f"{split}.{corpus.source_language}", folder / f"{split}.{corpus.target_language}")


READERS: dict[type, Callable[[Any, str], Split | None]] = {
    FilesConfig: read_input_files,
    TableConfig: read_input_files,
    HubConfig: read_hub,
    RecipeConfig: read_recipe,
}
"""Maps each kind of corpus to its reader: a function of the config and the name of a split (``train``, ``valid`` or
``test``) that returns the split; None if the corpus has no such split. It raises InputError if a file is missing,
damaged, empty or in another format than the config says."""
