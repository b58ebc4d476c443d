"""Patterns of values, by kind: links, addresses, numbers, codes, placeholders, tags.

The placeholders of all systems have a few common forms, so no list of systems is needed: a symbol before brackets, a
name between two equal symbols, a name after a symbol, a name that contains symbols of code, or brackets around these.

A model is trained on text in which placeholders replace the values that these patterns match. If a pattern is changed
to match other values, the translations of existing models get worse.

Every pattern takes linear time: repetitions are bounded, possessive, or end at a character that they cannot contain,
and a value does not begin inside a word.

Programming languages and libraries have further placeholders (SYNTAXES): directives such as ``%s``, and names and
numbers in braces. They are values only in texts whose document names the syntax: in a string of C, ``%sB`` is the
directive ``%s`` and a unit; in other text, it is a word.
"""

import regex

from mt.config import FINAL_MARKS

DIRECTIVE = (
    r"%(?:L?\d{1,2}%?(?![\w$%]|\.[\d*]|:[A-Za-z])"  # Qt, KDE and Boost: %1, %L1, %1%
    r"|\{\w++\}"  # Ruby: %{name}
    # %s, %(total)5.2f, %<name>s, %1$s, %0:s, %[1]d, %'x5d, %*d, %<PRIu64>
    r"|(?:\([^()\n]++\)|<\w++>|\d++[$:]|\[\d++\])?(?:'\D(?=\d))?[-+#0',]*+(?:\d++|\*(?:\d++\$)?)?(?:\.(?:\d++|\*)?)?"
    r"(?:(?:hh?|ll?|[Lqjztvw])?[A-Za-z@]|<PRI\w++>))"
)
"""Matches a directive of any programming language, but not ``%%``, which prints a percent sign."""

SYNTAXES = {
    "printf": regex.compile(rf"%%|{DIRECTIVE}(?:[A-Za-z]{{1,3}}(?![A-Za-z]))?"),  # including a unit: %sB
    "braces": regex.compile(r"\{\{|\}\}|\{[^{}]*\}|[{}]"),
    "icu": regex.compile(r"''|'[{}#|](?:[^']|'')*+'?|\#"),
}
"""Maps each syntax to the pattern of its placeholders."""


# An address has no whitespace, quotes, brackets, or characters of scripts that are written without spaces.
_ADDRESS = r"[^\s<>\"“”«»‘’…|\\^`{}\u2e80-\ud7ff\ue000-\ufaff\ufe30-\uffef\U0001f000-\U0010ffff]"
_ADDRESS_END = r"[^\s<>\"“”«»‘’…|\\^`{}\u2e80-\ud7ff\ue000-\ufaff\ufe30-\uffef\U0001f000-\U0010ffff.,;:!?()\[\]'*_]"
_WORD = r"A-Za-z0-9\u00c0-\u024f"
_ENDINGS = (
    "com|org|net|edu|gov|info|io|app|dev|eu|uk|de|fr|es|it|nl|pl|ru|cn|jp|br|in|ch|at|"
    "pdf|txt|md|rst|csv|tsv|json|xml|html?|ya?ml|toml|ini|cfg|conf|log|docx?|xlsx?|pptx?|odt|zip|gz|tar|exe|dll|iso|"
    "png|jpe?g|gif|svg|mp3|mp4|wav|py|js|ts|css|java|cpp|sh|po|tmx|srt"
)
_CURRENCY = r"\p{Sc}"
# After a space, a currency symbol belongs to the number before it only if no other number or name follows.
_UNIT = (
    rf"(?:\ [{_CURRENCY}](?![\w({{]|\.\d)|[{_CURRENCY}]|[\ \u00a0\u202f]?(?:%%?(?![\w(])|[‰％٪](?![\w(])|[℃℉]"
    r"|(?:USD|EUR|GBP|JPY|CNY|CHF|CAD|AUD|NZD|HKD|SGD|INR|BRL|MXN|SEK|NOK|DKK|PLN|CZK|HUF|RUB|TRY|ZAR|KRW)(?!\w)"
    r"|(?:[kcm]?m|[km]?g|[mcd]?l|[kMGT]B|[kMG]?Hz|k?W|kWh|mph|°[CF]?|px|pt|dpi)(?!\w)))"
)
# Digits, in groups of three behind blanks, and with more digits behind points, commas, colons, slashes and the like:
# 1,249.99, 1 249,99, .5, 3:2, 24.12.2024, 10-12, 2×4, 6.02×10^-23
_BETWEEN_DIGITS = r"[.,:/×*'’′–−·٫٬．，：／-]"
_DIGITS = (
    r"(?:\d{1,3}(?:[\ \u00a0\u202f\u2009]\d{3}){1,9}+(?!\d)|\d++|(?<![.\w])\.\d++)"
    rf"(?:{_BETWEEN_DIGITS}\d++|\^[-−+]?\d++)*+(?:[eE][-+−]?\d++)?"
)
# Suffixes of numbers that are translated: 21st, 1990s, 10am, 5a.m., and those of other languages.
_SUFFIX = (
    r"(?:[ap](?=\.m)|st|nd|rd|th|s|am|pm|[eo]|er|re|r[ao]|ère|[eè]me|s?te[nrs]?|de|h|ST|ND|RD|TH|AM|PM|(?<=\d0)S)(?!\w)"
)
# Numbers with translatable words before or after them: mid-1990s, top-10, 15-YEAR-OLD, 1000-Year-Old.
_WITH_WORDS = (
    rf"(?:(?:[a-z]{{2,20}}-)++\d++(?:{_SUFFIX}|(?![\w-]))"
    rf"|\d++(?:{_SUFFIX}|(?:-(?:[A-Z]?[a-z]++|[A-Z]{{2,}}))++(?![\w-])))"
)

