"""Parts of a text that are values, and parts that are not."""

from itertools import pairwise

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from mt.core.errors import InputError, brief
from mt.formats.kinds import KINDS, LONG_RUN, NON_TRANSLATABLE, TRIGGER
from mt.text.characters import FamiliarCharacters
from mt.text.placeholders import placeholder
from mt.text.values import (
    BRACKET_CHARACTER,
    TOUCHING_LETTER,
    compile_patterns,
    is_intact,
    merge_spans,
)
from tests import languages

LATIN = languages.tokenizer(languages.LATIN, "xx")
CHINESE = languages.tokenizer(languages.LATIN + languages.HAN, "zh")
ENGLISH = FamiliarCharacters(LATIN, "en")

TABLE = [
    # Nothing is to be found.
    ("The dog sleeps.", []),
    ("and/or", []),
    ("a 3-year-old, the 15-year-old", ["3", "15"]),
    ("the 1st, 2nd and 21st", ["21"]),
    ("THE 21ST OF THE 1990S", ["21", "1990"]),
    ("at 5pm, 10am, 10:30am, 9:05 p.m., 12h", ["10", "10:30am", "9:05 p.m.", "12"]),
    ("THE 1ST AT 5PM", []),
    ("the 2e, the 3er, at 7h", []),
    ("e.g. this, i.e. that", []),
    ("Mr.Smith", []),
    ("Tom's dog", []),
    ("1/2 cup", ["1/2"]),
    ("I'm 5", ["5"]),
    ("Wait... What?! (Really) - yes; no: maybe", []),
    ("a well-known mother-in-law", []),
    ("AT&T, R&B and Q & A", ["AT&T", "R&B"]),
    ("in C++ or c++; a++b", ["C++", "c++"]),
    ("C<< f->new >>, C<a E<lt> b> and &sources-list;", ["C<< f->new >>", "C<a E<lt> b>", "&sources-list;"]),
    ("WE<lt>textE<gt> here", ["E<lt>textE<gt>"]),
    (r"text \(em see \*(lq here", [r"\(em", r"\*(lq"]),
    ("either / or, + and -, +/- and *", []),
    ("5 + 3 = 8", ["5", "3", "8"]),
    ("a < b and c > d", []),
    ("[1] or (2)", ["1", "2"]),
    ("U.S.A. and NATO", ["NATO"]),
    ("#1 and @ home", ["1"]),
    ("so: on", []),
    ("a 2000-year-old tree", ["2000"]),
    ("save %dollars", []),
    ("a </x", []),
    ("an empty `` pair", []),
    ("a ` alone", []),
    ("it costs 5 dollars", ["5"]),
    ("$ and %", []),
    ("a_ _b", ["_", "_b"]),
    ("A-Z and A-B", []),
    ("the deadbeef cafe", []),
    ("{ or {{ but no more }, {It is late.}", []),

    # Code, tags and placeholders.
    ("run `make all` now", ["`make all`"]),
    ("run ``a b`` now", ["``a b``"]),
    ("a <b>red</b> car<br/>", ["<b>", "</b>", "<br/>"]),
    ("<a href=\"x.html\" title='y'>here</a>", ["<a href=\"x.html\" title='y'>", "</a>"]),
    ("open <1>that</1> or <2/>", ["<1>", "</1>", "<2/>"]),
    ("this <!-- not that --> one", ["<!-- not that -->"]),
    ("Hello&lt;br&gt;my, the &lt;file&gt; is", ["&lt;br&gt;", "&lt;file&gt;"]),
    ("a &lt;/a&gt; &lt;br /&gt;", ["&lt;/a&gt;", "&lt;br /&gt;"]),
    ("&lt;i a=&quot;b c&quot;&gt; d", ["&lt;i a=&quot;b c&quot;&gt;"]),
    ("a &lt; b and c &gt; d, &lt;3", ["&lt;", "&gt;", "&lt;3"]),
    ("salt &amp; water &#8211; &#x2014; done", ["&amp;", "&#8211;", "&#x2014;"]),
    ("Hello {{ user.name }}, hello {{}}!", ["{{ user.name }}", "{{}}"]),
    ("{{ a b, c }} left", ["{{ a b, c }}"]),
    ("Hello {name}, ${total} of #{all} in %{place}, {0}", ["{name}", "${total}", "#{all}", "%{place}", "{0}"]),
    ("{ n } or {}", ["{ n }", "{}"]),
    ("{n, plural, one {# dog} other {# dogs}} came", ["{n, plural, one {# dog} other {# dogs}}"]),
    ("on {day, date, short}.", ["{day, date, short}"]),
    ("%s of %d, %1$s, %-5.2f, %(name)s and %@", ["%s", "%d", "%1$s", "%-5.2f", "%(name)s", "%@"]),
    ("%ld %llu %hhx %*d %.*f %+i", ["%ld", "%llu", "%hhx", "%*d", "%.*f", "%+i"]),
    ("100% sure, 50 % off, 3 ‰", ["100%", "50 %", "3 ‰"]),
    ("5% done, %%d, 5 %d and 6 %(a)s", ["5%", "%%d", "5", "%d", "6", "%(a)s"]),
    ("set %PATH% and $HOME or $(no) $max(1)", ["%PATH%", "$HOME", "$(no)", "$max(1)"]),
    ("und -jacke, a - b, [two words], foo(s)", []),
    ("a [cap id=7 x=y] [/b] [[Some page]] [see](b)", ["[cap id=7 x=y]", "[/b]", "[[Some page]]"]),
    ("<%= a b %> {% if x %} {# no #}", ["<%= a b %>", "{% if x %}", "{# no #}"]),
    ("{{{raw}}} or {x!r:>10}", ["{{{raw}}}", "{x!r:>10}"]),
    ("{\\an8(1,2)} {'@'} {a: {b: {c}}}", ["{\\an8(1,2)}", "{'@'}", "{a: {b: {c}}}"]),
    ("$USER$, %1 %L2 %3% %'d %<a>s %Y/%m %%", ["$USER$", "%1", "%L2", "%3%", "%'d", "%<a>s", "%Y/%m", "%%"]),
    ("@:a.b @.upper:c so :name of X<y>", ["@:a.b", "@.upper:c", ":name", "X<y>"]),
    ("in pics/cat.gif, lib/*.h or *.txt", ["pics/cat.gif", "lib/*.h", "*.txt"]),
    ("camelCase, SomeLongName, a::b", ["camelCase", "SomeLongName", "a::b"]),
    ("*|FNAME|*, %user.name%, ##NAME##, $!{a.b}, :c:func:`f`",
     ["*|FNAME|*", "%user.name%", "##NAME##", "$!{a.b}", ":c:func:`f`"]),
    ("$t(key, {\"n\": 1}), $t(a.b), ^[1 dog](inflect: true)",
     ["$t(key, {\"n\": 1})", "$t(a.b)", "^[1 dog](inflect: true)"]),
    ("$user->name, $!name, $[name], @@x@@, [user.name], [A|there]",
     ["$user->name", "$!name", "$[name]", "@@x@@", "[user.name]", "[A|there]"]),
    ("<?php a; ?>, <<name>>, <$name>, <|end|>", ["<?php a; ?>", "<<name>>", "<$name>", "<|end|>"]),
    ("1e-5, 1_000, a->b, user@host and me@home:notes", ["1e-5", "1_000", "a->b", "user@host", "me@home:notes"]),
    ("the house¹ of 160 m², ⌘S", ["¹", "160 m²", "⌘S"]),
    ("A %s%.1f, [*emphasis*]", ["%s%.1f", "*", "*"]),
    ("see:\\nhttp://a.de/b_c", ["\\nhttp://a.de/b_c"]),
    ("Hello.\\nHow is \\textbf{x}?", ["\\n", "\\textbf{x}"]),
    ("_http://a.de/b?c=1_ or _`code`_, _$NAME$_", ["_http://a.de/b?c=1_", "_`code`_", "_$NAME$_"]),
    ("f.g(), ls(1), os.path.join", ["f.g()", "ls(1)", "os.path.join"]),
    ("Alt+F, x|y, \\em, ^[a-z]*$ and k=\"v w\"", ["Alt+F", "x|y", "\\em", "^[a-z]*$", "k=\"v w\""]),
    ("take --all, -x, -Xlint, -n<num> or --to=<a>[,b].", ["--all", "-x", "-Xlint", "-n<num>", "--to=<a>[,b]"]),
    ("YYYY/MM/DD hh:mm, 00:1b:44:11:3a:b7, 2001:db8::1", ["YYYY/MM/DD", "hh:mm", "00:1b:44:11:3a:b7", "2001:db8::1"]),
    ("2021-03-04T05:06:07Z, 2021-03-04 05:06, 1.2.3-rc.1", ["2021-03-04T05:06:07Z", "2021-03-04 05:06", "1.2.3-rc.1"]),
    ("2 3/4 cups, $5.10 USD, 7 EUR, U+0041, 3D-film, 5G-Netz", ["2 3/4", "$5.10 USD", "7 EUR", "U+0041", "3D", "5G"]),
    ("**the** *red* __big car__ ~~now~~?", ["**", "**", "*", "*", "__big", "__", "~~", "~~"]),
    ("2*3, 2 * 3, a ~ b, ~5", ["2*3", "2", "3", "5"]),
    # Links, addresses and names.
    ("see https://example.org/a_b?c=d#e.", ["https://example.org/a_b?c=d#e"]),
    ("(www.example.org) or ftp://a.b/c, ok", ["www.example.org", "ftp://a.b/c"]),
    ("\u201chttp://a.example/\u201d", ["http://a.example/"]),
    ("write to anna.berg+x@post.example.org.", ["anna.berg+x@post.example.org"]),
    ("mailto:jörg@müller.example, please", ["mailto:jörg@müller.example"]),
    ("thank you @anna_b and @x.y for #summer!", ["@anna_b", "@x.y", "#summer"]),
    ("well :thumbs_up: done :+1:", [":thumbs_up:", "1"]),
    ("open C:\\Users\\Anna\\x.txt now", ["C:\\Users\\Anna\\x.txt"]),
    ("on \\\\server\\share\\x today", ["\\\\server\\share\\x"]),
    ("in /usr/local/lib/x.so.1, ~/notes.md and ./run", ["/usr/local/lib/x.so.1", "~/notes.md", "./run"]),
    ("in /usr/local/, ../a/ and ~/.bashrc.", ["/usr/local/", "../a/", "~/.bashrc"]),
    ("the file read-me.txt, archive.tar.gz", ["read-me.txt", "archive.tar.gz"]),
    ("at example.com, not at example.comb or example.com.x", ["example.com"]),
    ("the my_function() and __init__ of snake_case_2", ["my_function()", "__init__", "snake_case_2"]),
    # Codes.
    ("0x7fFF is it", ["0x7fFF"]),
    ("room B-207, A4 paper, 3D, X1/Y2", ["B-207", "A4", "3D", "X1/Y2"]),
    ("an mp3 on x86, Covid-19, v2.1-beta", ["mp3", "x86", "Covid-19", "v2.1-beta"]),
    ("550e8400-e29b-41d4-a716-446655440000", ["550e8400-e29b-41d4-a716-446655440000"]),
    ("key ABcd-12ef-gh34 left", ["ABcd-12ef-gh34"]),
    ("commit 7ab3e19c04 broke it", ["7ab3e19c04"]),
    ("version 1.2.3 at 10.0.0.1, v2.0.1", ["1.2.3", "10.0.0.1", "v2.0.1"]),
    # Numbers.
    ("call +49 (30) 123-456 or +1.555.0100", ["+49 (30) 123-456", "+1.555.0100"]),
    ("call +33 1 44 55 66 77 or +15550100, +3 dogs", ["+33 1 44 55 66 77", "+15550100", "+3"]),
    ("on 24.12.2024, 2024-12-24 and 1/2/2024", ["24.12.2024", "2024-12-24", "1/2/2024"]),
    ("at 9:30, 23:59:59", ["9:30", "23:59:59"]),
    ("in 1999, 42 of 7", ["1999", "42", "7"]),
    ("3.14 or 3,14", ["3.14", "3,14"]),
    ("1,000,000,000 of 1'000'000'000'000", ["1,000,000,000", "1'000'000'000'000"]),
    ("1,000,000.5 and 1.000.000,5", ["1,000,000.5", "1.000.000,5"]),
    ("1 000 000 or 1'000 or 1\u00a0000 or 1\u202f000,5", ["1 000 000", "1'000", "1\u00a0000", "1\u202f000,5"]),
    ("$19.99, £1,000, 20€ and 19,99 €", ["$19.99", "£1,000", "20€", "19,99 €"]),
    ("5km, 3kg, 20°C, 8GB and 50mph", ["5km", "3kg", "20°C", "8GB", "50mph"]),
    ("5 km and 5kmh, 3 men", ["5 km", "5kmh", "3"]),
    ("$5, 5 € and 12 45 78", ["$5", "5 €", "12", "45", "78"]),
    ("It is -5 °C, +3 or -1,5 - 5 on 3-4", ["-5 °C", "+3", "-1,5", "5", "3-4"]),
    ("24/7 at 555-1234", ["24/7", "555-1234"]),
    ("1,5,7 and 1.2,3, 10,20,30", ["1,5,7", "1.2,3", "10,20,30"]),
    ("1:2 and 3:14:15, 2×4, 6.02×10^23, 5'10", ["1:2", "3:14:15", "2×4", "6.02×10^23", "5'10"]),
    ("3.14e10, 1.5e-7 and 1e5", ["3.14e10", "1.5e-7", "1e5"]),
    ("12a Rue X, 3x, 1.5M, 12h30 and 9H05", ["12a", "3x", "1.5M", "12h30", "9H05"]),
    ("In 2020 $5 of 12 £5 bills, 50 €3 each", ["2020", "$5", "12", "£5", "50", "€3"]),
    ("the 10 $HOME or 5€50, 20 €, $.25 .05 mm", ["10", "$HOME", "5€50", "20 €", "$.25", ".05 mm"]),
    (".25 $.25", [".25", "$.25"]),
    ("a 20th-century, 1990s-style, 10.30am, 1,000th, 10p.m.", ["20", "1990", "10.30", "1,000", "10"]),
    ("A 15-YEAR-OLD BOY, 24-HOUR", ["15", "24"]),
    ("A 1000-Year-Old Tree Here", ["1000"]),
    ("mid-1990s, top-10, post-2010, well-known-2", ["1990", "10", "2010", "2"]),
    ("10^-3 and 6.02×10^-23", ["10^-3", "6.02×10^-23"]),
    ("(-5 °C) (-12) \"-5\" x=-3", ["-5 °C", "-12", "-5", "x=-3"]),
    ("US$5, 5\u00a0%, 5\u202fkm, ฿5, ₫7", ["US$5", "5\u00a0%", "5\u202fkm", "฿5", "₫7"]),
    ("٣٫١٤ and ٥٠٪", ["٣٫١٤", "٥٠٪"]),
    ("5−7, 3·14, 1٬234, １２：３０", ["5−7", "3·14", "1٬234", "１２：３０"]),
    ("`yes' and then `no'", []),
    ("$1.5bn, $2M or $3kg", ["$1.5bn", "$2M", "$3"]),
    ("é12 and 5é, 34é", ["12", "34"]),
    ("٣٤ and १२३, ১", ["٣٤", "१२३", "১"]),
    # Each with a single sign of an item.
    ("hi @anna", ["@anna"]),
    ("so #summer", ["#summer"]),
    ("in $HOME", ["$HOME"]),
    ("in %PATH%", ["%PATH%"]),
    ("at www.example", ["www.example"]),
    ("in /usr", ["/usr"]),
    ("a <b>", ["<b>"]),
    ("a {x}", ["{x}"]),
    ("a &amp;", ["&amp;"]),
    ("a \\\\b\\c", ["\\\\b\\c"]),
    ("a `b`", ["`b`"]),
    ("a b_c", ["b_c"]),
    ("so :)", [":)"]),
    ("so =)", ["=)"]),
    ("so ;)", [";)"]),
    ("so ^^", ["^^"]),
    # Numbers of one digit.
    ("3 cats, 4. Or 5? (6) «7»", ["3", "4", "5", "6", "7"]),
    ("the 3rd, 4th-best, 5x, x6, a_7 or B-8", ["5x", "x6", "a_7", "B-8"]),
    ("3-4 or 5:6, 7/8, 1.5, $9, 2%", ["3-4", "5:6", "7/8", "1.5", "$9", "2%"]),
    ("a 3-year-old at {0}, <h1> 1️⃣", ["3", "{0}", "<h1>", "1️⃣"]),
    ("call 1 2 3", ["1", "2", "3"]),
    ("version 2.x, :3", []),
    # Faces and symbols.
    ("fine :) or :-( or <3 or ^_^", [":)", ":-(", "<3", "^_^"]),
    ("a list:) and 3:)", ["3"]),
    ("great 👍🏽!", ["👍🏽"]),
    ("we 👩‍👩‍👧 in 🇫🇷🇩🇪", ["👩‍👩‍👧", "🇫🇷🇩🇪"]),
    ("press 1️⃣ or #️⃣", ["1️⃣", "#️⃣"]),
    ("I ❤️ it", ["❤️"]),
    ("🏴󠁧󠁢󠁳󠁣󠁴󠁿 and 🏳️‍🌈", ["🏴󠁧󠁢󠁳󠁣󠁴󠁿", "🏳️‍🌈"]),
    ("a → b ∑ c", ["→", "∑"]),
    # What the tokenizer has no pieces for.
    ("the word слово here", ["слово"]),
    ("two слова вместе, please", ["слова вместе"]),
    ("says «слово» and 'мир'", ["слово", "'мир'"]),
    ("ba 'It's the dogs' bowl.' he said", ["'", "'"]),
    ("'ba' the dogs' bowl 'moku ba'", ["'", "'", "'", "'"]),
    ("'tis the dogs, don't", []),
    ("a mixed приветhello word", ["приветhello"]),
    ("the Greek λόγος-like", ["λόγος"]),
    ("hello 你好 there", ["你好"]),
    # What changes a number when it is normalized.
    ("10², x², H₂O", ["10²", "x²", "H₂O"]),
    ("1½ cups, ¾ and 2 ⅓", ["1½", "¾", "2", "⅓"]),
    ("①② steps", ["①②"]),
]  # fmt: skip


