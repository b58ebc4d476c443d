"""A file that is complete or absent, and that a stopped command continues."""

import pytest

from mt.core.errors import InputError, RunError
from mt.core.output import is_device, partial_file, partial_path


def names(folder):
    return {path.name for path in folder.iterdir()}


@pytest.mark.parametrize(("at_end", "left"), [("rename", {"a"}), ("remove", set())])
def test_a_stopped_command_continues(tmp_path, at_end, left):
    with pytest.raises(KeyboardInterrupt), partial_file(tmp_path / "a", at_end=at_end) as stream:
        stream.write(b"one ")
        raise KeyboardInterrupt
    assert names(tmp_path) == {"a.partial"}
    with partial_file(tmp_path / "a", at_end=at_end) as stream:
        stream.write(b"two")
        assert "a" not in names(tmp_path)
    assert names(tmp_path) == left
    assert not left or (tmp_path / "a").read_bytes() == b"one two"


def test_a_command_that_does_not_resume_begins_anew(tmp_path):
    (tmp_path / "a").write_text("before")
    (tmp_path / "a.partial").write_text("killed")
    with partial_file(tmp_path / "a", resumes=False) as stream:
        stream.write(b"whole")
    assert names(tmp_path) == {"a"} and (tmp_path / "a").read_text() == "whole"


def test_an_empty_partial_file_is_removed(tmp_path):
    with pytest.raises(ZeroDivisionError), partial_file(tmp_path / "a"):
        raise ZeroDivisionError
    assert names(tmp_path) == set()


def test_a_link_stays_and_its_target_is_written(tmp_path):
    (tmp_path / "link").symlink_to("target")
    assert partial_path(tmp_path / "link") == tmp_path.resolve() / "target.partial"
    with partial_file(tmp_path / "link") as stream:
        stream.write(b"x")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "target").read_text() == "x"


def test_what_cannot_be_written_is_refused(tmp_path):
    (tmp_path / "b.partial").mkdir()
    for name, message in (
        ("no/a", "setting=.*no/a: the folder .*no does not exist"),
        ("b", "b.partial, which is a folder"),
    ):
        with pytest.raises(InputError, match=message), partial_file(tmp_path / name, "setting"):
            pass
    with (
        partial_file(tmp_path / "a"),
        pytest.raises(RunError, match="another process is writing"),
        partial_file(tmp_path / "a"),
    ):
        pass
    assert is_device("/dev/null") and not is_device(tmp_path) and not is_device(tmp_path / "none")
