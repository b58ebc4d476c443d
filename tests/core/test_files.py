"""Lines end at the line feed alone, none of a compressed file is lost, and no half-written file has its final name."""

import gzip
import lzma
import os
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mt.config import ExportConfig, TranslateConfig
from mt.core.errors import InputError
from mt.core.files import (
    atomic_folder,
    make_folder,
    read_lines,
    read_start,
    recover_folders,
    resolved,
    write_atomically,
)
from mt.export.ctranslate2 import export_ctranslate2
from mt.translation.command import translate


def compressed(content, suffix):
    match suffix:
        case ".gz":
            return gzip.compress(content)
        case ".xz":
            return lzma.compress(content)
        case ".zst":
            return pyarrow.compress(content, codec="zstd", asbytes=True)
        case _:
            return content


@given(lines=st.lists(st.binary().filter(lambda line: b"\n" not in line)), ended=st.booleans())
@example(lines=["a\rb\x0bc\x0cd\x1ce\x85f\u2028g\u2029h\x00i".encode()] * 2, ended=False)
@pytest.mark.parametrize("suffix", ["", ".gz", ".xz", ".zst"])
def test_only_line_feeds_end_lines(tmp_path_factory, suffix, lines, ended):
    path = tmp_path_factory.getbasetemp() / f"lines{suffix}"
    # Without a last line feed an empty last line cannot be distinguished from none.
    ended = ended or not lines or not lines[-1]
    content = b"\n".join(lines) + (b"\n" if ended and lines else b"")
    path.write_bytes(compressed(content, suffix))
    assert list(read_lines(path)) == lines


@pytest.mark.parametrize("suffix", ["", ".gz", ".xz", ".zst"])
def test_read_file_reports_unreadable_files(tmp_path, suffix):
    path = tmp_path / f"a{suffix}"
    with pytest.raises(InputError, match=f"a{suffix}: no such file"):
        list(read_lines(path))
    content = compressed(b"".join(b"line %d\n" % number for number in range(5000)), suffix)
    cut = [content[: int(len(content) * kept)] for kept in (0.1, 0.5, 0.99)]
    for corrupted in [*cut, b"just some text\n" * 100] if suffix else []:
        path.write_bytes(corrupted)
        with pytest.raises(InputError, match=f"a{suffix}"):
            list(read_lines(path))
    path.unlink(missing_ok=True)
    path.mkdir()
    with pytest.raises(InputError, match=f"a{suffix}"):
        list(read_lines(path))


FIRST, SECOND = lzma.compress(b"one\ntwo\n"), lzma.compress(b"three\n" * 10**6)


def test_all_streams_are_read(tmp_path):
    (tmp_path / "a.xz").write_bytes(FIRST + SECOND + FIRST)
    assert list(read_lines(tmp_path / "a.xz")) == [b"one", b"two", *[b"three"] * 10**6, b"one", b"two"]
    assert read_start(tmp_path / "a.xz").startswith(b"one\ntwo\nthree\n")


@pytest.mark.parametrize(
    ("rest", "message"),
    [
        (b"garbage" * 10_000, "its compressed data is followed by something else"),
        (b"\0" * 4 + SECOND, "its compressed data is followed by something else"),
        (b"\0" * 10**6, "its compressed data is followed by something else"),
        (SECOND[:5] + b"x" + SECOND[6:], "its compressed data is followed by something else"),
        (SECOND[:1], "Compressed file ended before the end-of-stream marker was reached"),
        (SECOND[:-5], "Compressed file ended before the end-of-stream marker was reached"),
        (SECOND[:200] + b"\xff" * 4 + SECOND[204:], ""),
    ],
)
def test_anything_else_behind_a_stream_is_refused(tmp_path, rest, message):
    (tmp_path / "a.xz").write_bytes(FIRST + rest)
    with pytest.raises(InputError, match=rf"a\.xz: cannot be read: {message}.*; get a new copy of the file"):
        list(read_lines(tmp_path / "a.xz"))


def test_a_failed_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "file"
    write_atomically(path, "old")
    with pytest.raises(UnicodeEncodeError):
        write_atomically(path, "half \ud800")
    assert path.read_text() == "old"
    write_atomically(path, b"new")
    assert path.read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["file"]


