"""Where a run's pairs of sentences come from."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, Discriminator, Field, Tag, model_validator

from mt.config.fields import LanguageCode, NonNegativeInt, PathText, PositiveInt, Section, Text, Weight
from mt.core.files import format_suffix
from mt.core.wording import brief, format_value, nearest

# fmt: off
FILE_FORMATS = frozenset((
    "arrow", "audiofolder", "conll", "csv", "eval", "fasta", "fastq", "genbank", "harbor", "hdf5", "iceberg",
    "imagefolder", "json", "lance", "meshfolder", "mmcif", "niftifolder", "pandas", "parquet", "pdb", "pdffolder",
    "text", "tsfile", "videofolder", "vortex", "webdataset", "xml",
))
# fmt: on
"""The modules of ``datasets`` that ``load_dataset`` takes by name, instead of a data set."""


CLEANING_RULES: Final = (
    "long", "encoding", "letters", "copy", "script", "language", "items", "numbers", "length", "translation",
    "boilerplate", "duplicate",
)  # fmt: skip
"""The rules of cleaning, in the order in which they are applied. A pair counts for the first one that finds it."""
RULE_SETS: Final = {
    "default": tuple(rule for rule in CLEANING_RULES if rule != "translation"),  # which needs a model of the corpus
    "strict": CLEANING_RULES,
}
SPLITS: Final = ("valid", "test")


def _is_cleaning(words: tuple[str, ...]) -> tuple[str, ...]:
    for word in words:
        if word not in RULE_SETS and word.removeprefix("-") not in CLEANING_RULES:
            near = nearest(word.removeprefix("-"), (*RULE_SETS, *CLEANING_RULES))
            hint = f"; did you mean {near}?" if near else ""
            raise ValueError(f"a list of rules, in which {brief(word)} is none of {', '.join(CLEANING_RULES)}{hint}")
    if all(word.startswith("-") for word in words):
        raise ValueError(f"a list of rules, such as [default,{brief(','.join(words))}]")
    return words


Cleaning = Literal["default", "strict", False] | Annotated[tuple[Text, ...], AfterValidator(_is_cleaning)]


def _words(cleaning: Cleaning) -> tuple[str, ...]:
    return (cleaning,) if isinstance(cleaning, str) else cleaning or ()


def _rules(words: tuple[str, ...]) -> tuple[str, ...]:
    chosen = {rule for word in words for rule in RULE_SETS.get(word, (word,))}
    return tuple(rule for rule in CLEANING_RULES if rule in chosen and f"-{rule}" not in words)


class CorpusConfig(Section):
    """The settings of every kind of corpus."""

    source_language: LanguageCode
    """The language to translate from: a code such as en, zh_CN or deu_Latn."""
    target_language: LanguageCode
    """The language to translate into. It decides how translations are scored."""
    max_length: PositiveInt = 128
    """Training pairs with more pieces than this on either side are dropped, and counted."""
    cleaning: Cleaning = "default"
    """Which training pairs are dropped as faulty: default (cheap rules), strict (also pairs that are no translations of
    each other), false (none), or a list of rules and of rules to leave out.

    [default,-numbers] is the default without a rule, [copy,length] are these two alone. docs/cleaning.md has the
    rules."""
    weight: Weight = 1.0
    """How often each training pair is seen in an epoch: 2 is twice, 0.5 is every second epoch on average."""

    @property
    def cleaning_rules(self) -> tuple[str, ...]:
        """The rules that drop pairs, in the order of their application."""
        return _rules(_words(self.cleaning))

    def without_rule(self, rule: str) -> str:
        """Return the setting that leaves a rule of cleaning out, as typed."""
        words = [word for word in _words(self.cleaning) if word != rule]
        words += [f"-{rule}"] if rule in _rules(tuple(words)) else []
        return f"data.cleaning=[{','.join(words)}]" if words else "data.cleaning=false"

    def contradictions(self) -> Iterator[str]:
        if self.source_language == self.target_language:
            yield f"source_language and target_language are the same: {self.source_language}"


class UnsplitConfig(CorpusConfig):
    """The settings of a corpus that may lack validation or test data."""

    valid_pairs: PositiveInt = 2000
    """How many pairs are held out of the training data where there is no validation data (at most a tenth)."""
    test_pairs: PositiveInt = 2000
    """How many pairs are held out of the training data where there is no test data (at most a tenth)."""


def language_suffix(file: str) -> str:
    """Return ``en`` of ``train.en`` or ``train.en.gz``."""
    return format_suffix(Path(file)).removeprefix(".")


class PileConfig(UnsplitConfig):
    """The settings of a corpus that is read from one or several files."""

    on_bad_file: Literal["stop", "skip"] = "stop"
    """What to do with a damaged file, or one without the columns: stop before training; or skip it, of which nothing is
    used then, and name it in the log and in provenance.json. If every file is bad, the run stops."""
    tagged: bool = False
    """In a mixture: whether a tag is put in front of each source, by which the model can tell them from what people
    wrote: for sources that were translated back from the target language (Caswell et al. 2019). What is translated
    with the model needs no tag."""


Pair = tuple[PathText, PathText]


def _one_or_many(value: object) -> str:
    """Tell a pair of files from a list of pairs, so that a mistake in one is not told in terms of the other."""
    return "many" if isinstance(value, list | tuple) and value and not isinstance(value[0], str) else "one"


PairOrPairs = Annotated[
    Annotated[Pair, Tag("one")] | Annotated[tuple[Pair, ...], Tag("many")], Discriminator(_one_or_many)
]
FileOrFiles = PathText | Annotated[tuple[PathText, ...], Field(min_length=1)]


class FilesConfig(PileConfig):
    """Two parallel text files, one sentence a line: plain, .gz, .xz or .zst; or several such pairs."""

    kind: Literal["files"]
    train: PairOrPairs
    """The files to learn from: [source, target]; a list of such pairs; or patterns on both sides
    (['corpora/*.en','corpora/*.es']), whose files belong together where the * stands for the same."""
    valid: PairOrPairs | None = None
    """The files to choose the best weights on, named as those of train. null: hold valid_pairs out of the training
    data."""
    test: PairOrPairs | None = None
    """The files to measure on in the end, named as those of train. null: hold test_pairs out of the training data."""

    def contradictions(self) -> Iterator[str]:
        yield from super().contradictions()
        for split, named in (("train", self.train), ("valid", self.valid), ("test", self.test)):
            for files in as_pairs(named) if named else ():
                if files[0] == files[1]:
                    yield f"{split} has the same file on both sides: {files[0]}"
                if [language_suffix(file) for file in files] == [self.target_language, self.source_language]:
                    yield (
                        f"{split}=[{','.join(files)}] has the {self.target_language} file first: the source comes first"
                    )


def as_pairs(named: Pair | tuple[Pair, ...]) -> tuple[Pair, ...]:
    """Return the pairs of files that a setting names, one or several, as a list."""
    return (named,) if isinstance(named[0], str) else named


class TableConfig(PileConfig):
    """Files with a column for each side: TSV (unquoted), CSV, JSONL, Parquet, or translation memories (TMX) and
    translated documents (PO, XLIFF), whose languages are their columns."""

    kind: Literal["table"]
    train: FileOrFiles
    """What to learn from: a file, a folder of files, a pattern (memories/*.tmx; ** stands for folders of any depth), or
    a list of these. Their formats may differ, their columns must have the same names."""
    valid: FileOrFiles | None = None
    """The files to choose the best weights on, named as those of train. null: hold valid_pairs out of the training
    data."""
    test: FileOrFiles | None = None
    """The files to measure on in the end, named as those of train. null: hold test_pairs out of the training data."""
    source_column: Text | NonNegativeInt | None = None
    """The name of the source's column, or its number counted from 0. null: the language code.

    A number says that the file has no header line."""
    target_column: Text | NonNegativeInt | None = None
    """The name or number of the target's column. null: the language code."""

    @property
    def columns(self) -> tuple[str | int, str | int]:
        source, target = self.source_column, self.target_column
        languages = self.source_language, self.target_language
        return languages[0] if source is None else source, languages[1] if target is None else target

    def contradictions(self) -> Iterator[str]:
        yield from super().contradictions()
        source, target = self.columns
        if source == target:
            yield f"source_column and target_column are the same: {source}"
        if isinstance(source, int) != isinstance(target, int):
            yield "source_column and target_column must both be numbers (no header) or both be names"


class HubConfig(UnsplitConfig):
    """A Hugging Face data set that loads without a script, or a local folder of the same layout."""

    kind: Literal["hub"]
    path: PathText
    """OWNER/NAME on the hub, or a folder."""
    subset: Text | None = None
    """The configuration of the data set, where it has several."""
    revision: Text | None = None
    """A commit, tag or branch, so that the data never change. null: the newest."""
    train_split: Text = "train"
    """The split to learn from."""
    valid_split: Text | None = "validation"
    """The split to choose the best weights on. null: hold valid_pairs out of the training data."""
    test_split: Text | None = "test"
    """The split to measure on in the end. null: hold test_pairs out of the training data."""
    source_column: Text | None = None
    """The source's column. null: the column that has the language code as its name, or that part of a column
    `translation`."""
    target_column: Text | None = None
    """The target's column. null: as for source_column."""
    streaming: bool = False
    """Read the data set over the network, row by row, instead of downloading its files first. Only the text is kept on
    the disk. It is for data sets that are too large to be downloaded."""
    most_pairs: PositiveInt | None = None
    """Read only so many training pairs, from the beginning. With streaming, hardly more than that is fetched. null:
    all."""

    def contradictions(self) -> Iterator[str]:
        yield from super().contradictions()
        if self.path.removeprefix("hf://datasets/") in FILE_FORMATS:
            yield (
                f"path={self.path} is no data set but a file format of the library datasets, which would read whatever "
                "lies in the current folder: data=files and data=table read files of your own"
            )


class RecipeConfig(CorpusConfig):
    """A corpus that a recipe in the folder data/ fetches, verifies and splits."""

    kind: Literal["recipe"]
    cleaning: Cleaning = False
    """As for other corpora. The pairs of a recipe are clean, so that none are dropped unless you ask for it."""
    recipe: Literal["tatoeba_en_fr"]
    """Which one."""


SingleCorpusConfig = Annotated[FilesConfig | TableConfig | HubConfig | RecipeConfig, Field(discriminator="kind")]


class MixtureConfig(UnsplitConfig):
    """Several corpora of one direction. Validation and test data come from the first."""

    kind: Literal["mixture"]
    corpora: Annotated[tuple[SingleCorpusConfig, ...], Field(min_length=1)]
    """A list of corpora, each with the keys of its kind. Languages and lengths are those of the mixture."""

    @model_validator(mode="before")
    @classmethod
    def _corpora_inherit(cls, values: object) -> object:
        if not isinstance(values, dict) or not isinstance(values.get("corpora"), list | tuple):
            return values

        def complete(entry: object) -> object:
            if not isinstance(entry, dict):
                return entry
            fields = CorpusConfig.model_fields if entry.get("kind") == "recipe" else UnsplitConfig.model_fields
            return {name: values[name] for name in fields if name in values and name != "weight"} | entry

        return values | {"corpora": [complete(entry) for entry in values["corpora"]]}

    def contradictions(self) -> Iterator[str]:
        yield from super().contradictions()
        inherited = [name for name in UnsplitConfig.model_fields if name != "weight"]
        for number, corpus in enumerate(self.corpora):
            for name in inherited:
                own, other = getattr(self, name), getattr(corpus, name, None)
                if other is not None and own != other:
                    mixture = f"the mixture has {name}={format_value(own)}"
                    yield f"corpora[{number}].{name}={format_value(other)}: {mixture}"
            for split in SPLITS if number else ():
                if not isinstance(corpus, RecipeConfig) and names_split(corpus, split):
                    key = f"corpora[{number}].{split_key(corpus, split)}"
                    yield f"{key} is not read: validation and test come from the first corpus"


DataConfig = Annotated[
    FilesConfig | TableConfig | HubConfig | RecipeConfig | MixtureConfig, Field(discriminator="kind")
]


def split_key(corpus: SingleCorpusConfig, split: str) -> str:
    """Return the key that says where a split is."""
    return f"{split}_split" if isinstance(corpus, HubConfig) else split


def names_split(corpus: SingleCorpusConfig, split: str) -> bool:
    """Return whether a corpus says where a split is, so that none is held out of the training pairs.

    The usual names of a hub data set's splits are only a guess: where there are no such splits, pairs are held out.
    """
    if isinstance(corpus, RecipeConfig):
        return True
    key = split_key(corpus, split)
    return corpus.differs_from_default(key) and getattr(corpus, key) is not None
