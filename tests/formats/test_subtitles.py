"""Subtitles: speech is translated, and times are preserved."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mt.core.errors import InputError
from tests.coded import lines_of, reader, rendered, rendered_text

read_srt, read_vtt = reader("srt"), reader("vtt")


def test_subtitle_has_a_passage_for_each_speaker():
    content = (
        "1\n00:00:01,000 --> 00:00:02,000\nHello there,\nhow are you?\n\n"
        "2\r\n00:00:03,000 --> 00:00:04,000\r\n- <i>Fine.</i>\r\n- And you?\r\n\r\n"
        "3\n00:00:05,000 --> 00:00:06,000\n\n4\n00:00:07,000 --> 00:00:08,000\n1984\n"
    )
    document = read_srt(content)
    assert lines_of(document) == ["Hello there, how are you?", "<0>Fine.</0>", "And you?"]
    written = rendered_text(document, ["Bonjour, comment vas-tu ?", "<0>Bien.</0>", "Et toi ?"])
    expected = content.replace("Hello there,\nhow are you?", "Bonjour,\ncomment vas-tu ?")
    assert written == expected.replace("Fine", "Bien").replace("And you?", "Et toi ?")


def test_vtt_notes_voices_and_times_are_preserved():
    content = (
        "WEBVTT - title\n\nNOTE\na note\n\nSTYLE\n::cue { color: red }\n\nintro\n00:01.000 --> 00:02.000 align:left\n"
        "<v Bob>Hello <00:01.500>there &amp; you</v>\n\n01:00:00.000 --> 01:00:01.000\nTom <b>and</b> Ann&#10;Zoe\n"
    )
    document = read_vtt(content)
    assert lines_of(document) == ["<0>Hello <1/>there & you</0>", "Tom <0>and</0> Ann<2/>Zoe"]
    written = rendered_text(document, ["<0>Salut < <1/>toi</0>", "Tom <0>and</0> Ann<2/>Zoe"])
    assert written == content.replace("Hello <00:01.500>there &amp; you", "Salut &lt; <00:01.500>toi")


@pytest.mark.parametrize(
    ("speech", "texts"),
    [
        ("– Is he here?\n– No, he left.", ["Is he here?", "No, he left."]),
        ("<i>- Is he here?</i>\n<i>- No.</i>", ["Is he here?<0/>", "No.<0/>"]),
        ("<i>- Is he here?\n- No.</i>", ["Is he here?", "No.<0/>"]),
        ("-<i>Is he here?</i>\n-No.", ["<0>Is he here?</0>", "No."]),
        (">> Where is Tom?\n>>> ANN: He is here.", ["Where is Tom?", "ANN: He is here."]),
        ("TOM: Where are you?\nANN: Here.", ["TOM: Where are you?", "ANN: Here."]),
        ("[door opens]\nWho is there?", ["[door opens]", "Who is there?"]),
        ("{\\an8}<i>The dog is here\nand so am I.</i>", ["<0/><1>The dog is here and so am I.</1>"]),
        ("<font color=red>Yes.</font>\n<font>I <b>am</b>.</font>", ["<0>Yes.</0>", "<0>I <1>am</1>.</0>"]),
        ("♪ I love you ♪\n<i>♪ so much ♪</i>", ["I love you", "so much"]),
        ("Tom & Ann <3 you.\n\nNo --> so", ["Tom & Ann <3 you."]),
        ("<i>Tom & Ann &lt;b></i> <c>", ["<0>Tom & Ann &lt;b></0> <c>"]),
        ("*sighs* He left -- again.", ["*sighs* He left -- again."]),
    ],
)
def test_speech_marks_separate_speakers(speech, texts):
    content = f"1\n00:00:01,000 --> 00:00:02,000\n{speech}\n\n2\n00:00:03,000 --> 00:00:04,000\nEnd\n"
    document = read_srt(content)
    assert lines_of(document) == [*texts, "End"]
    written, skipped = rendered(document, lambda text: text.replace("e", "é"))
    expected = "".join(part if part[:1] == "<" else part.replace("e", "é") for part in re.split("(<[^<>]*>)", speech))
    assert written.decode() == content.replace(speech, expected)
    assert len(skipped) == speech.count("-->")


VTT = "WEBVTT\n\n00:01.000 --> 00:02.000\n"


@pytest.mark.parametrize(
    ("read", "content", "texts"),
    [
        (read_srt, "1\n{0}\nHello,\nTom.\n2\n{0}\nIn 1984\n3\n{0}\nyou\n", ["Hello, Tom.", "In 1984", "you"]),
        (read_srt, "1\n\n{0}\n\nHello,\n\nTom.\n\n\n\n2\n\n{0}\n\nAnn\n", ["Hello,", "Tom.", "Ann"]),
        (read_srt, "1\r\r\n{0}\r\r\nHello,\r\r\nTom.\r\r\n\r\r\n2\r\r\n{0}\r\r\nAnn\r\r\n", ["Hello, Tom.", "Ann"]),
        (read_srt, "1\r{0}\rHello,\rTom.\r\r2\r{0}\rAnn\r", ["Hello, Tom.", "Ann"]),
        (read_srt, "{0}\nHello\n\n{0}\nAnn", ["Hello", "Ann"]),
        (read_srt, "\ufeffby Tom\n\n1\n{0}\nHello\n", ["by Tom", "Hello"]),
        (read_vtt, VTT + "Hello\n\nTom.\n\nNOTE no\nno\n\nname\n{0}\nAnn\n", ["Hello", "Tom.", "Ann"]),
        (read_vtt, VTT + " \nHello\n\t\nNOTE I\n\nSo\n\n{0}\n\n\nname\n{0}\n \nAnn", ["Hello", "NOTE I", "So", "Ann"]),
        (read_vtt, VTT + "Yes\n\nNOTE\nno\n \nno\n\n7\n{0}\nIn\n7\n \nyou\n{0}\nAnn", ["Yes", "In 7", "you", "Ann"]),
        (read_vtt, VTT.replace("\n", "\r\r\n") + "Hello\r\r\n\r\r\nname\r\r\n{0}\r\r\nAnn", ["Hello", "Ann"]),
        (read_vtt, VTT + "Hello\n{0}\n<v Tom>Yes\n<v Ann>&gt;&gt; No", ["Hello", "<0/>Yes", "No"]),
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    "times",
    [
        "00:00:01,000 --> 00:00:02,000",
        "00:00:01,000->00:00:02,000",
        "00:00:01 –> 00:00:02  X1:100 Y1:2",
        " 0: 00: 01.5  —  0: 00: 02.5 ",
    ],
)
def test_irregular_subtitles_are_read(read, content, texts, times):
    content = content.format(times)
    document = read(content)
    assert lines_of(document) == texts
    written = rendered_text(document, lambda text: text.replace("n", "ñ"))
    assert [line for line in re.split(r"[\r\n]+", written) if times in line] == [times] * content.count(times)
    assert re.sub(r"\w", "", written) == re.sub(r"\w", "", content)


@pytest.mark.parametrize("times", ["O0:00:03,000 --> 00:00:04,000", "00:03.000 to 00:04.000", "00:00:03,000 to 4"])
@pytest.mark.parametrize("read", [read_srt, read_vtt])
def test_malformed_times_are_counted(read, times):
    content = f"{VTT}Hello\n\n{times}\nTom\n"
    document = read(content)
    assert [text for text in lines_of(document) if text != "WEBVTT"] == ["Hello"]
    written, skipped = rendered(document, lambda text: text.replace("Hello", "Salut"))
    assert (written.decode(), skipped) == (content.replace("Hello", "Salut"), [6])


def test_vtt_without_subtitles_has_no_passage():
    assert not read_vtt(b"WEBVTT - Title\nKind: captions\n\nNOTE\nHello\n").passages
    document = read_vtt(b"\xef\xbb\xbfWEBVTT\n\n00:01.000 to 00:02.000\nHello\n")
    assert document.render([])[1] == [3]


@pytest.mark.parametrize(
    ("read", "content", "message"),
    [
        (read_srt, "Hello\n", "is not a SubRip file: it has no line such as 00:00:01,000"),
        (read_vtt, "00:01.000 --> 00:02.000\nHello\n", "is not a WebVTT file"),
        (read_srt, b"1\n00:00:01,000 --> 00:00:02,000\nCaf\xe9\n", "line 3 is invalid UTF-8; .* iconv -f ENCODING"),
    ],
)
def test_read_subtitles_reports_errors(read, content, message):
    with pytest.raises(InputError, match=message):
        read(content)


def test_musical_notes_take_linear_time():
    assert len(read_srt(f"1\n00:00:01,000 --> 00:00:02,000\na {'♪' * 100_000} b\n").passages) == 1


def test_times_of_day_are_text():
    content = b"1\n00:00:01,000 - 00:00:02,000\nOpen at\n10:30 - 11:30\n\n2\n00:03:01.5 - 00:03:02.5\nYes\n"
    assert lines_of(read_srt(content)) == ["Open at 10:30 - 11:30", "Yes"]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r\r\n", "\r"])
def test_wrapped_subtitle_has_line_ends_of_file(end):
    content = end.join(["1", "00:00:01,000 --> 00:00:02,000", "The dog is", "here now", "", ""])
    written = rendered_text(read_srt(content), ["Le chien est ici"])
    assert written == content.replace("The dog is", "Le chien").replace("here now", "est ici")


def test_moved_tag_does_not_end_vtt_subtitle():
    document = read_vtt(f"{VTT}<v Tom>\nHello you\n")
    assert rendered_text(document, [" Hallo <0/>du"]) == f"{VTT}Hallo <v Tom>du\n"


SPOKEN = st.text(st.sampled_from("ab-é <>/&\n\r♪1>") | st.characters(codec="utf-8"), max_size=25)


@given(st.lists(SPOKEN, min_size=1, max_size=5), st.sampled_from(["\n", "\r\n"]), st.booleans(), st.data())
def test_translation_preserves_times_and_blank_lines(texts, end, is_vtt, data):
    content = f"WEBVTT{end}{end}" if is_vtt else ""
    for number, text in enumerate(texts, 1):
        content += f"{number}{end}00:00:0{number},000 --> 00:00:0{number},500{end}{text}{end}{end}"
    document = (read_vtt if is_vtt else read_srt)(content)
    assert rendered(document, str)[0] == content.encode()
    written = rendered_text(document, lambda text: " ".join(data.draw(SPOKEN).split()))
    times = re.compile(r"\d\d:\d\d:\d\d,\d{3} --> [^\r\n]*")
    assert times.findall(written) == times.findall(content)
    assert written.count("-->") <= content.count("-->")

    blank_lines = re.compile(r"\n[ \t]*\r?(?=\n)")
    assert len(blank_lines.findall(written)) <= len(blank_lines.findall(content))
