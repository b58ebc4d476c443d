"""N lines in, N lines out, in order, whatever the lines hold; equal at every batch size."""

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
    "\ud7ff\ue000", "漢字かな交じり文", "\u200b", "ba de fi",
]  # fmt: skip


@pytest.fixture(scope="module")
def tokenizers():
    one = train_tokenizer(
        toy.sentences(300, 1), ("xx",), TokenizerConfig(vocabulary_size=319), placeholders=all_placeholders(toy.SLOTS)
    )
    return TokenizerPair(one, one)


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


NUMBER = re.compile(r"\d+")
SEARCHES = [{"beam_size": 1}, {"beam_size": 3, "n_best": 3}, {"method": "sample", "n_best": 2}]


@pytest.mark.parametrize(
    ("config", "search"),
    [
        *((model, search) for model in (TRANSFORMER, RNN) for search in SEARCHES),
        (TRANSFORMER, {"beam_size": 3, "n_best": 3, "engine": "ctranslate2"}),
    ],
    ids=lambda value: getattr(value, "architecture", None) or str(value),
)
def test_hostile_lines_keep_their_places_at_every_batch_size(tokenizers, config, search):
    expected = None
    for budget in (1, 200):
        translator = _translator(tokenizers, config, **search, batch_tokens=budget)
        found = translator.hypotheses(HOSTILE)
        assert len(found) == len(HOSTILE)
        for line, several in zip(HOSTILE, found, strict=True):
            assert several
            assert not any(LINE_BREAKS.search(one.text) for one in several)
            if not line.strip():
                assert [one.text for one in several] == [""]
        texts = [[one.text for one in several] for several in found]
        expected = expected or texts
        assert texts == expected


@pytest.mark.parametrize("engine", ["torch", "ctranslate2"])
@pytest.mark.parametrize("search", SEARCHES, ids=str)
def test_a_translation_has_no_number_or_loop_that_its_line_lacks(tokenizers, search, engine):
    if engine == "ctranslate2" and search.get("method"):
        pytest.skip("CTranslate2 does not sample")
    translator = _translator(tokenizers, **search, engine=engine, max_length_extra=15)
    lines = [*toy.sentences(40, 5), "ba 7 de", "fi 12 go 2019"]
    cut = translator.segment(list(map(toy.line, lines)))
    request = SearchRequest([source for line in cut for source in line.sources], [(n,) for n in range(len(lines))])
    found = translator.search(request)
    for line, joined in zip(lines, translator.join(cut, found), strict=True):
        assert all(sorted(NUMBER.findall(each.text)) == sorted(NUMBER.findall(line)) for each in joined)
    limits = [max(2, max_repeats(source)) for source in request.sources]
    assert all(
        max_repeats(each.tokens) <= limit for limit, n_best in zip(limits, found, strict=True) for each in n_best
    )
    free = [hypotheses[0].tokens for hypotheses in translator.engine.search(request)]
    assert any(map(NUMERIC.search, tokenizers.target.decode(free)))
    assert any(max_repeats(tokens) > limit for limit, tokens in zip(limits, free, strict=True))
    assert translator.statistics.loops > 0


def test_threads_share_the_batches_and_change_nothing(tokenizers):
    translator = _translator(tokenizers, beam_size=2, batch_tokens=50)
    lines = toy.sentences(60, 8)
    threads = torch.get_num_threads()
    found = {}
    for number in (1, 3):
        torch.set_num_threads(number)
        found[number] = translator.translate(lines)
        assert torch.get_num_threads() == number
    torch.set_num_threads(threads)
    assert found[1] == found[3]


@pytest.fixture(scope="module")
def greedy(tokenizers):
    return {engine: _translator(tokenizers, beam_size=1, engine=engine) for engine in ("torch", "ctranslate2")}


@pytest.mark.parametrize("engine", ["torch", "ctranslate2"])
@given(lines=st.lists(st.text(max_size=60), max_size=12))
@settings(max_examples=25, deadline=None)
def test_any_lines_give_as_many(greedy, engine, lines):
    translator = greedy[engine]
    found = translator.translate(lines)
    assert len(found) == len(lines)
    assert not any(LINE_BREAKS.search(text) for text in found)


