"""Translator: N lines give N translations in order, for any lines and any size of batches."""

import re
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import Mock

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from mt.config import DecodingChoice, DecodingConfig, RNNAttentionConfig, TokenizerConfig, TransformerConfig
from mt.core.errors import InputError
from mt.models.build import build_model
from mt.storage.model_description import ModelDescription, TextLayerDescription
from mt.text.placeholders import all_placeholders, placeholder
from mt.tokenizer.tokenizer import TokenizerPair
from mt.tokenizer.training import train_tokenizer
from mt.translation.engine import SearchRequest, engine_class
from mt.translation.hypotheses import NUMERIC, Hypothesis, LoopConstraint, forced_log_probabilities, max_repeats
from mt.translation.lines import windows
from mt.translation.results import LINE_BREAKS
from mt.translation.trained_model import TrainedModel
from mt.translation.translator import Translator
from tests import toy

HOSTILE = [
    "", " ", "\t\u3000 ", "ba\0de", "fi\u2028go", "ku\u2029la", "mo\x85ne", "pi\rra", "su\r", "\ufeffti",
    "e\u0301\u0302\u0303", "\u202eabc\u202c", "👩‍👩‍👧‍👦 🏳️‍🌈", "ba " * 300, "x" * 3000, "<b>vo</b> &amp;",
    "\x01\x02\x1b[31m",
    "\ud7ff\ue000", "漢字かな交じり文", "\u200b", "ba de fi", "\0", "</s>", "<unk>", "▁▁ba", "<b", "</b> ba <",
    "<b>ba <i>de</b> fi</i>", "\U0010f000 ba \U0010f003\U0010f000",
]  # fmt: skip


@pytest.fixture(scope="module")
def tokenizers():
    tokenizer = train_tokenizer(
        toy.sentences(300, 1), ("xx",), TokenizerConfig(vocabulary_size=319), placeholders=all_placeholders(toy.SLOTS)
    )
    return TokenizerPair(tokenizer, tokenizer)


TRANSFORMER = TransformerConfig(
    architecture="transformer", width=16, feed_forward=32, heads=2, encoder_layers=1, decoder_layers=1
)
LEARNED = TRANSFORMER.model_copy(update={"positions": "learned", "max_positions": 40})
RNN = RNNAttentionConfig(architecture="rnn_attention", width=16, hidden=20)
both_models = pytest.mark.parametrize("config", [TRANSFORMER, RNN], ids=["transformer", "rnn"])


def _translator(tokenizers, config=TRANSFORMER, rules=None, **decoding):
    torch.manual_seed(3)
    model = build_model(config, tokenizers).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(2)
    values = DecodingConfig(**{"max_source_length": 30, "max_length_extra": 5, "max_length_ratio": 0.5} | decoding)
    layer = toy.layer(tokenizers) if rules is None else replace(toy.layer(tokenizers), config=rules)
    if values.engine == "torch":
        return Translator(model=model, layer=layer, config=values)
    with TemporaryDirectory() as folder:
        description = toy.description(toy.config(Path(folder), model=config.model_dump()), tokenizers)
        trained = TrainedModel(description, tokenizers, model, None)
        engine = engine_class(values.engine).open(model, trained, values)
    return Translator(model=model, layer=layer, config=values, engine=engine)


def _hypotheses(tokenizers, *texts):
    """Return one hypothesis for each source, given their texts."""
    return [[Hypothesis(tokens, -1.0)] for tokens in tokenizers.target.encode(list(texts))]


NUMBER = re.compile(r"\d+")
SEARCHES = [{"beam_size": 1}, {"beam_size": 3, "n_best": 3}, {"method": "sample", "n_best": 2}]


@pytest.mark.parametrize(
    ("config", "search"),
    [
        *((model, search) for model in (TRANSFORMER, RNN) for search in SEARCHES),
        (TRANSFORMER, {"beam_size": 3, "n_best": 3, "engine": "ctranslate2"}),
        (TRANSFORMER, {"beam_size": 2, "markup": "html"}),
    ],
    ids=lambda value: getattr(value, "architecture", None) or str(value),
)
def test_hypotheses_do_not_depend_on_batch_tokens(tokenizers, config, search):
    small, large = (
        _translator(tokenizers, config, **search, batch_tokens=batch_tokens).hypotheses(HOSTILE)
        for batch_tokens in (1, 200)
    )
    texts = [[translation.text for translation in translations] for translations in small]
    assert texts == [[translation.text for translation in translations] for translations in large]
    for line, translations in zip(HOSTILE, texts, strict=True):
        assert translations
        if not line.strip():
            assert translations == [""]
        assert not any(map(LINE_BREAKS.search, translations))


