"""Read a split of a corpus in any of the formats of parallel text.

Line breaks inside a sentence (a lone CR, or any line break in a table's value) become spaces. Pairs that cannot be used
stay at their position; their column ``fault`` has the reason.

To add a kind of corpus, add a module with its reader, and a line in READERS. To add a file format, add a function that
yields its pairs, and a line in ``mt.data.readers.formats``.
"""

from collections.abc import Callable
from typing import Any

from mt.config import FilesConfig, HubConfig, RecipeConfig, SingleCorpusConfig, TableConfig
from mt.data.readers.hub import read_hub
from mt.data.readers.many_files import read_input_files
from mt.data.readers.recipe import read_recipe
from mt.data.split_report import Split

READERS: dict[type, Callable[[Any, str], Split | None]] = {
    FilesConfig: read_input_files,
    TableConfig: read_input_files,
    HubConfig: read_hub,
    RecipeConfig: read_recipe,
}
"""Maps each kind of corpus to its reader, a function of the config and the split's name."""


def read_split(corpus: SingleCorpusConfig, split: str) -> Split | None:
    """Read a split of a corpus, or return None if the corpus has no such split.

    Args:
        corpus: The config of the corpus.
        split: ``train``, ``valid`` or ``test``.

    Raises:
        InputError: A file is missing, damaged, empty or in another format than ``corpus`` says.
    """
    return READERS[type(corpus)](corpus, split)
