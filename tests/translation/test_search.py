"""Beam search, greedy search and sampling, compared with brute force on a tiny vocabulary."""

import copy
import itertools
import math
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from mt.config import DecodingConfig, RNNAttentionConfig, TransformerConfig
from mt.core.errors import RunError
from mt.data.batching.batch import collate
from mt.models.attention import record_attention
from mt.models.rnn import RNNAttention
from mt.models.seq2seq import Ensemble
from mt.models.transformer import Transformer
from mt.tokenizer.tokenizer import BOS, EOS, PAD
from mt.translation.engine import SearchRequest
from mt.translation.hypotheses import (
    MAX_PERIOD,
    Hypothesis,
    LoopConstraint,
    TokenConstraint,
    forced_log_probabilities,
    max_repeats,
)
from mt.translation.torch_engine import BLOCK_SIZE, TorchEngine, blockwise_topk, inverse_transform_sample

VOCABULARY_SIZE = 7  # PAD, UNK, BOS, EOS and three words
WORDS = (4, 5, 6)
KEYS = [(0,), (1,), (2,), (3,)]
SOURCES = [[4, 5, 6, 4], [5], [6, 6], [4, 6, 5]]


TRANSFORMER = TransformerConfig(
    architecture="transformer",
    width=8,
    feed_forward=16,
    heads=2,
    encoder_layers=1,
    decoder_layers=1,
    tie_embeddings=False,
)
RNN = RNNAttentionConfig(architecture="rnn_attention", width=8, hidden=10, decoder_layers=2, tie_embeddings=False)


LEARNED = TRANSFORMER.model_copy(update={"positions": "learned", "max_positions": 12})


def _model(config, seed=5):
    torch.manual_seed(seed)
    architecture = RNNAttention if config is RNN else Transformer
    model = architecture(config, VOCABULARY_SIZE, VOCABULARY_SIZE, joint_vocabulary=True).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(2.5)  # far from uniform, so that rounding does not change the order of hypotheses
        model.output_weight[EOS].mul_(0.5)
    return model


@pytest.fixture(scope="module", params=["transformer", "rnn", "ensemble"])
def model(request):
    match request.param:
        case "transformer":
            return _model(TRANSFORMER)
        case "rnn":
            return _model(RNN)
        case "ensemble":
            return Ensemble([_model(TRANSFORMER), _model(RNN, seed=6), _model(TRANSFORMER, seed=7)]).eval()


def search(model, sources, config, keys, before_step=lambda: None, constraints=()):
    request = SearchRequest(sources, keys, before_step=before_step, constraints=constraints)
    return TorchEngine(model, config).search(request)


def _source(sources):
    return collate(sources, [[]] * len(sources)).source


def _forced(model, source, tokens):
    return forced_log_probabilities(model, [source], [tokens])[0]


def _step_by_step(model, source, tokens):
    """Return log P by the chain rule. The probability of an ensemble is the mean of those of its members."""
    members = model.members if isinstance(model, Ensemble) else [model]
    total = 0.0
    for t, token in enumerate([*tokens, EOS]):
        prefix = torch.tensor([[BOS, *tokens[:t]]])
        logits = [member.project(member.decode(member.encode(_source([source])), prefix))[0, -1] for member in members]
        total += math.log(sum(each.softmax(dim=-1)[token].item() for each in logits) / len(members))
    return total


SEARCHES = [
    DecodingConfig(beam_size=1),
    DecodingConfig(beam_size=4, n_best=4),
    DecodingConfig(method="sample", n_best=3, temperature=2.0),
]


def _settings(config):
    return " ".join(f"{key}={value}" for key, value in config.model_dump(exclude_defaults=True).items())


NO_FIVE_ONE_SIX = TokenConstraint(excluded=torch.tensor([5]), unrepeatable=torch.tensor([6]))
CONSTRAINTS = [(NO_FIVE_ONE_SIX,), (LoopConstraint(2),), (), (NO_FIVE_ONE_SIX, LoopConstraint(1))]
IS_ALLOWED = [
    lambda tokens: 5 not in tokens and tokens.count(6) <= 1,
    lambda tokens: max_repeats(tokens) <= 2,
    lambda tokens: True,
    lambda tokens: 5 not in tokens and tokens.count(6) <= 1 and max_repeats(tokens) == 1,
]
"""Whether each source's constraints allow a hypothesis."""


