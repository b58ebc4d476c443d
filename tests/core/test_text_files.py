"""Binary content and other encodings are known by the beginning of a file, and text never is taken for them."""

import gzip
import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mt.core.text_files import describe_binary, is_mostly_invalid

NO_TEXT = "binary, or text in UTF-16 without a byte order mark"


@given(st.lists(st.text(st.characters(codec="utf-8", categories=["L", "Nd", "Zs", "Po"])), max_size=5))
def test_text_in_utf_8_is_read(lines):
    content = "\n".join(lines).encode()
    assert describe_binary(content) is None and not is_mostly_invalid(content)


def test_read_lines_reports_binary_content(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.docx", "w") as archive:
        archive.writestr("word/document.xml", "<x/>")
    assert describe_binary((tmp_path / "a.docx").read_bytes()).startswith("a zip archive")
    assert describe_binary(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(range(256))) == NO_TEXT
    assert describe_binary(gzip.compress(b"")).startswith("compressed by gzip")
    assert describe_binary(bytes(257) + b"ustar\0") == "a tar archive"


@pytest.mark.parametrize(
    "text",
    ["Das ist ein Satz.", "Ακούει ωραίους ήχους.", "Он слышит звуки.", "वह सुंदर ध्वनियाँ सुनता है।", "一一 丁"],
)
@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf_16_without_byte_order_mark_is_not_text(text, encoding):
    assert describe_binary(f"{text}\n".encode(encoding) * 30) == NO_TEXT
    assert describe_binary(f"\ufeff{text}\n".encode(encoding) * 30) is None


@pytest.mark.parametrize("content", ["Größe\n".encode("latin-1") * 9, "Größe".encode("utf-16"), b"a\0b\n", b"\x1b[1m"])
def test_text_with_odd_bytes_is_not_binary(content):
    assert describe_binary(content) is None


def test_a_few_control_characters_and_broken_bytes_make_no_text_binary_but_many_do():
    broken = b"Good\xff morning.\n"
    assert describe_binary(broken + b"\x00\x01\x02 It is late.\n") is None
    assert describe_binary(broken + bytes(range(9)) + b"\n") == NO_TEXT
    assert describe_binary(broken * 1000 + bytes(range(9)) + b"\n") is None
    assert describe_binary(b"Field one\x01Another field\x00\n" * 9) is None


def test_another_encoding_is_reported_from_a_few_faults():
    plain, umlaut, fault = b"Guten Tag.\n", "Töne\n".encode(), "Töne\n".encode("latin-1")
    assert is_mostly_invalid(plain * 4 + fault * 5) and not is_mostly_invalid(plain * 5 + fault * 4)
    assert is_mostly_invalid(plain * 90 + umlaut * 19 + fault * 20)
    assert not is_mostly_invalid(plain * 90 + umlaut * 20 + fault * 20)
    assert not is_mostly_invalid(plain * 90 + fault * 19)


def test_character_cut_at_the_end_is_accepted():
    for line in ("好" * 30, "é" * 30, "😀" * 30):
        assert not any(is_mostly_invalid(line.encode()[:end]) for end in range(40, 80))
    assert is_mostly_invalid("à la mer, là-bas, déjà vu é".encode("latin-1"))
