"""The settings of a corpus: its kind, files, languages, splits and cleaning."""

from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self

from pydantic import AfterValidator, Discriminator, Field, Tag, model_validator

from mt.config.fields import (
    Delimiter,
    LanguageCode,
    NonNegativeInt,
    PathText,
    PositiveInt,
    Section,
    SetName,
    Text,
    Weight,
    Within,
)
from mt.core.errors import brief, did_you_mean, format_value
from mt.core.files import format_suffix
from mt.core.language import CODES_OF_NAMES, Direction, base_language

FILE_FORMATS = frozenset((
    "arrow", "audiofolder", "conll", "csv", "eval", "fasta", "fastq", "genbank", "harbor", "hdf5", "iceberg",
    "imagefolder", "json", "lance", "meshfolder", "mmcif", "niftifolder", "pandas", "parquet", "pdb", "pdffolder",
    "text", "tsfile", "videofolder", "vortex", "webdataset", "xml",
))  # fmt: skip
"""Names that the function ``load_dataset`` of the library datasets takes for a file format and not for a dataset."""

CLEANING_RULES: Final = (
    "long", "encoding", "letters", "copy", "script", "language", "items", "numbers", "length", "translation",
    "boilerplate", "duplicate",
)  # fmt: skip
"""The cleaning rules, in the order of their application. A pair is counted under the first rule that drops it."""
RULE_SETS: Final = {
    "default": tuple(rule for rule in CLEANING_RULES if rule != "translation"),  # which needs a model of the corpus
    "strict": CLEANING_RULES,
}
SPLITS: Final = ("valid", "test")


def _check_rules(words: tuple[str, ...]) -> tuple[str, ...]:
    for word in words:
        if word not in RULE_SETS and word.removeprefix("-") not in CLEANING_RULES:
            hint = did_you_mean(word.removeprefix("-"), (*RULE_SETS, *CLEANING_RULES))
            raise ValueError(f"must be a list of rules: {brief(word)} is none of {', '.join(CLEANING_RULES)}{hint}")
    if all(word.startswith("-") for word in words):
        raise ValueError(f"must name the rules to take one from, such as [default,{brief(','.join(words))}]")
    return words


Cleaning = Literal["default", "strict", False] | Annotated[tuple[Text, ...], AfterValidator(_check_rules)]


def _rule_words(cleaning: Cleaning) -> tuple[str, ...]:
    return (cleaning,) if isinstance(cleaning, str) else cleaning or ()


def _chosen_rules(words: tuple[str, ...]) -> tuple[str, ...]:
    chosen = {rule for word in words for rule in RULE_SETS.get(word, (word,))}
    return tuple(rule for rule in CLEANING_RULES if rule in chosen and f"-{rule}" not in words)


class CorpusConfig(Section):
    """The settings that every kind of corpus has."""

    source_language: LanguageCode
    """Language to translate from: a code such as en, zh_CN or deu_Latn."""
    target_language: LanguageCode
    """Language to translate into. Scores are computed as is usual for this language."""
    max_length: PositiveInt = 128
    """Maximum number of tokens of a sentence in training. Pairs with more on either side are dropped, and the log says
    how many."""
    cleaning: Cleaning = "default"
    """Training pairs to drop as faulty: default (fast rules), strict (also pairs whose sides do not translate each
    other), false (none), or a list of rules.

    [default,-numbers] is the default without the rule numbers; [copy,length] are two rules alone. docs/cleaning.md
    lists the rules."""
    weight: Weight = 1.0
    """How often an epoch has each training pair: 2 is twice, 0.5 is once in two epochs on average."""
    reverse: bool = False
    """Also train the opposite direction on the corpus, so that one model translates in both."""

    @property
    def direction(self) -> Direction:
        return Direction(self.source_language, self.target_language)

    def towards(self, direction: Direction) -> Self:
        """Return the config with the languages of a direction."""
        return self.model_copy(update={"source_language": direction.source, "target_language": direction.target})

    def validation_errors(self) -> Iterator[str]:
        for key in ("source_language", "target_language"):
            if code := CODES_OF_NAMES.get((name := getattr(self, key)).lower()):
                yield f"{key}={name} is the name of a language: set its code, {code}"

    @property
    def cleaning_rules(self) -> tuple[str, ...]:
        """The names of the chosen cleaning rules, in the order of their application.

        Between two forms of one language, as for correction or simplification, copies are right: the rule copy is then
        part of no set of rules.
        """
        words = _rule_words(self.cleaning)
        in_one_language = base_language(self.source_language) == base_language(self.target_language)
        return _chosen_rules((*words, "-copy") if in_one_language and "copy" not in words else words)

    def without_rule(self, rule: str) -> str:
        """Return the present setting without one of its rules, as typed: ``data.cleaning=[default,-copy]``."""
        words = [word for word in _rule_words(self.cleaning) if word != rule]
        words += [f"-{rule}"] if rule in _chosen_rules(tuple(words)) else []
        return f"data.cleaning=[{','.join(words)}]" if words else "data.cleaning=false"