@pytest.mark.parametrize(
    "search", [*SEARCHES, SEARCHES[0] | {"engine": "ctranslate2"}, SEARCHES[1] | {"engine": "ctranslate2"}], ids=str
)
def test_constrained_search_adds_no_numbers_or_loops(tokenizers, search):
    translator = _translator(tokenizers, **search, max_length_extra=15)
    lines = [*toy.sentences(40, 5), "ba 7 de", "fi 12 go 2019"]
    segmented = translator.segment(list(map(toy.line, lines)))
    sources = [source for line in segmented for source in line.sources]
    request = SearchRequest(sources, [(n,) for n in range(len(lines))])
    hypotheses = translator.search(request)
    for line, translations in zip(lines, translator.join(segmented, hypotheses), strict=True):
        assert all(sorted(NUMBER.findall(each.text)) == sorted(NUMBER.findall(line)) for each in translations)
    limits = [max(2, max_repeats(source)) for source in sources]
    for limit, n_best in zip(limits, hypotheses, strict=True):
        assert all(max_repeats(each.tokens) <= limit for each in n_best)
    unconstrained = [n_best[0].tokens for n_best in translator.engine.search(request)]
    assert any(map(NUMERIC.search, tokenizers.target.decode(unconstrained)))
    assert any(max_repeats(tokens) > limit for limit, tokens in zip(limits, unconstrained, strict=True))
    assert translator.statistics.loops > 0


def test_translate_does_not_depend_on_threads(tokenizers):
    translator = _translator(tokenizers, beam_size=2, batch_tokens=50)
    lines = toy.sentences(60, 8)
    expected = translator.translate(lines)
    torch.set_num_threads(3)
    translations, threads = translator.translate(lines), torch.get_num_threads()
    torch.set_num_threads(1)
    assert translations == expected
    assert threads == 3


@pytest.fixture(scope="module")
def greedy(tokenizers):
    return {engine: _translator(tokenizers, beam_size=1, engine=engine) for engine in ("torch", "ctranslate2")}


@pytest.mark.parametrize("engine", ["torch", "ctranslate2"])
@given(lines=st.lists(st.text(max_size=60), max_size=12))
@settings(max_examples=25, deadline=None)
def test_translate_returns_one_line_per_line(greedy, engine, lines):
    translations = greedy[engine].translate(lines)
    assert len(translations) == len(lines)
    assert not any(map(LINE_BREAKS.search, translations))


def test_sampling_depends_on_line_numbers(tokenizers):
    translator = _translator(tokenizers, method="sample")
    lines = ["ba de fi"] * 6
    translations = translator.translate(lines)
    assert len(set(translations)) > 1
    assert translator.translate(lines[1::2], range(1, 6, 2)) == translations[1::2]


def test_long_line_is_translated_in_segments(tokenizers):
    translator = _translator(tokenizers, beam_size=1)
    text = " ".join(["ba", "de", "fi", "go", "ku"] * 20)
    (translation,) = translator.translate([text])
    (line,) = translator.segment([toy.line(text)])
    segments = [segment.text for segment in line.segments]
    assert len(line.sources) > 1 and all(len(tokens) <= 30 for tokens in line.sources)
    assert " ".join(segments) == text
    assert all(word in toy.SYLLABLES for segment in segments for word in segment.split()), "cut inside a word"
    assert translation == " ".join(translator.translate(segments))
    assert translator.statistics.long_sentences == 2 and translator.statistics.first_long_line == 1


def test_long_line_without_text_layer_is_split_into_sources(tokenizers, caplog):
    translator = _translator(tokenizers, rules=TextLayerDescription(enabled=False), beam_size=1)
    (line,) = translator.segment([toy.line(" ".join(["ba", "de", "fi", "go", "ku"] * 20), number=4)])
    assert len(line.sources) > 1 and all(len(tokens) <= 30 for tokens in line.sources)
    assert tokenizers.source.decode([sum(line.sources, [])]) == [line.text]
    translator.statistics.log(are_lines=True)
    translator.statistics.log(are_lines=False)
    for_lines, for_documents = caplog.messages
    assert "allow: 1, the first in line 5; shorten them" in for_lines
    assert "allow: 1; shorten them" in for_documents


