"""Lists words outside of the project's vocabulary, which is that of the field: ``python -m tests.vocabulary [FILE …]``.

Each line of the output names the place, the words and what to write instead. Without files, all are searched.
``make lint`` runs it. Settings and keys of files such as ``lower_case`` and ``left_out`` keep their names.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
SUFFIXES = {".py", ".md", ".yaml", ".jinja", ".js", ".html", ".ipynb", ".toml"}
EXCLUDED = ("README.zh.md", "docs/lab-notebook.md", "tests/releases/", "tests/vocabulary.py")
"""Translations, records of the past and the list itself."""

STEMS = (
    "analy|capital|critic|emphas|general|initial|local|maxim|minim|normal|optim|organ|orthogonal|quant|random|recogn|"
    "regular|serial|special|summar|token"
)
TERMS = {
    rf"(?:de|re|un)?(?:{STEMS})is(?:e|es|ed|er|ers|ing|ation|ations)": "the American spelling: -ize, -ization",
    r"(?:behavi|col|fav|neighb|hon)our[a-z]*": "the American spelling: -or",
    "learnt|spelt|misspelt": "learned, spelled, misspelled",
    "artefacts?|centre|grey|licences?|catalogues?": "artifact, center, gray, license, catalog",
    "more than chance|could it be chance|choice of sentences explains": "statistically significant, significance",
    r"small letters|lower\scase": "lowercase",
    "in capitals|upper case": "in uppercase",
    "white space": "whitespace",
    "(?:an?|the|no|of|without|each|every) blanks?(?! (?:lines?|rows?|texts?|sides?|pages?|cells?|pictures?))": "space",
    "data sets?": "dataset",
    "never written": "suppressed tokens",
    "gold": "labels",
    "leaders?": "main process",
    "deliver(?:s|ed|y)?": "finalize, final model, final outputs",
    "decisive": "early-stopping metric",
    "goes on|went on": "resumes, continues",
    "told": "reported",
    r"left\sout": "skipped, filtered, omitted",
    "exchanged sides|sides (?:are|were) exchanged": "swapped",
    "damaged": "corrupted",
    "protected (?:items?|values?)": "non-translatable",
    "contradictions?": "validation errors",
    "mistakes?": "errors",
    "cautions?": "warnings",
    "advice": "hint",
    "take another name": "choose another name",
    "nearest:": "did you mean",
    "because you set none": "since it is not set",
    "back in its place": "restore it to its original path",
    r"(?<!there\s)(?:is|are|was|were) no(?! longer| more| better)": "is not",
    r"def test_what|def test_\w*_what|def test_\w*_named|def test_of": "test_<feature>_<behavior>",
}
"""Pattern of words that the project does not use → the words that it uses. A space matches any separator of words, such
as a line break or an underscore."""
EXCEPTIONS = {
    ("tests/formats/test_tmx.py", "colour"),  # British English as data
    ("mt/evaluation/comparison/verdict.py", "randomisation"),  # names a stream of random numbers, which would change
    ("mt/evaluation/robustness/measures.py", "randomisation"),
    # keys of comparison.json and robustness.json
    ("mt/evaluation/comparison/findings.py", "more_than_chance"),
    ("mt/evaluation/comparison/findings.py", "cautions"),
    ("mt/evaluation/comparison/report.html.jinja", "cautions"),
    ("mt/evaluation/comparison/comparison.md.jinja", "cautions"),
    ("tests/evaluation/comparison/test_command.py", "more_than_chance"),
    ("tests/evaluation/comparison/test_warnings.py", "cautions"),
    ("tests/evaluation/comparison/test_segment_scores.py", "cautions"),
}
SEPARATOR = r"[\s_#]+"
PATTERN = re.compile(
    "|".join(
        rf"(?P<term_{number}>(?<![^\W_])(?:{words.replace(' ', SEPARATOR)})(?![^\W_]))"
        for number, words in enumerate(TERMS)
    ),
    re.IGNORECASE,
)


def offenders(path: Path) -> Iterator[tuple[int, str, str]]:
    """Yield the line number, the words and what to write instead of each offender in a file."""
    text, name = path.read_text(encoding="utf-8"), path.relative_to(ROOT).as_posix()
    replacements = list(TERMS.values())
    for match in PATTERN.finditer(text):
        words = " ".join(match[0].split())
        if (name, words) not in EXCEPTIONS:
            number = int(str(match.lastgroup).removeprefix("term_"))
            yield text.count("\n", 0, match.start()) + 1, words, replacements[number]


def searched_files() -> list[Path]:
    """Return the files of the project, without those of other origin and caches."""
    paths = [path for folder in ("mt", "tests", "conf", "docs") for path in (ROOT / folder).rglob("*")]
    paths += [*ROOT.iterdir(), *(ROOT / "data").iterdir()]
    return sorted(
        path
        for path in paths
        if (path.suffix in SUFFIXES or path.name == "Makefile")
        and not path.relative_to(ROOT).as_posix().startswith(EXCLUDED)
    )


def main() -> None:
    count = 0
    for path in [Path(name).resolve() for name in sys.argv[1:]] or searched_files():
        for line, words, instead in offenders(path):
            print(f"{path.relative_to(ROOT)}:{line}: {words!r}: write {instead}")
            count += 1
    sys.exit(f"{count} offenders" if count else 0)


if __name__ == "__main__":
    main()
