"""Reads one split of one corpus in any of the formats that parallel text comes in.

Line breaks inside a sentence (a lone CR, or any line break in a table's value) become spaces. Pairs that cannot be used
stay in their place; their column ``fault`` says why.

A new kind of corpus is a reader in a module of its own and a line in READERS; a new file format is a reader of pairs
and a line in ``mt.data.readers.formats``.
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


def read_split(corpus: SingleCorpusConfig, split: str) -> Split | None:
    """Read one split of a corpus. Return None if the corpus has no such split.

    Raises:
        InputError: Something is missing, damaged, empty or of another form than ``corpus`` says.
    """
    return READERS[type(corpus)](corpus, split)