class UnsplitConfig(CorpusConfig):
    """The settings of a corpus from whose training pairs validation and test pairs can be held out."""

    valid_pairs: PositiveInt = 2000
    """Pairs to hold out of the training data for validation, if there is no validation data. At most a tenth of the
    training data is held out."""
    test_pairs: PositiveInt = 2000
    """Pairs to hold out of the training data for the test set, if there is no test data. At most a tenth of the
    training data is held out."""


def language_suffix(file: str) -> str:
    """Return the suffix of a file name, without that of a compressed file: ``en`` for ``train.en`` or ``train.en.gz``.
    Return "" if there is none."""
    return format_suffix(Path(file)).removeprefix(".")


class PileConfig(UnsplitConfig):
    """The settings of a corpus that is read from the user's own files."""

    on_bad_file: Literal["stop", "skip"] = "stop"
    """What to do if a file is corrupted or lacks a column. stop: end before training. skip: use nothing of the file,
    and name it in the log and in provenance.json. If no file is left, the run ends."""
    tagged: bool = False
    """In a mixture: put a tag in front of each source of this corpus. Use it for back-translated sources, so that the
    model can tell them from sources that people wrote (Caswell et al. 2019). Text to translate gets no tag."""


FilePair = tuple[PathText, PathText]


def _pair_or_pairs(value: object) -> str:
    """Return the tag of a type: "one" for a pair of files, "many" for a list of pairs. Without the tag, pydantic would
    report an error in one type as errors in both."""
    return "many" if isinstance(value, list | tuple) and value and not isinstance(value[0], str) else "one"


PairOrPairs = Annotated[
    Annotated[FilePair, Tag("one")] | Annotated[tuple[FilePair, ...], Tag("many")], Discriminator(_pair_or_pairs)
]
Paths = PathText | Annotated[tuple[PathText, ...], Field(min_length=1)]


class FilesConfig(PileConfig):
    """Pairs of parallel text files with one sentence on each line: plain, .gz, .xz or .zst."""

    kind: Literal["files"]
    train: PairOrPairs
    """Training files: [source,target]; a list of such pairs; or two patterns, as ['corpora/*.en','corpora/*.es'], which
    pair the files in whose names the * stands for the same text."""
    valid: PairOrPairs | Annotated[dict[SetName, PairOrPairs], Field(min_length=1)] | None = None
    """Validation files, which decide which weights are best. Written as for train, or several sets with a name for
    each: {news:[news.en,news.es],chat:[chat.en,chat.es]}. null: hold valid_pairs out of the training data."""
    test: PairOrPairs | None = None
    """Test files, which the finished model is scored on. Written as for train. null: hold test_pairs out of the
    training data."""

    def validation_errors(self) -> Iterator[str]:
        yield from super().validation_errors()
        languages = [self.source_language, self.target_language]
        for split in ("train", *SPLITS):
            for files in chain(*(as_pairs(getattr(part, split)) for part in named_sets(self, split).values())):
                if files[0] == files[1]:
                    yield f"{split} has {files[0]} on both sides: give a source file and a target file"
                if [language_suffix(file) for file in files] == languages[::-1] != languages:
                    yield f"{split}=[{','.join(files)}] has the {self.target_language} file first: swap the two files"


def as_pairs(named: FilePair | tuple[FilePair, ...] | None) -> tuple[FilePair, ...]:
    """Return a tuple of the pairs of files that a setting names, whether it names one pair, several or none."""
    return (named,) if named and isinstance(named[0], str) else named or ()