MIN_RUN_CHARACTERS, MIN_REPEATS, MIN_REPEATED_MARKS = 61, 6, 4
_IN_A_RUN = r"[\w\p{M}]"
_MARKS = FINAL_MARKS.replace("。", "")  # 。 stands for letters that may be adjacent to a value
_BASE64 = r"[A-Za-z0-9+/=_-]"

# Brackets after a symbol, with their text, up to two levels deep.
_BRACKETS = (
    r"(?:\((?:[^()\n]|\([^()\n]{0,99}\)){0,200}+\)|\[(?:[^\[\]\n]|\[[^\[\]\n]{0,99}\]){1,200}+\]|<[^<>\s]{1,60}>)"
)
_CHAIN = r"[A-Za-z_]\w*+(?:(?:[.-]|->|::)\w++)*+"
_SIGNS = r"%$\#@!|:*="
# Nested braces, up to two levels deep. Three words, a sentence, or {b>this<b} are text in braces.
_TEXT_IN_BRACES = r"(?!\w{1,5}+>|[^{}\n\p{L}]{0,5}\p{L}+(?:\s\p{L}+){2}|\s?\p{L}[^{}\n]{0,200}[.!?…]\s?\}|。{9})"
_BRACES = r"\{[^{}\n]{0,200}+(?:\{[^{}\n]{0,200}+\}[^{}\n]{0,200}+){0,12}+\}"
_NESTED_BRACES = rf"\{{{_TEXT_IN_BRACES}[^{{}}\n]{{0,200}}+(?:{_BRACES}[^{{}}\n]{{0,200}}+){{0,12}}+\}}"
# Groups of letters and digits with symbols between them, such as 2024-02-29T12:00 and 00:1b:44. The word in 3D-film is
# translated.
_WORD_GROUP = r"[A-Za-z][a-z]{2,20}(?![A-Za-z0-9])"
_BETWEEN_GROUPS = rf"(?:[-._+/\#](?!{_WORD_GROUP})|(?<=[0-9]),(?=[0-9])|(?<=[0-9A-Fa-f]):{{1,2}}(?=[0-9A-Fa-f]))"
_DATE_PART = r"(?:[yY]{2,4}|M{2,4}|[dD]{2,4}|[aA]{4}|[jJ]{2,4}|mm|[hH]{2}|[sS]{2,3}|TT|tt)"
_AFTER_GAP = r"(?<![^\s(\[\"'“„«‘`/|,。])"
# The argument of a command option: --build=<type>[,...], --output=FILE, -p<package>
_ARGUMENT = r"(?:=?(?:<[^\s<>]{0,60}>|\[[^\s\[\]]{0,60}\])|=[^\s,;()\"'<\[。]*[^\s,;()\"'<\[。.!?:…])*+"