def test_sampling_is_keyed_by_the_numbers_of_the_lines(tokenizers):
    translator = _translator(tokenizers, method="sample")
    lines = ["ba de fi"] * 6
    whole = translator.translate(lines)
    assert len(set(whole)) > 1
    assert translator.translate(lines[1::2], range(1, 6, 2)) == whole[1::2]


@both_models
def test_the_order_of_the_lines_changes_no_translation(tokenizers, config):
    translator = _translator(tokenizers, config, beam_size=2)
    lines = toy.sentences(30, 7)
    forward, backward = translator.translate(lines), translator.translate(lines[::-1])
    assert forward == backward[::-1]
    assert len(set(forward)) > 10


@both_models
def test_an_over_long_line_is_translated_in_parts_and_rejoined(tokenizers, config, caplog):
    translator = _translator(tokenizers, config, beam_size=1)
    words = ["ba", "de", "fi", "go", "ku"] * 20
    (joined,) = translator.translate([" ".join(words)])
    (line,) = translator.segment([toy.line(" ".join(words))])
    assert len(line.sources) > 1 and all(len(pieces) <= 30 for pieces in line.sources)
    texts = [segment.text for segment in line.segments]
    assert " ".join(texts) == " ".join(words)
    assert all(word in toy.SYLLABLES for text in texts for word in text.split()), "cut inside a word"
    assert joined == " ".join(translator.translate(texts))
    assert translator.statistics.long_sentences == 2 and translator.statistics.first_long_line == 1


@both_models
def test_without_a_text_layer_an_over_long_line_is_cut_in_pieces(tokenizers, config, caplog):
    translator = _translator(tokenizers, config, TextLayerDescription(enabled=False), beam_size=1)
    (line,) = translator.segment([toy.line(" ".join(["ba", "de", "fi", "go", "ku"] * 20), number=4)])
    assert len(line.sources) > 1 and all(len(pieces) <= 30 for pieces in line.sources)
    assert tokenizers.source.decode([sum(line.sources, [])]) == [line.text]
    translator.statistics.log(are_lines=True)
    translator.statistics.log(are_lines=False)
    of_lines, of_documents = caplog.messages
    assert "allow: 1, the first in line 5; shorten them" in of_lines
    assert "allow: 1; shorten them" in of_documents


def test_without_a_text_layer_placeholders_are_like_other_characters(tokenizers):
    translator = _translator(tokenizers, rules=TextLayerDescription(enabled=False))
    text = f"{placeholder(0)} ba {placeholder(0)}"
    ((found,),) = translator.join(
        translator.segment([toy.line("ba")]), [[Hypothesis(tokenizers.target.encode([text])[0], -1.0)]]
    )
    assert found.text == text and not translator.statistics.repaired_items


def test_equal_sources_are_searched_once(tokenizers):
    translator = _translator(tokenizers)
    translator._search.checker = None
    searched = []
    search = translator.engine.search
    translator.engine.search = lambda request: (searched.extend(request.sources), search(request))[1]
    lines = ["ba de", "fi go", "ba de", "ba de"]
    assert translator.translate(lines) == [translator.translate([line])[0] for line in lines]
    assert len(searched) == 2 + 4


def test_equal_sources_of_several_directions_have_their_own_constraints(tokenizers):
    translator = _translator(tokenizers, beam_size=1)
    request = SearchRequest(tokenizers.source.encode(["ba de"] * 3), [()] * 3)
    free = translator.engine.search(request)[0][0].tokens
    lax, strict = (
        Mock(violated_constraints=lambda *_: []),
        Mock(violated_constraints=lambda _, own: [LoopConstraint(1)] * (own == free)),
    )
    found = translator.search(replace(request, checkers=[lax, strict, lax]))
    assert [best.tokens == free for (best,) in found] == [True, False, True]