def found(text: str, characters: FamiliarCharacters = ENGLISH) -> list[str]:
    return [text[start:end] for start, end in languages.values(text, characters)]


@pytest.mark.parametrize(("text", "items"), TABLE)
def test_find_values(text, items):
    assert found(text) == items
    assert all(TRIGGER.search(match.group()) for match in NON_TRANSLATABLE.finditer(text))


EVERYWHERE = regex.compile("|".join(f"(?:{pattern})" for pattern in KINDS.values()))
"""NON_TRANSLATABLE that does not skip plain words."""
FRAGMENTS = [
    "<a", "</", "<!--", "a.a", "a.", "{", "{}", "{{", "{a,date,{}", "1,", "1.", "1'000", "111'", "111\u00a0", "1 000 ",
    "12 ", "a_", "_a", "__", "http://.", "www.", "a-1", "A1.", "a1.", "A-1/", "A1#", "+/", "/a", "./", "~/", "\\\\a",
    "a:\\", "a@", "@a.", "#", "&#1", "%(a", "%1$", "$a(", ":a", ":a:", "`", "+1 ", "+12-", "1:1", "1/1/", "aaaa-1111-",
    "deadbee1", "a²", "½ ", "a😀", "1 000 0000 ", "1×", "1e5", "1e-", "$1", "12h", "21st",
    "ab-", "ab-1", "1-AB", "1-Ab-", "1^-", ".1", "1 $", "US$",
    "&lt;a", "&lt;a ", "&lt;a &", "**a ", "a** ", "~~a",
    "<%", "{%", "{a", "{{}", "[a b=", "a=", "a(", "a::", "--a[", "-A=", "a+", "*/", "ab:", "YY-", "aB", "1.1.1-a.",
    "$(", "@:", "*|a", "%a.", "$a->", "$t((", "^[a](", "[%a", "a==", "<$a", "<<a", "1_000", "a@a:", "#:|",
    "好1", "好a.com", "слово", "слово ", "好", "\u0301", "👩\u200d", "🇫", "\U0010f000",
]  # fmt: skip
ENDINGS = {"111'": "111a", "111\u00a0": "111a", "A1.": "A1-", "a1.": "a1-", "A-1/": "A1-", "A1#": "1a", "+/": "!"}


