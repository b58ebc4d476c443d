"""Quality estimation: the confidence of translations and its features."""

import math

import pytest

from mt.config import DecodingChoice
from mt.core.errors import InputError
from mt.metrics.metric import Chrf
from mt.storage.folders import read_description
from mt.storage.model_description import ConfidenceConfig
from mt.storage.model_folder import write_description
from mt.text.glossary import term_finder
from mt.text.placeholders import PLACEHOLDER
from mt.translation.confidence import Features
from mt.translation.hypotheses import Hypothesis
from mt.translation.results import ScoredText
from mt.translation.translator import Translator
from tests import toy
from tests.releases import FIXTURES

LINES = [
    "ba de fi go",
    "",
    "  ",
    "ku la https://example.org/7 mo",
    "ba 12,50. De fi go. Ku la!",
    "12",
    "fi go fi la su",
]
FITTED = ConfidenceConfig(intercept=0.3, score=2.0, agreement=1.5, length_ratio=-0.5, token_length=0.25, repaired=-1.0)


@pytest.fixture(scope="module")
def run(shared_runs, tmp_path_factory):
    """A model whose confidence has given coefficients."""
    run = toy.copy_to_change(shared_runs["transformer-1"], tmp_path_factory.mktemp("confidence") / "run")
    write_description(run, read_description(run).model_copy(update={"confidence": FITTED}))
    return run


@pytest.fixture(scope="module")
def translator(run):
    return Translator.load(run)


@pytest.fixture(scope="module")
def with_fitted():
    """A model that reverses the order of words, with a confidence that training fitted."""
    return Translator.load(FIXTURES / "rnn", device="cpu")


def test_confident_translations_are_unchanged_and_have_a_probability(translator):
    confident = [best for (best,) in translator.hypotheses(LINES, confident=True)]
    assert [best.text for best in confident] == translator.translate(LINES)
    assert [best.confidence is None for best in confident] == [False, True, True, False, False, True, False]
    assert all(0 <= best.confidence <= 1 for best in confident if best.confidence is not None)
    assert all(best.confidence is None for (best,) in translator.hypotheses(LINES))


def test_only_best_of_n_best_has_confidence(run, translator):
    several = Translator.load(run, DecodingChoice(n_best=2)).hypotheses(LINES[:1], aligned=True, confident=True)[0]
    ((alone,),) = translator.hypotheses(LINES[:1], confident=True)  # estimated from all hypotheses, too
    assert [text.confidence for text in several] == [alone.confidence, None] and several[1].alignment is not None


def test_features_average_sources_by_length(run):
    translator = Translator.load(run, DecodingChoice(max_source_length=4))
    lines = translator.segment([toy.line("ba de fi go ku la")])
    first, second = translator.tokenizers.source.decode(lines[0].sources)
    encode = translator.tokenizers.target.encode
    hypotheses = [
        [Hypothesis(tokens, -float(rank)) for rank, tokens in enumerate(encode(texts), 1)]
        for texts in (["ba de", "ba fi"], ["go ku la", "go ku"])
    ]
    (features,) = translator.confidence.features(lines, hypotheses)
    lengths = [n_best[0].length for n_best in hypotheses]
    agreements = Chrf("yy").segment_scores(["ba de", "go ku la"], ["ba fi", "go ku"])
    characters = len("ba de") + len("go ku la") + 1
    weighted = sum(length * agreement / 100 for length, agreement in zip(lengths, agreements, strict=True))
    assert features.score == pytest.approx(-2 / sum(lengths))
    assert features.agreement == pytest.approx(weighted / sum(lengths))
    assert features.length_ratio == pytest.approx(math.log(characters / (len(first) + len(second) + 1)))
    assert features.token_length == pytest.approx(math.log(characters / sum(lengths)))
    assert features.repaired == 0


@pytest.mark.parametrize(
    ("line", "markup"),
    [
        ("ze wa vo", None),
        ("ne ku. ze wa vo.", None),
        ("<p>ze wa vo</p><p>ne ku</p>", "html"),
        ("{n, plural, one {ze wa vo} other {ne ku}}", None),
        ("ne {n, plural, one {wa vo} other {ne ku}}", None),
    ],
)
def test_line_with_inserted_term_has_no_confidence(with_fitted, line, markup):
    """The confidence is only valid for text of the model."""

    def best(form: str) -> ScoredText:
        ((text,),) = with_fitted.hypotheses(
            [toy.line(line, markup, confident=True, terms=term_finder([["wa", form]], with_fitted.layer))]
        )
        return text

    own, same, chosen, inserted = map(best, ("wa", "WA", "zuzu|wa", "zuzu"))
    assert own.confidence is not None and not own.has_inserted_term
    assert same == own and chosen == own
    assert "zuzu" in inserted.text and inserted.confidence is None and inserted.has_inserted_term


