"""Outputs that are complete or absent, and that a stopped command continues."""

import json
import os

import pytest

from mt.core.errors import InputError, RunError
from mt.core.output import record_path, recorded_job, resumable_outputs

WINDOWS = [(2, b"a\nb\n", b"1\n2\n"), (1, b"c\n", b"3\n"), (2, b"d\ne\n", b"4\n5\n")]


def names(folder):
    return {path.name for path in folder.iterdir()}


def write(folder, job="job", windows=3, stop_after=3, only_record=False):
    """Write the windows that are missing, and stop after so many. Return the number of lines that were there before."""
    outputs = [str(folder / name) for name in ("a" if only_record else "ab")]
    with resumable_outputs(outputs, job and (lambda: job), only_record) as opened:
        begun = opened.lines
        assert [value["rows"] for value in opened.values] == [rows for rows, *_ in WINDOWS][: len(opened.values)]
        for rows, *contents in WINDOWS[len(opened.values) : stop_after]:
            opened.append(rows, () if only_record else contents, {"rows": rows})
        if stop_after < windows:
            raise KeyboardInterrupt
    return begun


def stop(folder, after, **options):
    with pytest.raises(KeyboardInterrupt):
        write(folder, stop_after=after, **options)


def assert_complete(folder):
    assert names(folder) == {"a", "b"}
    assert (folder / "a").read_bytes() == b"a\nb\nc\nd\ne\n" and (folder / "b").read_bytes() == b"1\n2\n3\n4\n5\n"


def test_a_stopped_job_continues_with_the_next_window(tmp_path, caplog):
    (tmp_path / "a").write_text("an older file")
    stop(tmp_path, 2)
    assert names(tmp_path) == {"a", "a.partial", "b.partial", "a.partial.json"}
    assert (tmp_path / "a").read_text() == "an older file" and recorded_job(tmp_path / "a") == "job"
    assert f"the output so far is in {tmp_path / 'a.partial'}; start the same command again" in caplog.text
    assert write(tmp_path) == 3
    assert_complete(tmp_path)


def test_a_kill_at_any_byte_loses_only_the_window_that_was_being_written(tmp_path):
    """A window is written to the outputs first, then to the record."""
    stop(tmp_path, 1)
    before = {path: path.stat().st_size for path in tmp_path.iterdir()}
    stop(tmp_path, 2)
    contents = {tmp_path / f"{name}.partial{end}": b"" for name, end in (("a", ""), ("b", ""), ("a", ".json"))}
    contents = {path: path.read_bytes() for path in contents}
    written = sum(len(content) - before[path] for path, content in contents.items())
    for count in range(written + 1):
        left = count
        for path, content in contents.items():
            size = min(len(content), before[path] + left)
            left -= size - before[path]
            path.write_bytes(content[:size])
        assert write(tmp_path) == (3 if count == written else 2)
        assert_complete(tmp_path)


def _other_job(folder):
    stop(folder, 2, job="other")


def _of_version_1_0_0(folder):
    (folder / "a.partial").write_text("a\n")
    record = {"job": "job", "lines": 1, "sizes": [2, 0], "sha256": "0"}
    (folder / "a.partial.json").write_text(json.dumps(record, indent=2))


def _without_record(folder):
    stop(folder, 2)
    record_path(folder / "a").unlink()


def _shorter_than_recorded(folder):
    stop(folder, 1)
    os.truncate(folder / "b.partial", 3)


@pytest.mark.parametrize("leave", [_other_job, _of_version_1_0_0, _without_record, _shorter_than_recorded])
def test_outputs_replace_records_of_other_jobs_and_versions(tmp_path, caplog, leave):
    leave(tmp_path)
    assert write(tmp_path) == 0
    assert "a.partial.json: of another job or version, or corrupted; beginning anew" in caplog.text
    assert_complete(tmp_path)


@pytest.mark.parametrize("job", ["job", None])
def test_nothing_stays_if_nothing_was_written(tmp_path, job):
    stop(tmp_path, 0, job=job)
    assert names(tmp_path) == set()


def test_only_a_record(tmp_path, caplog):
    stop(tmp_path, 1, only_record=True)
    assert names(tmp_path) == {"a.partial"} and "the output so far is in" in caplog.text
    assert write(tmp_path, only_record=True) == 2
    assert names(tmp_path) == set()


def test_without_a_job_nothing_is_continued(tmp_path, caplog):
    stop(tmp_path, 2, job=None)
    assert names(tmp_path) == {"a.partial", "b.partial"} and "same command again" not in caplog.text
    assert write(tmp_path, job=None) == 0
    assert_complete(tmp_path)


def test_a_link_stays_and_its_target_is_written(tmp_path):
    (tmp_path / "link").symlink_to("target")
    with resumable_outputs([str(tmp_path / "link")], None) as opened:
        opened.append(1, [b"x"])
        assert names(tmp_path) == {"link", "target.partial"}
    assert (tmp_path / "link").is_symlink() and (tmp_path / "target").read_text() == "x"


def test_outputs_that_cannot_be_written_are_refused(tmp_path):
    with (
        pytest.raises(InputError, match=r"the folder .*/no does not exist; create it first"),
        resumable_outputs([str(tmp_path / "no/a")], None),
    ):
        pass
    first, second = (resumable_outputs([str(tmp_path / "a")], None) for _ in range(2))
    with first, pytest.raises(RunError, match=r"another process is writing .*a\.partial"), second:
        pass


def test_a_device_is_written_directly(tmp_path):
    with resumable_outputs(["/dev/null", str(tmp_path / "a")], lambda: pytest.fail("nothing to resume")) as opened:
        opened.append(1, [b"x", b"y"])
    assert names(tmp_path) == {"a"}