@pytest.mark.parametrize(
    ("text", "items"),
    [
        ("the list (page 12).", ["(", "12", ")"]),
        ("(12) and [1]", ["(12)", "[1]"]),
        ("“12 dogs”", ["“", "12", "”"]),
        ('« 12», 12"', ["«", "12", "»", "12", '"']),
        ("((page 12) or ({x})", ["(", "(", "12", ")", "({x})"]),
        ("all ({x} items) (“12”", ["(", "{x}", ")", "(", "“12”"]),
        ("f(12) dpkg(1))", ["(12)", "dpkg(1)", ")"]),
    ],
)
def test_merge_spans_keeps_lone_brackets_apart(text, items):
    characters = FamiliarCharacters(LATIN, "en", '()[]“”«»"')
    assert [text[start:end] for start, end in languages.values(text, characters)] == items


@pytest.mark.parametrize("characters", [10_000, pytest.param(150_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("fragment", FRAGMENTS)
def test_find_values_takes_linear_time(fragment, characters):
    """With the square of the length, it would take minutes."""
    text = fragment * (characters // len(fragment)) + ENDINGS.get(fragment, "")
    assert all(start < end for start, end in languages.values(text, ENGLISH))


@given(st.text(), st.lists(st.sampled_from(FRAGMENTS), max_size=6).map("".join), st.text(max_size=8))
def test_values_are_ordered_and_disjoint(before, middle, after):
    text = before + middle + after
    spans = languages.values(text, ENGLISH)
    assert all(0 <= start < end <= len(text) for start, end in spans)
    touching = [(a, b) for a, b in pairwise(spans) if a[1] == b[0]]
    assert all(end <= start for (_, end), (start, _) in pairwise(spans))
    assert all(any(BRACKET_CHARACTER.fullmatch(text, *span) for span in pair) for pair in touching)
    # What is found does not depend on what was looked at before.
    assert spans == languages.values(text, FamiliarCharacters(LATIN, "en"))


@given(
    st.sampled_from(["(", "–", "&", "/", ";", '"', "…"]),
    st.lists(st.sampled_from(["ba", "moku", "don't", "ba-ba", "dogs’", "a’b", "."]), min_size=1, max_size=4),
    st.integers(0, 4),
)
def test_rare_symbols_are_values(rare, words, position):
    text = " ".join([*words[:position], rare, *words[position:]])
    assert found(text) == []
    assert found(text, FamiliarCharacters(LATIN, "en", rare)) == [rare]


def test_words_with_rare_letters_are_values():
    characters = FamiliarCharacters(LATIN, "en", "é")
    assert found("an Éclair and a café, (é)", characters) == ["Éclair", "café", "é"]


@pytest.mark.parametrize("text", ["ba’ba", "the dogs’ ba", "ba‑ba", "ba-ba", "d'ba"])
def test_apostrophes_and_hyphens_of_words_are_replaced(text):
    characters = FamiliarCharacters(LATIN, "en", "’‑‐-'")
    assert found(text, characters) == []
    assert characters.replace_lookalikes(text) == text.replace("’", "'").replace("‑", "-")
    assert FamiliarCharacters(LATIN, "en").replace_lookalikes("ba’") == "ba’"


def test_closing_quotation_marks_are_not_apostrophes():
    assert found("‘ba’ ba’ba", FamiliarCharacters(LATIN, "en", "‘’")) == ["‘", "’"]


JOINER = "\u200d"
EMOJI = st.one_of(
    st.sampled_from(["👩‍👩‍👧", "👍🏽", "🇫🇷", "1️⃣", "*️⃣", "❤️", "🏳️‍🌈", "🧑🏿‍🚀", "©️", "🏴󠁧󠁢󠁷󠁬󠁳󠁿", "👩🏽‍❤️‍💋‍👨🏿"]),
    st.lists(st.sampled_from(["👩", "👨🏿", "❤️", "💻"]), min_size=1, max_size=4).map(JOINER.join),
)


@given(EMOJI, st.sampled_from(["the dog ", "(", ""]), st.sampled_from([" barks", "!", ""]))
def test_an_emoji_is_one_value(emoji, before, after):
    assert found(before + emoji + after) == [emoji]
    assert found(before + emoji + after, FamiliarCharacters(CHINESE, "zh")) == [emoji]


def test_emoji_are_values_even_if_they_are_subwords():
    known = "😀❤\ufe0f\u20e3🇫🇷👍"
    tokenizer = languages.tokenizer(languages.LATIN + known, "xx")
    assert all(map(tokenizer.has_subword, known))
    characters = FamiliarCharacters(tokenizer, "en")
    for emoji in ("😀", "❤️", "1️⃣", "#️⃣", "🇫🇷", "👍"):
        assert found(f"a {emoji} b", characters) == [emoji]


@given(st.lists(st.text("жщълярию", min_size=1, max_size=6), min_size=1, max_size=4))
def test_foreign_words_are_whole_values(words):
    assert found(f"he said {' '.join(words)}, yes") == [" ".join(words)]
    assert found(" and ".join(words)) == words
    assert found("-".join(words)) == words
    assert found(f"x{words[0]} is") == [f"x{words[0]}"]


@pytest.mark.parametrize(
    ("text", "items"),
    [
        ("请写信到anna@berg.example，好吗", ["anna@berg.example"]),
        ("看https://a.example/b。去www.b.example看", ["https://a.example/b", "www.b.example"]),
        ("在B-207开门，ABC123号房间", ["B-207", "ABC123"]),
        ("下午15:30来，有12个人，5个好", ["15:30", "12", "5"]),
        ("打开report.pdf和~/.bashrc，还有my_name吧", ["report.pdf", "~/.bashrc", "my_name"]),
        ("版本v1.2.3和$HOME里", ["v1.2.3", "$HOME"]),
        ("你好{name}，{名字}有%d条", ["{name}", "{名字}", "%d"]),
        ("电话+86 138 0000 0000。", ["+86 138 0000 0000"]),
        ("はいtest.txtです、15:30に", ["test.txt", "15:30"]),
        ("15:30에 B-207에서", ["15:30", "B-207"]),
        ("打开/home/用户/文档.txt，或~/文档/a.txt", ["/home/用户/文档.txt", "~/文档/a.txt"]),
        ("%(名前)s和%(n)d", ["%(名前)s", "%(n)d"]),
        ("/home/a目录", ["/home/a"]),
        ("ฉันมี12แมว ๑๒", ["12", "๑๒"]),
    ],
)
def test_values_touch_letters_of_languages_without_spaces(text, items):
    tokenizer = languages.tokenizer(languages.LATIN + text, "zh")
    assert found(text, FamiliarCharacters(tokenizer, "zh")) == items


def test_rare_characters_of_the_own_script_are_not_values():
    chinese = FamiliarCharacters(CHINESE, "zh")
    assert not CHINESE.has_subword("龘")
    assert found("我们去龘山看船。", chinese) == []
    assert found("слово龘", chinese) == ["слово龘"]
    assert found("龘") == ["龘"]


def test_characters_that_normalization_removes_are_values():
    assert found("a\u200b \ufb01ne cafe\u0301 na\u00efve \ufffd") == ["\u200b", "na\u00efve", "\ufffd"]
    assert found("\uff21\uff22 \u2160") == []
    # The character of a placeholder in a text is a value.
    assert found(f"a {placeholder(3)} b") == [placeholder(3)]


@pytest.mark.parametrize(
    ("spans", "merged"),
    [
        ([(5, 9), (0, 3)], [(0, 3), (5, 9)]),
        ([(0, 3), (3, 5)], [(0, 5)]),
        ([(0, 9), (2, 4), (8, 11)], [(0, 11)]),
        ([(4, 4)], []),
    ],
)
def test_merge_spans_joins_touching_and_overlapping_spans(spans, merged):
    assert list(merge_spans(spans, "some plain words")) == merged


def test_find_values_of_user_patterns() -> None:
    patterns = compile_patterns([r"[A-Z]{2}:\w+", r"(?i)top \w+"])
    assert languages.values("a b", ENGLISH, compile_patterns([r"\b"])) == []
    text = "see AB:cde and Top Ten, ab:x"
    assert [text[start:end] for start, end in languages.values(text, ENGLISH, patterns)] == ["AB:cde", "Top Ten"]


@pytest.mark.parametrize("pattern", [r"\pN+", r"[[:digit:]]+", r"(?P<name>2)", r"2\z", r"\x32"])
def test_compile_patterns_accepts_re2_syntax(pattern: str) -> None:
    """Version 1.0.0 read patterns with RE2, and recorded them in its runs."""
    assert languages.values("a2", ENGLISH, compile_patterns([pattern])) == [(0, 2)]


def test_slow_patterns_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mt.text.values.PATTERN_SECONDS", 0.1)
    patterns = compile_patterns(["(a|aa)+$"])
    with pytest.raises(InputError, match=r"^text.patterns: \(a\|aa\)\+\$: takes more than 0.1 seconds on 'aaa"):
        languages.values("a" * 60 + "c", ENGLISH, patterns)


@pytest.mark.parametrize("pattern", ["(", "a*", "", "x|", "^", "[z-a]", r"\Qa.b\E", "(?U)a+", "(?R)", "(" * 3000])
def test_compile_patterns_reports_invalid_patterns(pattern: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mt.text.values.PATTERN_SECONDS", 0.1)
    with pytest.raises(InputError) as refused:
        compile_patterns(["good", pattern])
    assert str(refused.value).startswith(f"text.patterns: {brief(pattern)}: ")


@pytest.mark.parametrize(
    ("line", "runs"),
    [
        ("see " + "vwxyz" * 12 + "v, now", ["vwxyz" * 12 + "v"]),
        ("see " + "vwxyz" * 12 + ", now", []),
        ("a naïve" + "ïé" * 40 + "!", ["naïve" + "ïé" * 40]),
        ("key: " + "Ab3+/" * 13 + "== end", ["Ab3+/" * 13 + "=="]),
        ("Nooooooooooooooooo, no", ["Nooooooooooooooooo"]),
        ("Nooooooooooo, no", []),
        ("Paris/Lyon/" * 10, []),
        ("well-known-" * 10, []),
        ("Bravo, hohohohohoho!", ["hohohohohoho"]),
        ("Bravo, hohohohoho!", []),
        ("Yes, Yes yes, yes yes! yes, sir", ["Yes, Yes yes, yes yes! yes"]),
        ("Yes, yes, yes, yes, yes, yesterday", []),
        ("Go on......", ["....."]),
        ("Go on... Really?!? Go!!!", []),
        ("===== Part 1 ====", ["=====", "===="]),
        ("我们" * 100, []),
    ],
)
def test_long_runs_are_values(line, runs):
    assert [match.group() for match in LONG_RUN.finditer(TOUCHING_LETTER.sub("。", line))] == runs


@given(
    words=st.lists(
        st.one_of(
            st.sampled_from([*FRAGMENTS, "ba", "BA", "Ba.", "und", "DE;", "mp3", "好", "slo\u0301vo,", "\n"]),
            st.text("aB1.-_<>:/ ", max_size=6),
        ),
        max_size=8,
    )
)
def test_skipping_plain_words_misses_no_value(words):
    text = " ".join(words)
    assert [match.span() for match in NON_TRANSLATABLE.finditer(text)] == [
        match.span() for match in EVERYWHERE.finditer(text)
    ]


@pytest.mark.parametrize(
    ("translation", "values", "expected"),
    [
        ("le 5, {a} et %s", ["%s", "{a}", "5"], True),
        ("le 5 et {a}", ["5", "{a}", "%s"], False),
        ("le 5", ["5", "5"], False),
        ("le 5 et 15", ["15", "5"], True),
        ("le 15", ["5"], False),
        ("l'aB-7s", ["B-7"], False),
        ("la 21e", ["21"], True),
        ("{a} et {b}", ["{a}"], False),
        ("{a} {a}", ["{a}"], False),
        ("un <b> de", [], False),
        ("rien", [], True),
    ],
)
def test_is_intact(translation, values, expected):
    assert is_intact(translation, values) is expected


@pytest.mark.parametrize("period", ["ha ", "<b>", "**a** ", "a", "ab-"])
def test_is_intact_takes_linear_time_for_repetitive_values(period):
    value = period * (100_000 // len(period))
    assert is_intact(f"Il {value} dit.", [value])
    assert not is_intact(f"Il {value} dit.", [f"{value}x"])
    assert not is_intact(f"Il {value[1:]} dit.", [value])