@pytest.mark.parametrize(("length_penalty", "constraints"), [(0.0, ()), (0.6, ()), (1.0, ()), (0.6, CONSTRAINTS)])
def test_beam_search_finds_best_allowed_hypotheses(model, length_penalty, constraints):
    max_length, beam_size = (5, 800) if constraints else (4, 200)
    limits = {"max_length_ratio": 1e-9, "max_length_extra": max_length}
    config = DecodingConfig(beam_size=beam_size, n_best=5, length_penalty=length_penalty, **limits)
    results = search(model, SOURCES, config, KEYS, constraints=constraints)
    everything = [
        list(tokens) for length in range(max_length + 1) for tokens in itertools.product(WORDS, repeat=length)
    ]
    for source, hypotheses, is_allowed in zip(SOURCES, results, IS_ALLOWED, strict=True):
        allowed = [tokens for tokens in everything if not constraints or is_allowed(tokens)]
        scored = list(map(Hypothesis, allowed, forced_log_probabilities(model, [source] * len(allowed), allowed)))
        scored.sort(key=lambda hypothesis: -hypothesis.score(length_penalty))
        assert [hypothesis.tokens for hypothesis in hypotheses] == [best.tokens for best in scored[:5]]
        scores = [hypothesis.score(length_penalty) for hypothesis in hypotheses]
        assert scores == pytest.approx([best.score(length_penalty) for best in scored[:5]], abs=1e-4)


@pytest.mark.parametrize(
    ("text", "expected"), [("xabababy", 3), ("abcabxabc", 1), ("abcdefghijkl" * 3, 3), ("abcdefghijklm" * 3, 1)]
)
def test_max_repeats_of_examples(text, expected):
    assert max_repeats(text) == expected