class TableConfig(PileConfig):
    """Files with a column for each language: TSV (unquoted), CSV, JSON, JSONL or Parquet; or translation memories (TMX)
    and translated documents (PO, XLIFF), whose columns are their languages."""

    kind: Literal["table"]
    train: Paths
    """Training files: a file, a folder of files, a pattern (memories/*.tmx; ** stands for folders of any depth), or a
    list of these. The files may have different formats, but their columns must have the same names."""
    valid: Paths | Annotated[dict[SetName, Paths], Field(min_length=1)] | None = None
    """Validation files, which decide which weights are best. Written as for train, or several sets with a name for
    each: {news:news.tsv,chat:chat.tsv}. null: hold valid_pairs out of the training data."""
    test: Paths | None = None
    """Test files, which the finished model is scored on. Written as for train. null: hold test_pairs out of the
    training data."""
    source_column: Text | NonNegativeInt | None = None
    """Column of the source: its name, or its number, counted from 0, in files without a header line. null: the column
    with the name of source_language."""
    target_column: Text | NonNegativeInt | None = None
    """Column of the target: its name or number, as for source_column. null: the column with the name of
    target_language."""
    delimiter: Delimiter = ","
    """In CSV files: the character between columns, such as ; or | or \\t. A first line sep=; in a file overrides it."""
    skip_bad_rows: bool = False
    """Leave out rows and units of translation memories that cannot be read, instead of stopping. The log has the first
    one and their number. More than half of a file stop the run."""

    @property
    def columns(self) -> tuple[str | int, str | int]:
        """The columns of source and target, by name or number."""
        source, target = self.source_column, self.target_column
        languages = self.source_language, self.target_language
        return languages[0] if source is None else source, languages[1] if target is None else target

    def validation_errors(self) -> Iterator[str]:
        yield from super().validation_errors()
        source, target = self.columns
        if source == target:
            yield f"source_column and target_column are both {source}: set two columns"
        if isinstance(source, int) != isinstance(target, int):
            yield "source_column and target_column must be two names, or two numbers in files without a header line"


class HubConfig(UnsplitConfig):
    """A dataset on the Hugging Face hub that loads without a script, or a local folder with the same layout."""

    kind: Literal["hub"]
    path: PathText
    """Dataset to load: OWNER/NAME on the hub, or a folder."""
    subset: Text | None = None
    """Name of the dataset's configuration, if it has several."""
    revision: Text | None = None
    """Commit, tag or branch of the dataset. A commit keeps the data from changing. null: the newest commit."""
    train_split: Text = "train"
    """Split with the training pairs."""
    valid_split: Text | None = "validation"
    """Split with the validation pairs, which decide which weights are best. null: hold valid_pairs out of the training
    data."""
    test_split: Text | None = "test"
    """Split with the test pairs, which the finished model is scored on. null: hold test_pairs out of the training
    data."""
    source_column: Text | None = None
    """Column of the source. null: the column with the name of source_language, or the entry with this name in the
    column `translation`."""
    target_column: Text | None = None
    """Column of the target. null: the column or entry with the name of target_language, as for source_column."""
    streaming: bool = False
    """Read the dataset row by row over the network, and keep only its text on the disk, instead of downloading its
    files first. Use it for datasets that are too large to download."""
    most_pairs: PositiveInt | None = None
    """Number of training pairs to read, from the beginning of the split. With streaming, hardly more is downloaded.
    null: all."""

    def validation_errors(self) -> Iterator[str]:
        yield from super().validation_errors()
        if self.path.removeprefix("hf://datasets/") in FILE_FORMATS:
            hint = "take data=files or data=table for files of your own"
            yield f"path={self.path} is not a dataset but a file format of the library datasets: {hint}"


class RecipeConfig(CorpusConfig):
    """A corpus that a recipe, a script in the folder data/, downloads, verifies and splits."""

    kind: Literal["recipe"]
    cleaning: Cleaning = False
    """Training pairs to drop as faulty: default, strict, false or a list of rules, as for other corpora. The pairs of a
    recipe are clean already."""
    recipe: Literal["tatoeba_en_fr"]
    """Name of the recipe."""


SingleCorpusConfig = Annotated[FilesConfig | TableConfig | HubConfig | RecipeConfig, Field(discriminator="kind")]


LANGUAGES = ("source_language", "target_language")