def test_placeholders_without_text_layer_are_ordinary_characters(tokenizers):
    translator = _translator(tokenizers, rules=TextLayerDescription(enabled=False))
    text = f"{placeholder(0)} ba {placeholder(0)}"
    ((translation,),) = translator.join(translator.segment([toy.line("ba")]), _hypotheses(tokenizers, text))
    assert translation.text == text and not translator.statistics.repaired_items


def test_search_deduplicates_equal_sources(tokenizers):
    translator = _translator(tokenizers)
    translator._search.checker = None
    searched, search = [], translator.engine.search

    def recorded_search(request):
        searched.extend(request.sources)
        return search(request)

    translator.engine.search = recorded_search
    lines = ["ba de", "fi go", "ba de", "ba de"]
    assert translator.translate(lines) == [translator.translate([line])[0] for line in lines]
    assert len(searched) == 2 + 4


def test_search_applies_the_checker_of_each_source(tokenizers):
    translator = _translator(tokenizers, beam_size=1)
    request = SearchRequest(tokenizers.source.encode(["ba de"] * 3), [()] * 3)
    unconstrained = translator.engine.search(request)[0][0].tokens
    lax = Mock(violated_constraints=lambda *_: [])
    strict = Mock(violated_constraints=lambda _, tokens: [LoopConstraint(1)] if tokens == unconstrained else [])
    hypotheses = translator.search(replace(request, checkers=[lax, strict, lax]))
    assert [best.tokens == unconstrained for (best,) in hypotheses] == [True, False, True]


def test_join_omits_empty_sources(tokenizers):
    translator = _translator(tokenizers, beam_size=1)
    lines = translator.segment([toy.line(" ".join(["ba", "de"] * 45))])
    assert len(lines[0].sources) == 3
    assert translator.join(lines, _hypotheses(tokenizers, "ba", "", "go"))[0][0].text == "ba go"


def test_second_best_translation_joins_second_best_segments(tokenizers):
    translator = _translator(tokenizers, beam_size=3, n_best=2)
    line = " ".join(["ba", "de", "fi", "go", "ku"] * 20)
    texts = tokenizers.source.decode(translator.segment([toy.line(line)])[0].sources)
    segments = translator.hypotheses(texts)
    ((best, second),) = translator.hypotheses([line])
    assert best.text == " ".join(n_best[0].text for n_best in segments)
    assert second.text == " ".join(n_best[1].text for n_best in segments) != best.text


@pytest.mark.parametrize("value", ["<b>#fi</b>", "<i>B-20</i>", "<a><u>https://</u><i>e.org/ba</i><u>/de</u></a>"])
def test_html_elements_keep_their_values(tokenizers, value):
    translator = _translator(tokenizers, rules=TextLayerDescription(enabled=True))
    assert value in translator.translate([toy.line(f"ba. de <u>12:30</u> {value}", "html")])[0]


def test_html_blocks_are_translated_separately(tokenizers):
    translator = _translator(tokenizers, rules=TextLayerDescription(enabled=True))
    first, second = translator.translate(["ba", "fi"])
    pages = ["b\u00ada", "ba<br>f\u00adi", "<a>ba</a> <a>fi</a>"]
    expected = [first, f"{first}<br>{second}", f"<a>{first}</a> <a>{second}</a>"]
    assert translator.translate([toy.line(page, "html") for page in pages]) == expected


def test_markup_of_plain_text_keeps_its_values(tokenizers):
    translator = _translator(tokenizers, rules=TextLayerDescription(enabled=True))
    assert "**B-20**" in translator.translate(["ba **B-20** de"])[0]
    assert translator.segment([toy.line("**ba**")])[0].coded.codes


def test_n_best_and_alignment_translate_html_blocks_together(tokenizers):
    translator = _translator(tokenizers, rules=TextLayerDescription(enabled=True), beam_size=3, n_best=2)
    page = toy.line("<p>ba</p><p>fi</p>", "html")
    n_best, (aligned,) = translator.hypotheses([page._replace(n_best=2), page._replace(n_best=1, aligned=True)])
    assert len(n_best) == 2
    assert aligned.alignment and aligned.text == n_best[0].text


def test_alignment_of_message_is_empty(tokenizers):
    message = toy.line("ba fi {n, plural, one {ba} other {fi}} ba", aligned=True)
    assert _translator(tokenizers).hypotheses([message])[0][0].alignment == []