@given(st.text("abc", max_size=40))
def test_max_repeats_equals_brute_force(text):
    sequences = {text[start : start + period] for start in range(len(text)) for period in range(1, MAX_PERIOD + 1)}
    repeats = [n for sequence in sequences for n in range(1, len(text) // len(sequence) + 1) if sequence * n in text]
    assert max_repeats(text) == max(repeats, default=1)


@pytest.mark.parametrize(("source", "tokens"), [([4, 5, 6, 4], [4, 5]), ([5], [6, 6, 6, 4]), ([6, 6], [])])
def test_forced_log_probabilities_follow_chain_rule(model, source, tokens):
    assert _forced(model, source, tokens) == pytest.approx(_step_by_step(model, source, tokens), abs=1e-4)


@pytest.mark.parametrize(
    "config",
    [
        *SEARCHES,
        DecodingConfig(method="sample", n_best=3, top_k=2, temperature=0.7),
        DecodingConfig(method="sample", n_best=3, top_p=0.6),
    ],
    ids=_settings,
)
def test_hypotheses_have_forced_scores_and_respect_limits(model, config):
    for source, hypotheses in zip(SOURCES, search(model, SOURCES, config, KEYS), strict=True):
        assert 1 <= len(hypotheses) <= config.n_best
        scores = [hypothesis.score(1.0) for hypothesis in hypotheses]
        assert scores == sorted(scores, reverse=True)
        for hypothesis in hypotheses:
            assert hypothesis.log_probability == pytest.approx(_forced(model, source, hypothesis.tokens), abs=1e-4)
            assert len(hypothesis.tokens) <= 2 * len(source) + 20
            assert not {PAD, BOS, EOS} & set(hypothesis.tokens)


@pytest.mark.parametrize("constraints", [(), CONSTRAINTS], ids=["unconstrained", "constrained"])
@pytest.mark.parametrize("config", SEARCHES, ids=_settings)
def test_search_does_not_depend_on_batch(model, config, constraints):
    keys = [(10,), (11,), (12, 0), (12, 1)]
    together = search(model, SOURCES, config, keys, constraints=constraints)
    for n, (source, hypotheses) in enumerate(zip(SOURCES, together, strict=True)):
        (alone,) = search(model, [source], config, keys[n : n + 1], constraints=constraints[n : n + 1])
        tokens, log_probabilities = zip(*alone, strict=True)
        assert list(tokens) == [hypothesis.tokens for hypothesis in hypotheses]
        expected = [hypothesis.log_probability for hypothesis in hypotheses]
        assert log_probabilities == pytest.approx(expected, abs=1e-4)
        assert not constraints or all(map(IS_ALLOWED[n], tokens))


def test_sampling_follows_model_distribution(model):
    """The first tokens of many draws are compared with the softmax by a chi-squared statistic."""
    draws = 4000
    config = DecodingConfig(method="sample", n_best=draws, max_length_extra=1, max_length_ratio=1e-9)
    (hypotheses,) = search(model, SOURCES[:1], config, [(0,)])
    features = model.decode(model.encode(_source(SOURCES[:1])), torch.tensor([[BOS]]))
    logits = model.log_probabilities(features)[0, 0].detach()
    logits[[0, 1, 2]] = -torch.inf
    expected = (logits.softmax(dim=-1) * draws).tolist()
    counts = Counter((hypothesis.tokens or [EOS])[0] for hypothesis in hypotheses)
    statistic = sum((counts[token] - expected[token]) ** 2 / expected[token] for token in (EOS, *WORDS))
    assert statistic < 16.3  # the 99.9th percentile at 3 degrees of freedom; the draws are keyed, so they never change


@pytest.mark.parametrize("sampling", [{"top_k": 1}, {"top_p": 1e-9}, {"temperature": 1e-40}], ids=str)
def test_sampling_from_narrow_distribution_is_greedy(model, sampling):
    greedy = search(model, SOURCES, DecodingConfig(beam_size=1), KEYS)
    sampled = search(model, SOURCES, DecodingConfig(method="sample", **sampling), KEYS)
    assert [best.tokens for (best,) in sampled] == [best.tokens for (best,) in greedy]


def test_sampling_depends_on_seed_and_key(model):
    def draw(seed, key):
        config = DecodingConfig(method="sample", n_best=8, seed=seed, temperature=2.0)
        return sorted(hypothesis.tokens for hypothesis in search(model, SOURCES[:1], config, [(key,)])[0])

    assert draw(1, 0) == draw(1, 0)
    assert draw(1, 0) != draw(2, 0)
    assert draw(1, 0) != draw(1, 1)


@pytest.mark.parametrize("config", SEARCHES, ids=_settings)
def test_search_rejects_scores_that_are_not_finite(model, config):
    broken = copy.deepcopy(model)
    with torch.no_grad():
        next(broken.parameters()).fill_(torch.nan)
    with pytest.raises(RunError, match="not finite"):
        search(broken, SOURCES, config, KEYS)


@pytest.mark.parametrize("config", SEARCHES, ids=_settings)
@pytest.mark.parametrize("copies", [2, 3])
def test_ensemble_of_copies_equals_the_model(config, copies):
    model = _model(RNN)
    ensemble = Ensemble([model] * copies).eval()
    assert search(ensemble, SOURCES, config, KEYS) == search(model, SOURCES, config, KEYS)


def test_ensemble_mean_does_not_underflow():
    members = [_model(TRANSFORMER), _model(TRANSFORMER, seed=6)]
    with torch.no_grad():
        for model in members:
            model.output_weight.mul_(1e3)
    features = torch.full((1, TRANSFORMER.width), 1e3)
    log_p = Ensemble(members).log_probabilities([features] * 2)
    highest = torch.stack([model.log_probabilities(features) for model in members]).amax(0)
    assert highest.min() < -1000
    assert (log_p <= highest).all() and (log_p >= highest - 1).all()


def test_ensemble_max_length_is_smallest_of_members():
    ensemble = Ensemble([_model(TRANSFORMER), _model(LEARNED)]).eval()
    assert ensemble.max_length == 12
    for (best,) in search(ensemble, SOURCES, DecodingConfig(beam_size=1), KEYS):
        assert len(best.tokens) < 12
    assert Ensemble([_model(TRANSFORMER)]).max_length is None


@pytest.mark.parametrize(("top_k", "top_p"), [(0, 1.0), (2, 1.0), (0, 0.99)])
@pytest.mark.parametrize("uniform", [0.0, 1.0])
def test_inverse_transform_sample_never_draws_impossible_tokens(uniform, top_k, top_p):
    logits = torch.tensor([[-torch.inf, 1.0, 0.5, -torch.inf]])
    assert inverse_transform_sample(logits, torch.tensor([uniform]), top_k, top_p).item() in (1, 2)


def test_inverse_transform_sample_ignores_order_of_nearly_equal_logits():
    logits = torch.tensor([[0.0, 0.0, 0.0, 0.0], [0.0, 1e-6, 0.0, 2e-6]])
    assert inverse_transform_sample(logits, torch.tensor([0.3, 0.3]), 0, 1.0).tolist() == [1, 1]


@given(st.integers(1, 12 * BLOCK_SIZE), st.integers(1, 10), st.integers(0, 10**6), st.booleans())
def test_blockwise_topk_equals_topk(elements, count, seed, with_ties):
    x = torch.randn(3, elements, generator=torch.Generator().manual_seed(seed))
    if with_ties:
        x = x.round()
    x[:, 0] = -torch.inf
    values, indices = blockwise_topk(x, min(count, elements))
    assert torch.equal(values, x.topk(min(count, elements)).values)
    assert torch.equal(x.gather(1, indices), values)
    assert all(len(set(row)) == len(row) for row in indices.tolist())


@pytest.mark.parametrize(
    "decoding", [{"beam_size": 1}, {"beam_size": 3}, {"method": "sample", "beam_size": 3}], ids=str
)
def test_search_in_before_step_changes_nothing(model, decoding):
    config = DecodingConfig(max_length_extra=6, **decoding)
    expected = search(model, SOURCES, config, KEYS)
    inner = []

    def before_step():
        inner.append(search(model, SOURCES[:2], config, KEYS[:2]))

    assert search(model, SOURCES, config, KEYS, before_step) == expected
    assert len(inner) >= max(len(hypotheses[0].tokens) for hypotheses in expected)
    assert all(results == inner[0] for results in inner)


def test_record_attention_ignores_other_threads():
    model = _model(TRANSFORMER)
    source = _source(SOURCES)
    with ThreadPoolExecutor(1) as pool, record_attention(model) as maps:
        pool.submit(model.encode, source).result()
        model.encode(source[:1])
    assert [recorded.weights.shape[0] for recorded in maps["encoder.layers.0.self_attention"]] == [1]
    assert all(len(recorded) <= 1 for recorded in maps.values())