def emphasis_mark(character: str, least: int, most: int) -> str:
    """Return the pattern of a Markdown delimiter of ``least`` to ``most`` characters at the start or end of a word."""
    run, inside = rf"[{character}]{{{least},{most}}}+", rf"[^\s{character}]"
    return rf"(?<![{character}]|[^\W_]){run}(?={inside})|(?<={inside}){run}(?![{character}]|[^\W_])"


def _name_between(symbol: str) -> str:
    """Return the pattern of a name between two symbols: %user.name%, ##name##, :smile:, *|NAME|*."""
    name = rf"[{_SIGNS}]{{0,2}}+[A-Za-z_][\w./|:-]{{0,60}}?(?:\[\w*\])?[{_SIGNS}]{{0,2}}"
    return rf"(?<![\w{_SIGNS}])\*?{symbol}{name}{symbol}\*?(?!\w|\.[\d*])"


KINDS = {
    "code in delimiters": (
        r"(?:``[^`\n]{1,200}``|`[^`\n]{1,200}`)(?!\w)"
        r"|\[\[(?![^\[\]\n\p{L}]{0,5}\p{L}+(?:\s\p{L}+){2})[^\[\]\n]{1,200}\]\]"
        # [FILE], [-n name], [$name], [user.name], [NAME|default], [gallery], [img=5x5], [caption id=1], [a-z]+
        r"|\[(?:[A-Z][A-Z0-9_-]{1,40}|--?[^\[\]\s][^\[\]\n]{0,60})\]"
        rf"|\[(?:(?!\*\w)[{_SIGNS}~+{{][^\[\]\s]{{0,60}}\w[^\[\]\s]{{0,60}}|\w++(?:[.|]\w++)++)\](?![(\[:])"
        r"|(?<!\w)\[/?[a-z]\w{0,40}(?:=[^\[\]\s]{1,200}|(?:\s[\w-]{1,40}=(?:\"[^\"\]\n]{0,200}\"|[^\s\]]{1,99})){1,9})?"
        r"\s?/?\](?![(\[:+*?{])"
        r"|\^?\[[^\[\]\s]{1,60}\](?:[+*?]|\{[\d,]{1,6}\})\$?"
    ),
    "placeholder in braces": (
        r"<%[^\n]{0,200}?%>|<\?[^\n]{0,200}?\?>|\{%[^\n]{0,200}?%\}|\{\#[^\n]{0,200}?\#\}"
        rf"|(?:(?<![\w{_SIGNS}^&~])[{_SIGNS}^&~]{{1,2}}|[$\#%@])?{_NESTED_BRACES}"
    ),
    "tag": (
        r"E<(?:lt|gt|sol|verbar|\d{1,5})>|(?<!\w)[A-Z](?:<[^<>]{0,100}(?:[A-Z]<\w{1,20}>[^<>]{0,100}){0,9}>|<{2,4}\s[^\n]{0,200}?\s>{2,4})|</?[A-Za-z][^<>]{0,1000}>|</?[0-9]{1,3}/?>|<!--[^<>]{0,1000}-->"
        r"|<<[A-Za-z][^<>\s]{0,60}>>|</?[$\#@|][A-Za-z][^<>]{0,100}>"  # <<name>>, <$name>, <#if x>, <|name|>
        # &lt;br/&gt;, &lt;/a&gt;, &lt;img src="x"&gt;
        r"|&lt;/?(?:[A-Za-z][\w.:-]{0,60}+(?:\s(?:(?!&[lg]t;)[^<>\n]){0,1000}+)?|[0-9]{1,3})/?&gt;"
    ),
    "entity": r"&(?:[A-Za-z][A-Za-z0-9.-]{1,60}|\#[0-9]{1,7}|\#[xX][0-9A-Fa-f]{1,6});",
    "name between signs": "|".join(map(_name_between, [r"%", r"\$", r"\#", r"@", r"\|", r":"])),
    "directive": (
        # %s, %Y-%m-%d; %%, %%s
        rf"(?<![0-9%])(?:{DIRECTIVE}(?![A-Za-z])(?:[-/:.]%[A-Za-z](?![A-Za-z]))*+"
        r"|%%(?:\(\w{1,60}\)|[A-Za-z](?![A-Za-z]))?)"
    ),
    "link": rf"(?<![{_WORD}_])(?:(?:https?|ftps?|sftp|ssh|git|file|wss?)://|www\.){_ADDRESS}*{_ADDRESS_END}",
    # anna@example.org, root@host, git@host:folder
    "e-mail address": (
        rf"(?<![{_WORD}._%+-])(?:mailto:)?[{_WORD}._%+-]++@[{_WORD}-]++(?:\.[{_WORD}-]++)*+(?::[\w./~-]*\w)?"
    ),
    "name behind a sign": (
        # $t(key, {}), $!name, $user->name, @anna, #summer
        rf"(?<![\w{_SIGNS}&^\\])(?:(?:[$\#@]{{1,2}}!?(?:{_CHAIN})?|%(?=\[)){_BRACKETS}++|[$\#@]{{1,2}}!?{_CHAIN}(?:\[\w*\])*+)"
        # ^[a dog](inflect: true), @:common.dog, :name
        r"|\^\[[^\[\]\n]{1,100}\]\([^()\n]{1,100}\)|(?<![\w@])@(?:\.[a-z]{1,20})?:(?:[\w.-]{0,60}\w|\([\w.-]{1,60}\))"
        r"|(?<![^\s(\[\"'/=>。]):[A-Za-z_]\w++(?!:)"
    ),
    "path": (
        r"(?<!\w)[A-Za-z]:\\[^\s\"<>|?*]*[^\s\"<>|?*.,;:!]|(?<![\\\w])\\\\[\w.$-]++(?:\\[^\s\"<>|?*\\]++)++"
        r"|(?<![\w/:.<~+-])(?:~|\.{1,2})?/(?:"
        rf"(?:[\w。.+-]++/)*+(?:[\w。+-]++\.(?:{_ENDINGS})(?!\w)|\.?[\w+-]++(?:\.[\w+-]++)*+)|(?:[\w。.+-]++/)++)"
        r"|(?<![\w/:.<~+*-])(?=[A-Za-z_.*])(?:[\w.*+-]++/)*+(?:(?<=/)[\w+-]++|[\w+-]*+\*)\.[a-z0-9]{1,8}(?![\w/])"
        r"|(?<![\w@./-])(?=[\w-]*+[.][\w-])[A-Za-z0-9_][\w-]*+(?:\.[A-Za-z0-9_][\w-]*+){0,8}"
        rf"\.(?:{_ENDINGS})(?![\w-]|\.\w)"
    ),
    "identifier": (
        # foo_bar, __init__, getElementById, HttpServletRequest, std::vector, foo.bar(), dpkg(1), os.path.join
        r"(?<!\w)(?=\w*[A-Za-z])(?:[A-Za-z0-9]+_\w*[A-Za-z0-9]|__?[A-Za-z]\w*+)(?:\([^()\s]{0,60}\))?"
        r"|(?<!\w)(?=[A-Za-z0-9]*(?:[a-z][A-Z]|[A-Z]{2}[a-z]{2}))[A-Za-z][A-Za-z0-9]*+(?!\w|-\w*\d)(?:\([^()\s]{0,60}\))?"
        r"|(?<![\w.:@/-])[A-Za-z]\w*+(?:(?:\.|::|->)\w++)*+\(\)"
        r"|(?<![\w:])[A-Za-z]\w*+(?:::[A-Za-z_][\w-]*+)++(?![\w:])|(?<![\w.-])[A-Za-z][\w-]*+\([1-8][a-z]{0,2}\)(?!\w)"
        r"|(?<![\w.@/-])[a-z]\w++(?:\.[a-z]\w++){2,}+(?![\w-])"
        # name=value, Ctrl+C, a|b, a->b, a==b, \textbf
        r"|(?<![\w.=<&?-])[A-Za-z_][\w.-]*+=(?:\"[^\"\n]{0,100}\"|[^\s\"'=,;()。]*[^\s\"'=,;()。.!?:…])"
        r"|(?<![\w+|^])[A-Za-z]\w*+(?:(?:[+|^]|\|\||&&|[-=]>|[=!<>]=)\w++)++|(?<![\w\\])\\(?:\*?\([a-z]{2})?(?:[A-Za-z]\w*+)?(?<=\w)"
        # --verbose, -p<package>; but neither -She left. nor the German Mantel und -hut
        rf"|{_AFTER_GAP}--[a-z][\w-]*+{_ARGUMENT}|{_AFTER_GAP}-[A-Za-z](?![\w'’\s]|$)(?==?[<\[]|=){_ARGUMENT}"
        rf"|{_AFTER_GAP}-[a-zB-HJ-Z](?![\w'’-])"
        rf"|(?<=[^\s.!?…:]\s)(?<!\b(?:und|oder|bis|sowie|and|or|et|ou|y|o|e|en|of)\s)-[A-Z][\w-]*+(?<=\w)(?!['’]){_ARGUMENT}"
    ),
    "code": (
        r"(?<![\w.-])\d++(?:\.\d++)?[eE][-+−]?\d++(?![\w-])|(?<!\w)\d++(?:_\d{3})++(?!\w)"  # 1e-5, 1_000
        # H₂O, m²; the superscript of house¹; ⌘S
        r"|(?<!\w)[A-Za-zµ]{1,2}[²³¹⁰-ₜ]++\w{0,3}(?!\w)|(?<=\w)[²³¹⁰-ₜ]++(?!\w)|[⌘⌥⇧⌃]++\w{0,3}"
        r"|(?<![\w-])0[xX][0-9A-Fa-f]++(?!\w)"
        rf"|(?<!\w)(?:[0-9A-Fa-f]{{2}}[:-]){{5}}[0-9A-Fa-f]{{2}}(?!\w)|(?<!\w){_DATE_PART}(?:[-/.:]{_DATE_PART})++(?!\w)"
        # n/a; AT&T, C++; versions: 2.0.1-beta.3
        r"|(?<![\w/])(?![aeiouy]/[aeou])[A-Za-z]/[A-Za-z](?![\w/])|(?<![\w&])[A-Z]{1,4}(?:&[A-Z]{1,4})+(?![\w&])|(?<!\w)[A-Za-z][A-Za-z0-9]{0,9}\+\+(?![\w+])"
        r"|(?<![\w.-])(?:v[0-9]++(?:\.[0-9]++)*+|[0-9]++(?:\.[0-9]++){2,}+)-[A-Za-z0-9]++(?:\.[A-Za-z0-9]++)*+(?![\w-])"
        # uppercase letters and digits: B-207, A4, 3D, but neither 1ST nor 5PM
        rf"|(?<![\w-]|\d[.,])(?!{_WITH_WORDS})"
        r"(?:[A-Z]+[-./\#]?[0-9]|[0-9]+[-./]?[A-Z])[A-Z0-9]*+(?:[-./\#][A-Z0-9]++){0,20}+(?![\w-])"
        # letters, then digits: Covid-19
        rf"|(?<![\w-])(?!{_WITH_WORDS})[A-Za-z]{{1,20}}-[0-9]++(?:[-._][A-Za-z0-9]++){{0,20}}+(?![\w-])"
        # letters and digits in one group: mp3, 1.5M, 12h30, 7ab3e19c, but neither 2nd nor 21st
        rf"|(?<![\w+/\#.-]|[0-9A-Fa-f]::?|\d,)(?!{_WITH_WORDS})"
        rf"(?=(?:[A-Za-z0-9]++{_BETWEEN_GROUPS})*?(?:[A-Za-z]++[0-9]|[0-9]++(?!{_SUFFIX})[A-Za-z]))"
        rf"[A-Za-z0-9]++(?:{_BETWEEN_GROUPS}[A-Za-z0-9]++)*+(?!\w|-(?!{_WORD_GROUP}))"
    ),
    "number": (
        r"(?<![\w+])\+[0-9]{1,3}(?:[ ./()-]{1,2}[0-9]++){2,}+"  # a telephone number
        r"|(?<![\w.:-])(?:[0-9]{4}-[0-9]{2}-[0-9]{2}\ [0-9]{1,2}(?::[0-9]{2}){1,2}+(?![\w:])"
        r"|[0-9]{1,2}(?::[0-9]{2}){1,2}+\ ?(?:[ap]\.m\.|[apAP][mM](?!\w)))"
        r"|(?<![\w.,/])[0-9]{1,3}\ [0-9]{1,2}/[0-9]{1,2}(?![\w/])"
        # of several parts, with a sign, currency or unit, or of two or more digits
        rf"|(?<![{_WORD}_])(?:(?<![^\s(\[\"'“„«=])[-−+±][{_CURRENCY}]?{_DIGITS}{_UNIT}?"
        rf"|(?:[A-Z]{{1,3}})?[{_CURRENCY}]\ ?{_DIGITS}(?:(?:[kKmMB]|[bmt]n)\b)?"
        r"(?:\ (?:US|CA|AU|NZ|HK|SG)D(?!\w))?"
        rf"|{_DIGITS}{_UNIT}"
        rf"|(?=\d\d|\.\d|\d\^[-−+]?\d|\d{_BETWEEN_DIGITS}\d|\d[\ \u00a0\u202f\u2009]\d{{3}}(?!\d)){_DIGITS})"
        r"|\d{2,}+"
    ),
    "emphasis mark": f"{emphasis_mark('*', 1, 3)}|{emphasis_mark('_', 1, 3)}|{emphasis_mark('~', 2, 2)}",
    "face": r"(?<!\S)(?:[:;=8][-']?[)(DPpOo/|*]|<3|\^_?\^)(?!\w)",
}
"""The pattern of each kind of value."""