def test_a_part_without_a_translation_leaves_no_gap(tokenizers):
    translator = _translator(tokenizers, beam_size=1)
    hypotheses = [[Hypothesis(tokenizers.target.encode([text])[0], -1.0)] for text in ("ba", "", "go")]
    line = translator.segment([toy.line(" ".join(["ba", "de"] * 45))])
    assert len(line[0].sources) == len(hypotheses)
    assert translator.join(line, hypotheses)[0][0].text == "ba go"


def test_the_second_best_of_a_line_is_the_second_best_of_each_part(tokenizers):
    translator = _translator(tokenizers, beam_size=3, n_best=2)
    line = " ".join(["ba", "de", "fi", "go", "ku"] * 20)
    texts = tokenizers.source.decode(translator.segment([toy.line(line)])[0].sources)
    of_parts = translator.hypotheses(texts)
    (joined,) = translator.hypotheses([line])
    assert [one.text for one in joined] == [" ".join(segment[rank].text for segment in of_parts) for rank in (0, 1)]
    assert joined[0].text != joined[1].text


def test_values_and_separate_texts_stay_in_their_elements(tokenizers):
    translator = _translator(tokenizers, rules=TextLayerDescription(enabled=True))
    url = "<a><u>https://</u><i>e.org/ba</i><u>/de</u></a>"
    lines = [f"ba. <b>#fi</b> de <i>B-20</i><u>12:30</u> {url}", "ba<br>fi", "<a>ba</a> <a>fi</a>", "ba **B-20** de"]
    html, cut, menu, plain = translator.translate([*(toy.line(line, "html") for line in lines[:3]), lines[3]])
    assert all(part in html for part in ("<b>#fi</b>", "<i>B-20</i>", "<u>12:30</u>", url))
    texts = translator.translate(["ba", "fi"])
    assert translator.translate([toy.line(text, "html") for text in ("b\u00ada", "b\u00ada<br>f\u00adi")]) == [
        texts[0],
        "<br>".join(texts),
    ]
    assert cut == "<br>".join(texts) and menu == "<a>{}</a> <a>{}</a>".format(*texts)
    assert "**B-20**" in plain
    assert translator.segment([toy.line("**ba**")])[0].coded.codes


def test_blocks_are_translated_together_for_several_translations_or_an_alignment(tokenizers):
    translator = _translator(tokenizers, rules=TextLayerDescription(enabled=True), beam_size=3, n_best=2)
    page = toy.line("<p>ba</p><p>fi</p>", "html")
    several, aligned, best = translator.hypotheses(
        [page._replace(n_best=2), page._replace(n_best=1, aligned=True), page._replace(n_best=1)]
    )
    assert len(several) == 2 and len(aligned) == len(best) == 1
    assert aligned[0].alignment and aligned[0].text == several[0].text
    message = toy.line("ba fi {n, plural, one {ba} other {fi}} ba")._replace(aligned=True)
    assert translator.hypotheses([message])[0][0].alignment == []


def test_codes_in_white_space_around_a_text_of_a_message_go_with_it(tokenizers):
    translator = _translator(tokenizers, rules=TextLayerDescription(enabled=True))
    (line,) = translator.segment([toy.line("{n, plural, one {<b><i> ba</i> fi</b> de} other {ku }}", "xml")])
    pieces = [piece.written() for piece in line.arguments["{m0}"].fragments]
    assert pieces[1::2] == ["<b><i> ba</i> fi</b> de", "ku"]


def test_a_text_of_a_page_that_cannot_be_repaired_is_kept_and_counted(tokenizers, monkeypatch):
    translator = _translator(tokenizers, beam_size=1, rules=TextLayerDescription(enabled=True))
    texts = translator.translate(["ba", "fi"])
    assert texts != ["ba", "fi"]
    monkeypatch.setattr("mt.translation.joining.is_intact", lambda text, values: text != texts[1])
    ((page,),) = translator.hypotheses([toy.line("<p>ba</p><p>fi</p>", "html")])
    assert page.text == f"<p>{texts[0]}</p><p>fi</p>" and page.is_source
    assert translator.statistics.untranslated_lines == 1
    message = "ba &quot; <b>de</b> {n, plural, one {fi} other {ku}}"
    monkeypatch.setattr("mt.translation.joining.is_intact", lambda text, values: False)
    ((whole,),) = translator.hypotheses([toy.line(message, "html")])
    assert whole.text == message and whole.is_source


