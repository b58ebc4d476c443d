"""Warnings of shifted lines, with file and line; none for aligned corpora."""

import numpy as np
import pytest

from mt.data.cleaning.stage import warn_of_shifted_lines
from tests.data.corpora import load
from tests.toy import write_lines


def sentences(count, seed=0):
    """Sources of six words out of 150, and their translations word by word."""
    words = np.random.default_rng(seed).integers(0, 150, (count, 6))
    return [[" ".join(f"{side}{word:03}x" for word in line) for line in words] for side in "st"]


def warning(tmp_path, caplog, *files, held_out=100):
    paths = [[str(tmp_path / f"{number}.{side}") for side in ("de", "en")] for number in range(len(files))]
    for names, sides in zip(paths, files, strict=True):
        for name, lines in zip(names, sides, strict=True):
            write_lines(tmp_path / name, lines)
    warn_of_shifted_lines(load(kind="files", train=paths, valid_pairs=held_out, test_pairs=held_out))
    return [record.getMessage() for record in caplog.records if "shifted" in record.getMessage()]


@pytest.mark.parametrize(
    ("count", "line", "lost_sources", "lost_targets"), [(1000, 0, 1, 0), (1000, 500, 0, 2), (20_000, 12_000, 3, 0)]
)
def test_shifted_lines_are_reported_with_file_and_line(tmp_path, caplog, count, line, lost_sources, lost_targets):
    sources, targets = sentences(count)
    del sources[line : line + lost_sources], targets[line : line + lost_targets]
    length = min(len(sources), len(targets))
    (message,) = warning(tmp_path, caplog, (sources[:length], targets[:length]))
    lost = lost_sources + lost_targets
    assert message.startswith(f"{tmp_path}/0.de + {tmp_path}/0.en: lines seem shifted by {lost} from about line ")
    named = int(message.partition("about line ")[2].split()[0].replace(",", ""))
    assert abs(named - line - 1) <= count / 100
    assert f"belongs to line N{lost_sources - lost_targets:+d} of the targets" in message


def test_shift_warning_gives_shifted_file(tmp_path, caplog):
    (sources, targets), healthy = sentences(1000, seed=1), sentences(1000)
    (message,) = warning(tmp_path, caplog, healthy, (sources[1:], targets[:-1]))
    assert message.startswith(f"{tmp_path}/1.de + {tmp_path}/1.en: lines seem shifted by 1 from about line ")


def test_aligned_corpora_give_no_shift_warning(tmp_path, caplog):
    sources, targets = sentences(1000)
    near_duplicates = [[line for line in sources for _ in range(2)], [line + end for line in targets for end in " ."]]
    dictionary = [[f"s{number // 3}" for number in range(900)], [f"t{number}" for number in range(900)]]
    unrelated = sources, sentences(1000, seed=5)[1]
    for corpus in ((sources, targets), near_duplicates, dictionary, unrelated):
        assert not warning(tmp_path, caplog, corpus, held_out=10)