_PLAIN_WORDS = r"(?<!\S)(?:(?:\p{Lu}++|\p{Lu}?[\p{Ll}\p{Lo}\p{M}]++)[.,;!?]?(?:\s++|$))++"
"""Words of letters between spaces. No match of KINDS begins in one, so they are skipped, which saves most of the
time."""
NON_TRANSLATABLE = regex.compile(
    "|".join([rf"{_PLAIN_WORDS}(*SKIP)(*FAIL)", *(f"(?:{pattern})" for pattern in KINDS.values())])
)
ONE_DIGIT = regex.compile(r"(?<![\w,:/]|(?<!\p{L})[.-])\d(?!\w|[.,:/]\w)")
"""A number of one digit, as in 3 cats, fig.3 and top-5."""
TRIGGER = regex.compile(r"[\d@#$%&<>{\[\\/:=;^_`+|*²³¹⁰-ₜ⌘⌥⇧⌃]|~~|\.\w|[a-z][A-Z]|[A-Z]{2}[a-z]{2}|\w\(|\w-\w|(?<!\w)-")
"""Every match of NON_TRANSLATABLE contains a match of this, so a line without one need not be searched."""

LONG_RUN = regex.compile(
    # Short words between spaces are skipped, unless they are repeated.
    r"(?<!\S)(?:(?!(?P<again>[^\W\d_]{1,20}+)[\s,.!]{1,3}+(?i:(?P=again))(?!\w))"
    rf"[\p{{L}}\p{{M}}]{{1,{2 * MIN_REPEATS - 1}}}+[,.;!?]?(?:\s++|$))++(*SKIP)(*FAIL)"
    rf"|(?<!{_IN_A_RUN}){_IN_A_RUN}{{{MIN_RUN_CHARACTERS},}}+"
    rf"|(?<!{_BASE64})(?=[A-Za-z+/=_-]*+[0-9]){_BASE64}{{{MIN_RUN_CHARACTERS},}}+"
    # hahahahahaha, nooooooooooooo, and ha ha ha ha ha ha
    rf"|(?<!\w)\w*?(?P<syllable>[^\W\d_]{{2,4}}?)(?P=syllable){{{MIN_REPEATS - 1},}}+\w*+"
    rf"|(?<!\w)(?P<word>[^\W\d_]{{1,20}}+)(?:[\s,.!]{{1,3}}+(?i:(?P=word))(?!\w)){{{MIN_REPEATS - 1},}}+"
    # the dots after the first one in "I am tired........", and all of a row of other symbols
    rf"|(?<=(?P<mark>[{_MARKS}]))(?P=mark){{{MIN_REPEATED_MARKS - 1},}}+"
    rf"|(?P<sign>[^\w\s{FINAL_MARKS}])(?P=sign){{{MIN_REPEATED_MARKS - 1},}}+"
)
"""A long run of letters and digits without a space, base64, a word with a repeated syllable or letter, or a repeated
word or symbol. No model translates it, and it costs as much time as a hundred words."""

SINGLE_QUOTED = regex.compile(r"(?<![\w'’])'(?=\w)(?:[^']|(?<=\p{L})'(?=\p{L})){1,300}+(?<=\S)'(?![\w'])")
"""A text between two apostrophes that are quotation marks. Models learn the other uses of apostrophes in training."""