def test_a_translator_may_return_fewer_translations_or_take_tags(tokenizers):
    translator = _translator(tokenizers, beam_size=3, n_best=3)
    lines = toy.sentences(4, seed=19)
    all_of_them = translator.hypotheses(lines)
    assert translator.hypotheses(list(map(toy.line, lines))) == [several[:1] for several in all_of_them]
    assert translator.hypotheses(lines, greedy=True) == _translator(tokenizers, beam_size=1).hypotheses(lines)
    tagged = [f"<b>{line}</b>" for line in lines]
    found = translator.hypotheses([toy.line(text, "html", n_best=2) for text in tagged])
    assert [[one.text for one in several] for several in found] == [
        [f"<b>{one.text}</b>" if one.text else "<b></b>" for one in several[:2]] for several in all_of_them
    ]
    assert translator.hypotheses(lines) == all_of_them


def test_the_others_of_a_line_in_parts_are_in_the_order_of_their_scores(tokenizers):
    """A segment has a long hypothesis that is worse than a short one, but better for each piece."""
    translator = _translator(tokenizers, beam_size=3, n_best=3, length_penalty=1.0)
    line = translator.segment([toy.line(" ".join(["ba", "de"] * 30), n_best=3)])
    assert len(line[0].sources) == 2
    pieces = [tokenizers.target.encode([text])[0] for text in ("ba", "de", "fi " * 12)]
    several = [Hypothesis(one, score) for one, score in zip(pieces, (-1.0, -2.0, -2.5), strict=True)]
    (found,) = translator.join(line, [several, several])
    scores = [one.score for one in found]
    assert found[0].text == "ba ba" and scores[1:] == sorted(scores[1:], reverse=True)
    assert found[2].text == "de de"


def test_dropped_and_doubled_items_are_counted_and_put_right(tokenizers):
    translator = _translator(tokenizers, beam_size=1)
    lines = translator.segment([toy.line("ba {x} de 1999 fi")])
    written = tokenizers.target.encode([f"ba {placeholder(0)} de {placeholder(0)} fi"])[0]
    ((found,),) = translator.join(lines, [[Hypothesis(written, -1.0)]])
    assert found.text.count("{x}") == found.text.count("1999") == 1
    assert (translator.statistics.items, translator.statistics.repaired_items) == (2, 2)


@pytest.mark.parametrize("setting", ["source", "translation"])
def test_a_line_that_cannot_be_repaired_comes_back_as_its_source(tokenizers, setting):
    translator = _translator(tokenizers, beam_size=1, unrepaired=setting)
    lines = translator.segment([toy.line("ba de"), toy.line(" ba {x} de", number=5)])
    texts = ["fi", f"de{placeholder(0)} {{fi}}"]  # braces that the source does not have
    hypotheses = [[Hypothesis(tokens, -1.0)] for tokens in tokenizers.target.encode(texts)]
    (good,), (bad,) = translator.join(lines, hypotheses)
    is_source = setting == "source"
    assert (good.text, good.is_source, bad.is_source) == ("fi", False, is_source)
    assert (bad.text == " ba {x} de") is is_source
    statistics = translator.statistics
    assert (statistics.untranslated_lines, statistics.first_untranslated_line) == ((1, 6) if is_source else (0, None))


def test_soft_hyphens_in_words_do_not_reach_the_model(tokenizers):
    lines = ["ba <f\u00adi de\u00adku.", "ba " + "a\u00ad" * 50_000 + "a", "ba <a b='d\u00ade'>de</a>"]
    *written, tagged = _translator(tokenizers).segment(list(map(toy.line, lines, (None, None, "html"))))
    assert [line.text for line in written] == ["ba <fi deku.", "ba " + "a" * 50_001]
    assert tagged.coded.codes[0].back == "<a b='d\u00ade'>"