def test_glossary_term_replaces_untranslated_name(with_fitted):
    ((inserted,),) = with_fitted.hypotheses(["Wa ze vo"], confident=True, glossary=[["Wa", "Zuzu"]])
    assert "Zuzu" in inserted.text and inserted.confidence is None


def test_line_with_sentence_of_term_has_no_confidence(with_fitted):
    translated = with_fitted.hypotheses(["ne ku. wa. ze", "ne ku. 12. ze"], confident=True, glossary=[["wa", "wa"]])
    assert [best.confidence is None for (best,) in translated] == [True, False]


def test_untranslated_line_has_no_confidence(translator):
    lines = translator.segment([toy.line("ba de", confident=True)])
    hypotheses = [[Hypothesis(translator.tokenizers.target.encode(["de"])[0], -1.0)]]
    translated, kept = (
        translator.confidence.with_confidence([[ScoredText("ba de", -1.0, is_source=is_source)]], lines, hypotheses)[0][
            0
        ]
        for is_source in (False, True)
    )
    assert translated.confidence is not None and kept.confidence is None


@pytest.mark.parametrize(
    ("text", "expected"), [("de {1} {0} ba", 0), ("de {0}", 1), ("{0} {0} {1}", 1), ("", 2)], ids=str
)
def test_repaired_counts_missing_and_surplus_placeholders(translator, text, expected):
    (line,) = translator.segment([toy.line("ba https://example.org/7 de https://example.org/8")])
    placeholders = PLACEHOLDER.findall(line.segments[0].source)
    (tokens,) = translator.tokenizers.target.encode([text.format(*placeholders)])
    assert translator.confidence.features([line], [[Hypothesis(tokens, -1.0)]])[0].repaired == expected


def test_confidence_is_logistic_function_of_features():
    log_odds = 0.3 + 2.0 * -0.5 + 1.5 * 0.8 - 0.5 * 0.1 + 0.25 * 1.2 - 1.0 * 1
    features = Features(score=-0.5, agreement=0.8, length_ratio=0.1, token_length=1.2, repaired=1)
    assert features.confidence(FITTED) == pytest.approx(1 / (1 + math.exp(-log_odds)), abs=1e-4)
    assert set(ConfidenceConfig.model_fields) == {"intercept", *Features._fields}


def test_confidence_averages_texts_of_html_and_messages(run):
    translator = Translator.load(run, DecodingChoice(markup="html"))
    texts = ["ba de fi", "fi go fi la su"]
    first, second = (translator.hypotheses([text], confident=True)[0][0].confidence for text in texts)
    lines = ["<p>{}</p><p>{}</p><p>12</p>".format(*texts), "{{n, select, a {{{}}} other {{{}}}}}".format(*texts)]
    page, message = (best.confidence for (best,) in translator.hypotheses(lines, confident=True))
    assert page == message and min(first, second) < page < max(first, second)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"beam_size": 3}, "fitted for decoding.beam_size=2, not 3: leave decoding.beam_size out"),
        ({"method": "sample"}, "fitted for decoding.method=beam, not sample"),
        ({"length_penalty": 0.5}, "fitted for decoding.length_penalty=1.0, not 0.5"),
    ],
)
def test_confidence_rejects_search_that_it_is_not_fitted_for(run, changes, expected):
    translator = Translator.load(run, DecodingChoice(**changes))
    with pytest.raises(InputError, match=expected):
        translator.hypotheses(["ba"], confident=True)
    assert translator.translate(["ba"])


def test_missing_confidence_is_reported_with_reason(run, shared_runs):
    with pytest.raises(InputError, match="model.yaml: confidence is null.*its validation set has too few pairs"):
        Translator.load(shared_runs["transformer-1"]).hypotheses(["ba"], confident=True)
    with pytest.raises(InputError, match="this is an ensemble: give one run"):
        Translator.load([run, run]).hypotheses(["ba"], confident=True)