class MixtureConfig(UnsplitConfig):
    """Several corpora, of one direction or of several. Validation and test data of a direction come from its first
    corpus."""

    kind: Literal["mixture"]
    corpora: Annotated[tuple[SingleCorpusConfig, ...], Field(min_length=1)]
    """List of corpora, each with the keys of its kind. Other settings that all kinds have are those of the mixture. A
    corpus may have its own source_language and target_language, which make one model of several directions."""
    temperature: Annotated[float, Within(1, 100)] = 1.0
    """With several directions: the share of a direction with n of N weighted pairs in an epoch is proportional to
    (n/N)^(1/temperature) (Arivazhagan et al. 2019). 1: in proportion to the pairs; 5 is usual for corpora of very
    different sizes. The largest direction has each pair once, others repeat theirs."""

    @model_validator(mode="before")
    @classmethod
    def _corpora_inherit(cls, values: object) -> object:
        """Return the values of a mixture after copying its own settings, except the weight, into corpora that lack
        them. Without languages of its own, it has those of its first corpus."""
        if not isinstance(values, dict) or not isinstance(values.get("corpora"), list | tuple):
            return values
        first = next(iter(values["corpora"]), None)
        if isinstance(first, dict):
            values = {name: first[name] for name in LANGUAGES if name in first} | values

        def complete(entry: object) -> object:
            if not isinstance(entry, dict):
                return entry
            fields = CorpusConfig.model_fields if entry.get("kind") == "recipe" else UnsplitConfig.model_fields
            return {name: values[name] for name in fields if name in values and name != "weight"} | entry

        return values | {"corpora": [complete(entry) for entry in values["corpora"]]}

    def validation_errors(self) -> Iterator[str]:
        yield from super().validation_errors()
        inherited = [name for name in UnsplitConfig.model_fields if name not in ("weight", "reverse", *LANGUAGES)]
        directions = [corpus.direction for corpus in self.corpora]
        if self.direction != directions[0]:
            reason = f"the first corpus translates {directions[0]}, not {self.direction}"
            yield f"source_language and target_language: {reason}; leave them out, each corpus may have its own"
        if self.temperature != 1 and len(data_directions(self)) == 1:
            yield f"temperature={self.temperature:g} is for several directions: leave it out, or set weight of corpora"
        for number, corpus in enumerate(self.corpora):
            for name in inherited:
                own, other = getattr(self, name), getattr(corpus, name, None)
                if other is not None and own != other:
                    mixture = f"the mixture has {name}={format_value(own)}; leave it out here"
                    yield f"corpora[{number}].{name}={format_value(other)}: {mixture}"
            for split in SPLITS if corpus.direction in directions[:number] else ():
                if not isinstance(corpus, RecipeConfig) and has_explicit_split(corpus, split):
                    key = f"corpora[{number}].{split_key(corpus, split)}"
                    yield f"{key} is not read: validation and test come from the first corpus; leave it out"


DataConfig = Annotated[
    FilesConfig | TableConfig | HubConfig | RecipeConfig | MixtureConfig, Field(discriminator="kind")
]


def single_corpora(data: DataConfig) -> tuple[SingleCorpusConfig, ...]:
    """Return the corpora of a mixture, or the only one."""
    return data.corpora if isinstance(data, MixtureConfig) else (data,)


def directed_corpora(data: DataConfig) -> list[SingleCorpusConfig]:
    """Return the corpora of all directions, grouped by direction. ``reverse`` is true for those whose sources are their
    targets."""
    corpora = [corpus.model_copy(update={"reverse": False}) for corpus in single_corpora(data)]
    corpora += [corpus.towards(corpus.direction.opposite) for corpus in single_corpora(data) if corpus.reverse]
    order = list(dict.fromkeys(corpus.direction for corpus in corpora))
    return sorted(corpora, key=lambda corpus: order.index(corpus.direction))


def data_directions(data: DataConfig) -> list[Direction]:
    """Return the directions of a corpus or mixture. The first one has the languages of its config."""
    return list(dict.fromkeys(corpus.direction for corpus in directed_corpora(data)))


def named_sets(corpus: SingleCorpusConfig, split: str) -> dict[str, Any]:
    """Return name → the corpus with the files of one set, for each set of a split. A set without a name has the key
    ""."""
    files = getattr(corpus, split, None)
    if not isinstance(files, dict):
        return {"": corpus}
    return {name: corpus.model_copy(update={split: part}) for name, part in files.items()}


def split_key(corpus: SingleCorpusConfig, split: str) -> str:
    """Return the key of a corpus that locates a split ("valid" or "test"): valid_split for a hub dataset, otherwise
    valid."""
    return f"{split}_split" if isinstance(corpus, HubConfig) else split


def has_explicit_split(corpus: SingleCorpusConfig, split: str) -> bool:
    """Return whether the user has given the validation or test data of a corpus, or a recipe writes them.

    Of a hub dataset, only a split name that the user has set counts: with the default name, pairs are held out if the
    dataset has no such split.

    Args:
        corpus: The config of the corpus.
        split: "valid" or "test".
    """
    if isinstance(corpus, RecipeConfig):
        return True
    key = split_key(corpus, split)
    return corpus.differs_from_default(key) and getattr(corpus, key) is not None