@pytest.mark.parametrize("kind", ["html", "xml"])
@pytest.mark.parametrize("outside", ["<b>{}</b>", "<i><b>{}</b></i>", "  {}"])
def test_tags_and_spaces_around_a_message_are_preserved(tokenizers, kind, outside):
    translator = _translator(tokenizers, beam_size=1)
    message = outside.replace("{}", "{n, plural, one {ba} other {de}}")
    (line,) = translator.segment([toy.line(message, kind)])
    ((same,),) = translator.join([line], [[Hypothesis(source, -1.0)] for source in line.sources])
    assert same.text == message


@pytest.mark.parametrize(
    ("kind", "message", "parts"),
    [
        (
            None,
            "ba {n, plural, one {# de {x}} other { {g, select, other {fi}} go}} ku.",
            ["ba {m0} ku.", "# de {x}", "{m0} go", "fi"],
        ),
        ("auto", "{n, plural, one {ba <b>de</b> ku} other {ba <b>#</b> fi}}", ["{m0}", "ba de ku", "ba # fi"]),
        ("html", "{n, plural, one {ba <b>de</b> ku} other {ba <b>#</b> fi}}", ["{m0}", "ba de ku", "ba # fi"]),
    ],
)
def test_texts_of_a_message_are_translated_one_by_one(tokenizers, kind, message, parts):
    translator = _translator(tokenizers, beam_size=1)
    (line,) = translator.segment([toy.line(message, kind)])
    assert [part.text for part in line.with_parts()] == parts
    ((same,),) = translator.join([line], [[Hypothesis(source, -1.0)] for source in line.sources])
    # The model places the tags anywhere.
    assert re.sub("</?b>", "", same.text) == re.sub("</?b>", "", message)
    assert same.text.count("<b>") == same.text.count("</b>") == message.count("<b>")


@pytest.mark.parametrize("message", ["{n, plural, one {ba}", "ba {0,choice,0#ba de|1#{1,choice,0#fi go|1#ku ba}}"])
def test_a_message_that_is_not_understood_is_left_as_it_is_and_counted(tokenizers, message):
    translator = _translator(tokenizers, beam_size=1)
    assert translator.translate(["de", message])[1] == message
    assert translator.statistics.untranslated_lines == 1


def test_blank_lines_are_blank_to_a_tokenizer_that_keeps_spaces_too():
    config = TokenizerConfig(vocabulary_size=320, normalization="identity")
    tokenizer = train_tokenizer(toy.sentences(300, 1), ("xx",), config, placeholders=all_placeholders(toy.SLOTS))
    assert tokenizer.encode(["   "]) != [[]]
    assert _translator(TokenizerPair(tokenizer, tokenizer), beam_size=1).translate(["   ", "ba", "\t"])[::2] == ["", ""]


def test_half_a_surrogate_pair_is_read_as_broken_utf8_is(tokenizers):
    translator = _translator(tokenizers)
    assert translator.translate(["ba \ud83d de", "fi"]) == translator.translate(["ba \ufffd de", "fi"])
    assert translator.score(["ba"], ["de \udc00"])[0].score == translator.score(["ba"], ["de \ufffd"])[0].score


def test_learned_positions_shorten_the_parts(tokenizers):
    translator = _translator(tokenizers, LEARNED, max_source_length=500)
    (line,) = translator.segment([toy.line("ba de " * 100)])
    assert all(len(pieces) <= 39 for pieces in line.sources)
    assert len(translator.translate(["ba de " * 100])) == 1


@both_models
def test_scores_of_given_translations_do_not_depend_on_the_batch(tokenizers, config):
    lines, references = toy.sentences(12, 5), toy.sentences(12, 6)
    together = _translator(tokenizers, config, length_penalty=0.7).score(lines, references)
    translator = _translator(tokenizers, config, length_penalty=0.7, batch_tokens=1)
    assert [one.text for one in together] == references
    for line, reference, one in zip(lines, references, together, strict=True):
        assert translator.score([line], [reference])[0].score == pytest.approx(one.score, abs=1e-5)
        targets = tokenizers.target.encode([reference])
        (total,) = forced_log_probabilities(translator.model, tokenizers.source.encode([line]), targets)
        assert one.score == pytest.approx(total / (len(targets[0]) + 1) ** 0.7, abs=1e-5)