def test_a_folder_is_complete_or_not_there(tmp_path):
    path = tmp_path / "deep" / "folder"
    with pytest.raises(ZeroDivisionError), atomic_folder(path) as partial:
        (partial / "file").write_text("half")
        raise ZeroDivisionError
    assert os.listdir(path.parent) == []
    path.mkdir()
    with atomic_folder(path) as partial:
        (partial / "sub").mkdir()
        (partial / "sub" / "file").write_text("whole")
    with pytest.raises(OSError), atomic_folder(path) as partial:
        (partial / "file").write_text("of a process that is too late")
    assert [str(found.relative_to(path)) for found in sorted(path.rglob("*"))] == ["sub", "sub/file"]
    assert os.listdir(path.parent) == ["folder"]


def test_a_killed_process_leaves_no_folder_under_the_name(tmp_path):
    program = (
        "import os, signal, sys\n"
        "from pathlib import Path\n"
        "from mt.core.files import atomic_folder\n"
        "with atomic_folder(Path(sys.argv[1])) as partial:\n"
        "    (partial / 'file').write_text('half')\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    path = tmp_path / "folder"
    done = subprocess.run([sys.executable, "-c", program, str(path)], cwd=Path(__file__).parents[2])
    assert done.returncode == -signal.SIGKILL
    assert not path.exists()


def test_recover_folders_removes_partial_files_in_subfolders(tmp_path):
    (tmp_path / "scored").mkdir()
    (tmp_path / ".checkpoints.0123456789ab.partial" / "deep").mkdir(parents=True)
    outside = tmp_path.with_name("outside")
    (outside / ".mine.0123456789ab.partial").mkdir(parents=True)
    (tmp_path / ".link.0123456789ab.partial").symlink_to(outside)
    (tmp_path / "elsewhere").symlink_to(outside)
    (tmp_path / ".kept.1.replaced").symlink_to("scored")
    (tmp_path / ".kept.2.replaced").touch()
    for name in (
        "kept",
        ".lock",
        ".model.safetensors.0123456789ab.partial",
        "scored/.test.source.0123456789ab.partial",
    ):
        (tmp_path / name).touch()
    recover_folders(tmp_path)
    assert sorted(path.name for path in tmp_path.rglob("*")) == [".lock", "elsewhere", "kept", "scored"]
    assert (outside / ".mine.0123456789ab.partial").is_dir()


@pytest.fixture
def flushed(monkeypatch):
    """The paths of all that is flushed to the disk."""
    found = []
    fsync = os.fsync

    def recorded(descriptor):
        found.append(os.readlink(f"/proc/self/fd/{descriptor}"))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", recorded)
    return found


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="only Linux tells the path of an open file")
def test_names_of_files_and_of_new_folders_are_flushed(tmp_path, flushed):
    deep = tmp_path / "a" / "b"
    make_folder(deep)
    assert deep.is_dir() and sorted(flushed) == [str(tmp_path), str(tmp_path / "a")]
    flushed.clear()
    make_folder(deep)
    assert flushed == []
    write_atomically(deep / "file", "text")
    assert flushed[-1] == str(deep)
    flushed.clear()
    with atomic_folder(deep / "c" / "d") as partial:
        (partial / "inner").mkdir()
        for name in ("one", "inner/two"):
            (partial / name).write_text("text")
        assert flushed[0] == str(deep)  # which holds the new name "c"
        flushed.clear()
    assert sorted(flushed[:-1]) == sorted(str(partial / name) for name in ("", "one", "inner", "inner/two"))
    assert flushed[-1] == str(deep / "c")  # which holds the new name "d"


def test_atomic_folder_follows_links_and_reports_circles(tmp_path):
    (tmp_path / "loop").symlink_to("pool")
    (tmp_path / "pool").symlink_to("loop")
    (tmp_path / "link").symlink_to("gone")
    (tmp_path / "file").touch()
    for path in ("loop", "loop/file", "missing/../pool"):
        with pytest.raises(InputError, match=f"{path}: a symbolic link that leads in a circle"):
            resolved(tmp_path / path)
    assert resolved(tmp_path / "link" / "x") == tmp_path / "gone" / "x"
    assert resolved(tmp_path / "file" / "x") == tmp_path / "file" / "x"


@pytest.mark.parametrize("path", ["loop", "loop/file"])
def test_commands_name_an_output_that_is_a_link_in_a_circle(tmp_path, monkeypatch, path):
    monkeypatch.chdir(tmp_path)
    Path("loop").symlink_to("loop")
    Path("input").touch()
    with pytest.raises(InputError, match=f"{path}: a symbolic link that leads in a circle"):
        translate(TranslateConfig(run="nowhere", input="input", output=path))
    pytest.importorskip("ctranslate2")
    with pytest.raises(InputError, match=f"{path}: a symbolic link that leads in a circle"):
        export_ctranslate2(ExportConfig(format="ctranslate2", run="nowhere", output=path))
    assert Path("loop").is_symlink()