def test_codes_around_text_of_message_belong_to_it(tokenizers):
    translator = _translator(tokenizers, rules=TextLayerDescription(enabled=True))
    (line,) = translator.segment([toy.line("{n, plural, one {<b><i> ba</i> fi</b> de} other {ku }}", "xml")])
    fragments = [fragment.written() for fragment in line.arguments["{m0}"].fragments]
    assert fragments[1::2] == ["<b><i> ba</i> fi</b> de", "ku"]


def test_unrepaired_html_block_is_left_untranslated(tokenizers, monkeypatch):
    translator = _translator(tokenizers, beam_size=1, rules=TextLayerDescription(enabled=True))
    first, second = translator.translate(["ba", "fi"])
    monkeypatch.setattr("mt.translation.joining.is_intact", lambda text, values: text != second)
    ((page,),) = translator.hypotheses([toy.line("<p>ba</p><p>fi</p>", "html")])
    assert page.text == f"<p>{first}</p><p>fi</p>" and page.is_source
    assert translator.statistics.untranslated_lines == 1


def test_unrepaired_message_is_left_untranslated(tokenizers, monkeypatch):
    translator = _translator(tokenizers, beam_size=1, rules=TextLayerDescription(enabled=True))
    monkeypatch.setattr("mt.translation.joining.is_intact", lambda text, values: False)
    message = "ba &quot; <b>de</b> {n, plural, one {fi} other {ku}}"
    ((translation,),) = translator.hypotheses([toy.line(message, "html")])
    assert translation.text == message and translation.is_source


def test_options_of_lines_override_decoding_settings(tokenizers):
    translator = _translator(tokenizers, beam_size=3, n_best=3)
    lines = toy.sentences(4, seed=19)
    expected = translator.hypotheses(lines)
    assert translator.hypotheses(list(map(toy.line, lines))) == [n_best[:1] for n_best in expected]
    assert translator.hypotheses(lines, greedy=True) == _translator(tokenizers, beam_size=1).hypotheses(lines)
    tagged = translator.hypotheses([toy.line(f"<b>{line}</b>", "html", n_best=2) for line in lines])
    assert [[each.text for each in n_best] for n_best in tagged] == [
        [f"<b>{each.text}</b>" for each in n_best[:2]] for n_best in expected
    ]


def test_joined_n_best_is_sorted_by_score(tokenizers):
    """The long hypothesis of a segment has a lower log-probability than a short one, but a higher score."""
    translator = _translator(tokenizers, beam_size=3, n_best=3, length_penalty=1.0)
    lines = translator.segment([toy.line(" ".join(["ba", "de"] * 30), n_best=3)])
    tokens = tokenizers.target.encode(["ba", "de", "fi " * 12])
    n_best = list(map(Hypothesis, tokens, (-1.0, -2.0, -2.5)))
    ((best, second, third),) = translator.join(lines, [n_best, n_best])
    assert best.text == "ba ba" and third.text == "de de"
    assert second.score > third.score


def test_missing_and_repeated_placeholders_are_repaired_and_counted(tokenizers):
    translator = _translator(tokenizers, beam_size=1)
    lines = translator.segment([toy.line("ba {x} de 1999 fi")])
    hypotheses = _hypotheses(tokenizers, f"ba {placeholder(0)} de {placeholder(0)} fi")
    ((translation,),) = translator.join(lines, hypotheses)
    assert translation.text.count("{x}") == translation.text.count("1999") == 1
    assert (translator.statistics.items, translator.statistics.repaired_items) == (2, 2)


@pytest.mark.parametrize(
    ("setting", "untranslated"), [("source", [" ba {x} de"]), ("translation", [])], ids=["source", "translation"]
)
def test_unrepaired_setting_decides_whether_source_is_kept(tokenizers, setting, untranslated):
    translator = _translator(tokenizers, beam_size=1, unrepaired=setting)
    lines = translator.segment([toy.line("ba de"), toy.line(" ba {x} de", number=5)])
    hypotheses = _hypotheses(tokenizers, "fi", f"de{placeholder(0)} {{fi}}")  # braces that the source does not have
    translations = [best for (best,) in translator.join(lines, hypotheses)]
    assert [best.text for best in translations if best.is_source] == untranslated
    statistics = translator.statistics
    assert statistics.untranslated_lines == len(untranslated)
    assert statistics.first_untranslated_line == (6 if untranslated else None)