def test_what_cannot_be_scored_is_null(tokenizers):
    scored = _translator(tokenizers).score(["ba", "", "fi", "go " * 100], ["de", "go", "", "ku"])
    assert [one.score is None for one in scored] == [False, True, True, True]


@pytest.mark.parametrize(("config", "heads"), [(TRANSFORMER, 2), (RNN, 1)], ids=["transformer", "rnn"])
def test_attention_is_over_the_pieces_it_names(tokenizers, config, heads):
    seen = _translator(tokenizers, config).attention("ba 7 de fi", "go ku 7")
    (weights,) = seen.cross_attention()
    assert weights.shape == (heads, len(seen.target_tokens), len(seen.source_tokens))
    assert torch.allclose(weights.sum(dim=-1), torch.ones(heads, len(seen.target_tokens)), atol=1e-5)
    scores = next(seen.maps[name].scores[0] for name in seen.maps if name.endswith("cross_attention"))
    assert torch.allclose(scores.softmax(dim=-1), weights, atol=1e-5)
    assert seen.source_tokens[-1] == "</s>" and seen.target_tokens[-2] == "⟨1⟩" in seen.source_tokens


def test_translating_leaves_the_model_as_it_was(tokenizers):
    translator = _translator(tokenizers)
    translator.model.train()
    translator.translate(["ba"])
    translator.score(["ba"], ["de"])
    translator.attention("ba", "de")
    assert translator.model.training


def test_one_string_is_not_taken_for_many_lines(tokenizers):
    translator = _translator(tokenizers)
    for call in (translator.translate, translator.hypotheses, lambda text: translator.score(text, text)):
        with pytest.raises(TypeError, match="list of lines"):
            call("ba de")
    for call in (translator.translate, lambda lines: translator.score(lines, ["ba", "de"])):
        with pytest.raises(TypeError, match="element 1 of the list of lines is None"):
            call(["ba", None])
    with pytest.raises(TypeError, match="element 0 of the list of lines is None"):
        translator.score(["ba"], [None])
    with pytest.raises(ValueError, match="2 lines but 1 references"):
        translator.score(["ba", "de"], ["fi"])


def test_windows_bound_lines_and_characters():
    assert [len(window) for window in windows(str(n) for n in range(10_000))] == [4096, 4096, 1808]
    assert [len(window) for window in windows(["x" * 1_500_000] * 5)] == [2, 2, 1]
    assert list(windows(["a", "b"], one_by_one=True)) == [["a"], ["b"]]
    assert list(windows([])) == []


def test_a_search_keeps_to_the_batch_budget_and_looks_up_before_each_step(tokenizers):
    translator = _translator(tokenizers, beam_size=2, batch_tokens=60)
    sources = tokenizers.source.encode(toy.sentences(12, 8))
    sizes, steps, search = [], [], translator.engine.search

    def watched(request):
        sizes.append(2 * len(request.sources) * (max(map(len, request.sources)) + 1))
        return search(request)

    translator.engine.search = watched
    request = SearchRequest(sources, [()] * len(sources))
    found = translator.search(replace(request, before_step=lambda: steps.append(None)))
    assert found == translator.search(request)
    assert len(sizes) > 1 and max(sizes) <= 60 and len(steps) >= len(sizes)


@pytest.mark.parametrize("setting", [{"correct_typos": True}, {"unrepaired": "translation"}])
def test_settings_of_the_text_layer_are_refused_without_one(setting):
    def trained(enabled):
        rules = TextLayerDescription(enabled=enabled)
        description = ModelDescription.model_construct(text=rules, decoding=DecodingConfig())
        return TrainedModel(description, None, None, None)

    (key,) = setting
    with pytest.raises(InputError, match=rf"decoding\.{key}=\w+ needs a text layer.*: leave decoding\.{key} out"):
        trained(enabled=False).resolve_decoding(DecodingChoice(**setting), "runs/plain")
    assert getattr(trained(enabled=True).resolve_decoding(DecodingChoice(**setting), "runs/plain"), key) == setting[key]
    assert trained(enabled=False).resolve_decoding(DecodingChoice(), "runs/plain") == DecodingConfig()