def test_soft_hyphens_in_words_are_removed(tokenizers):
    lines = ["ba <f\u00adi de\u00adku.", "ba " + "a\u00ad" * 50_000 + "a", "ba <a b='d\u00ade'>de</a>"]
    first, second, tagged = _translator(tokenizers).segment(list(map(toy.line, lines, (None, None, "html"))))
    assert first.text == "ba <fi deku."
    assert second.text == "ba " + "a" * 50_001
    assert tagged.coded.codes[0].back == "<a b='d\u00ade'>"


@pytest.mark.parametrize("markup", ["html", "xml"])
@pytest.mark.parametrize("outside", ["<b>{}</b>", "<i><b>{}</b></i>", "  {}"])
def test_tags_and_spaces_around_message_are_preserved(tokenizers, markup, outside):
    message = outside.replace("{}", "{n, plural, one {ba} other {de}}")
    assert _copied(tokenizers, toy.line(message, markup)) == message


@pytest.mark.parametrize(
    ("markup", "message", "parts"),
    [
        (
            None,
            "ba {n, plural, one {# de {x}} other { {g, select, other {fi}} go}} ku.",
            ["ba {m0} ku.", "# de {x}", "{m0} go", "fi"],
        ),
        ("auto", "{n, plural, one {ba <b>de</b> ku} other {ba <b>#</b> fi}}", ["{m0}", "ba de ku", "ba # fi"]),
        ("html", "{n, plural, one {ba <b>de</b> ku} other {ba <b>#</b> fi}}", ["{m0}", "ba de ku", "ba # fi"]),
    ],
    ids=["plain", "auto", "html"],
)
def test_texts_of_message_are_translated_separately(tokenizers, markup, message, parts):
    line = toy.line(message, markup)
    (segmented,) = _translator(tokenizers).segment([line])
    assert [part.text for part in segmented.with_parts()] == parts
    copied = _copied(tokenizers, line)
    # The random model places the tags anywhere.
    assert re.sub("</?b>", "", copied) == re.sub("</?b>", "", message)
    assert copied.count("<b>") == copied.count("</b>") == message.count("<b>")


def _copied(tokenizers, line):
    """Return the translation of a line by a model that copies the source."""
    translator = _translator(tokenizers, beam_size=1)
    (segmented,) = translator.segment([line])
    ((copied,),) = translator.join([segmented], [[Hypothesis(source, -1.0)] for source in segmented.sources])
    return copied.text


@pytest.mark.parametrize("message", ["{n, plural, one {ba}", "ba {0,choice,0#ba de|1#{1,choice,0#fi go|1#ku ba}}"])
def test_unparsable_message_is_left_untranslated(tokenizers, message):
    translator = _translator(tokenizers, beam_size=1)
    assert translator.translate(["de", message])[1] == message
    assert translator.statistics.untranslated_lines == 1


def test_blank_line_stays_blank_with_identity_normalization():
    config = TokenizerConfig(vocabulary_size=320, normalization="identity")
    tokenizer = train_tokenizer(toy.sentences(300, 1), ("xx",), config, placeholders=all_placeholders(toy.SLOTS))
    assert tokenizer.encode(["   "]) != [[]]
    assert _translator(TokenizerPair(tokenizer, tokenizer), beam_size=1).translate(["   ", "ba", "\t"])[::2] == ["", ""]


def test_lone_surrogate_equals_replacement_character(tokenizers):
    translator = _translator(tokenizers)
    assert translator.translate(["ba \ud83d de", "fi"]) == translator.translate(["ba \ufffd de", "fi"])
    assert translator.score(["ba"], ["de \udc00"])[0].score == translator.score(["ba"], ["de \ufffd"])[0].score


def test_learned_positions_limit_source_length(tokenizers):
    translator = _translator(tokenizers, LEARNED, max_source_length=500)
    (line,) = translator.segment([toy.line("ba de " * 100)])
    assert max(map(len, line.sources)) <= 39
    assert len(translator.translate(["ba de " * 100])) == 1


@both_models
@pytest.mark.parametrize("batch_tokens", [1, 4096])
def test_score_is_normalized_forced_log_probability(tokenizers, config, batch_tokens):
    translator = _translator(tokenizers, config, length_penalty=0.7, batch_tokens=batch_tokens)
    lines, references = toy.sentences(12, 5), toy.sentences(12, 6)
    scored = translator.score(lines, references)
    sources, targets = tokenizers.source.encode(lines), tokenizers.target.encode(references)
    log_probabilities = forced_log_probabilities(translator.model, sources, targets)
    expected = [log_p / (len(target) + 1) ** 0.7 for log_p, target in zip(log_probabilities, targets, strict=True)]
    assert [each.text for each in scored] == references
    assert [each.score for each in scored] == pytest.approx(expected, abs=1e-5)


def test_score_of_empty_or_long_text_is_none(tokenizers, caplog):
    scored = _translator(tokenizers).score(["ba", "", "fi", "go " * 100], ["de", "go", "", "ku"])
    assert [each.score is None for each in scored] == [False, True, True, True]
    assert "3 lines have no score (null)" in caplog.text


@pytest.mark.parametrize(("config", "heads"), [(TRANSFORMER, 2), (RNN, 1)], ids=["transformer", "rnn"])
def test_attention_has_weights_and_token_labels(tokenizers, config, heads):
    attention = _translator(tokenizers, config).attention("ba 7 de fi", "go ku 7")
    (weights,) = attention.cross_attention()
    assert torch.equal(attention.cross()[0], weights)
    assert weights.shape == (heads, len(attention.target_tokens), len(attention.source_tokens))
    assert torch.allclose(weights.sum(dim=-1), torch.ones(weights.shape[:2]), atol=1e-5)
    assert attention.source_tokens[-1] == "</s>" and attention.target_tokens[-2] == "⟨1⟩" in attention.source_tokens


def test_translator_uses_evaluation_mode_and_restores_training_mode(tokenizers):
    translator = _translator(tokenizers)
    lines = toy.sentences(9, 8)
    expected = translator.translate(lines), translator.score(lines, lines)
    translator.model.train()
    translator.attention("ba", "de")
    assert (translator.translate(lines), translator.score(lines, lines)) == expected
    assert translator.model.training


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda translator: translator.translate("ba de"), "not one string"),
        (lambda translator: translator.score("ba", "de"), "not one string"),
        (lambda translator: translator.translate(["ba", None]), "element 1 of the list of lines is None"),
        (lambda translator: translator.score(["ba"], [None]), "element 0 of the list of lines is None"),
    ],
)
def test_lines_must_be_lists_of_strings(tokenizers, call, message):
    with pytest.raises(TypeError, match=message):
        call(_translator(tokenizers))


def test_score_needs_one_reference_per_line(tokenizers):
    with pytest.raises(ValueError, match="2 lines but 1 references"):
        _translator(tokenizers).score(["ba", "de"], ["fi"])


@pytest.mark.parametrize(
    ("lines", "sizes"),
    [(["x"] * 10_000, [4096, 4096, 1808]), (["x" * 1_999_999, "x", "x"], [2, 1]), ([], [])],
    ids=["lines", "characters", "none"],
)
def test_windows_limit_lines_and_characters(lines, sizes):
    assert [len(window) for window in windows(lines)] == sizes


def test_windows_one_by_one():
    assert list(windows(["a", "b"], one_by_one=True)) == [["a"], ["b"]]


def test_search_respects_batch_tokens(tokenizers):
    translator = _translator(tokenizers, beam_size=2, batch_tokens=60)
    sources = tokenizers.source.encode(toy.sentences(12, 8))
    batches, search = [], translator.engine.search

    def recorded_search(request):
        batches.append(request.sources)
        return search(request)

    translator.engine.search = recorded_search
    translator.search(SearchRequest(sources, [()] * len(sources)))
    sizes = [2 * len(batch) * (max(map(len, batch)) + 1) for batch in batches]
    assert len(sizes) > 1 and max(sizes) <= 60


@pytest.mark.parametrize("setting", [{"correct_typos": True}, {"unrepaired": "translation"}], ids=str)
def test_resolve_decoding_rejects_settings_of_missing_text_layer(setting):
    def trained(enabled):
        rules = TextLayerDescription(enabled=enabled)
        description = ModelDescription.model_construct(text=rules, decoding=DecodingConfig())
        return TrainedModel(description, None, None, None)

    ((key, value),) = setting.items()
    with pytest.raises(InputError, match=rf"decoding\.{key}=\w+ needs a text layer.*: leave decoding\.{key} out"):
        trained(enabled=False).resolve_decoding(DecodingChoice(**setting), "runs/plain")
    assert getattr(trained(enabled=True).resolve_decoding(DecodingChoice(**setting), "runs/plain"), key) == value
    assert trained(enabled=False).resolve_decoding(DecodingChoice(), "runs/plain") == DecodingConfig()
