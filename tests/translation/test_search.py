"""Search against brute force on a tiny vocabulary, and the promises that hold for every way of searching."""

import copy
import itertools
import math
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from hypothesis import example, given
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

VOCABULARY = 7  # PAD, UNK, BOS, EOS and three words
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
    model = architecture(config, VOCABULARY, VOCABULARY, joint_vocabulary=True).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(2.5)  # far from uniform, so that the order of hypotheses is not a matter of rounding
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


def _forced(model, source, pieces):
    return forced_log_probabilities(model, [source], [pieces])[0]


def _step_by_step(model, source, pieces):
    """log P by the chain rule, straight from the definition. The P of an ensemble is the mean of its members'."""
    members = model.members if isinstance(model, Ensemble) else [model]
    total = 0.0
    for t, piece in enumerate([*pieces, EOS]):
        seen = _source([source]), torch.tensor([[BOS, *pieces[:t]]])
        logits = [one.project(one.decode(one.encode(seen[0]), seen[1]))[0, -1] for one in members]
        total += math.log(sum(one.softmax(dim=-1)[piece].item() for one in logits) / len(members))
    return total


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
def test_a_wide_beam_finds_the_best_of_all_that_constraints_allow(model, length_penalty, constraints):
    longest, beam_size = (5, 800) if constraints else (4, 200)
    limits = {"max_length_ratio": 1e-9, "max_length_extra": longest}
    config = DecodingConfig(beam_size=beam_size, n_best=5, length_penalty=length_penalty, **limits)
    found = search(model, SOURCES, config, KEYS, constraints=constraints)
    everything = [list(tokens) for length in range(longest + 1) for tokens in itertools.product(WORDS, repeat=length)]
    for source, hypotheses, is_allowed in zip(SOURCES, found, IS_ALLOWED, strict=True):
        allowed = [tokens for tokens in everything if not constraints or is_allowed(tokens)]
        totals = forced_log_probabilities(model, [source] * len(allowed), allowed)
        scored = sorted(
            (Hypothesis(tokens, total) for tokens, total in zip(allowed, totals, strict=True)),
            key=lambda hypothesis: -hypothesis.score(length_penalty),
        )
        assert [hypothesis.tokens for hypothesis in hypotheses] == [best.tokens for best in scored[:5]]
        for hypothesis, best in zip(hypotheses, scored, strict=False):
            assert hypothesis.score(length_penalty) == pytest.approx(best.score(length_penalty), abs=1e-4)


@given(st.text("abc", max_size=40))
@example("xabababy")
@example("abcabxabc")
@example("abcdefghijkl" * 3)
@example("abcdefghijklm" * 3)
def test_max_repeats_is_what_brute_force_finds(text):
    most = 1
    for start in range(len(text)):
        for period in range(1, MAX_PERIOD + 1):
            times, repeated = 1, text[start : start + period]
            while len(repeated) == period and text.startswith(repeated, start + times * period):
                times += 1
            most = max(most, times)
    assert max_repeats(text) == most


def test_forced_scores_follow_the_chain_rule(model):
    for source, pieces in ((SOURCES[0], [4, 5]), (SOURCES[1], [6, 6, 6, 4]), (SOURCES[2], [])):
        assert _forced(model, source, pieces) == pytest.approx(_step_by_step(model, source, pieces), abs=1e-4)


@pytest.mark.parametrize(
    "config",
    [
        DecodingConfig(beam_size=1),
        DecodingConfig(beam_size=2, n_best=2),
        DecodingConfig(beam_size=5, n_best=5),
        DecodingConfig(method="sample", n_best=3),
        DecodingConfig(method="sample", n_best=3, top_k=2, temperature=0.7),
        DecodingConfig(method="sample", n_best=3, top_p=0.6),
    ],
    ids=str,
)
def test_every_hypothesis_has_its_forced_score_and_keeps_its_limit(model, config):
    for source, hypotheses in zip(SOURCES, search(model, SOURCES, config, KEYS), strict=True):
        assert 1 <= len(hypotheses) <= config.n_best
        scores = [hypothesis.score(1.0) for hypothesis in hypotheses]
        assert scores == sorted(scores, reverse=True)
        for hypothesis in hypotheses:
            assert hypothesis.log_probability == pytest.approx(_forced(model, source, hypothesis.tokens), abs=1e-4)
            assert len(hypothesis.tokens) <= 2 * len(source) + 20
            assert not {PAD, BOS, EOS} & set(hypothesis.tokens)


@pytest.mark.parametrize("constraints", [(), CONSTRAINTS])
@pytest.mark.parametrize(
    "config",
    [
        DecodingConfig(beam_size=1),
        DecodingConfig(beam_size=4, n_best=4),
        DecodingConfig(method="sample", n_best=3, temperature=2.0),
    ],
    ids=str,
)
def test_the_batch_around_a_sentence_changes_nothing_and_its_constraints_are_its_own(model, config, constraints):
    keys = [(10,), (11,), (12, 0), (12, 1)]
    together = search(model, SOURCES, config, keys, constraints=constraints)
    for n, (source, hypotheses) in enumerate(zip(SOURCES, together, strict=True)):
        (alone,) = search(model, [source], config, keys[n : n + 1], constraints=constraints[n : n + 1])
        assert [h.tokens for h in alone] == [h.tokens for h in hypotheses]
        for one, other in zip(alone, hypotheses, strict=True):
            assert not constraints or IS_ALLOWED[n](other.tokens)
            assert one.log_probability == pytest.approx(other.log_probability, abs=1e-4)
            assert one.log_probability == pytest.approx(_forced(model, source, one.tokens), abs=1e-4)


def test_greedy_takes_the_likeliest_piece_each_time(model):
    config = DecodingConfig(beam_size=1, max_length_extra=6, max_length_ratio=1e-9)
    for source, (hypothesis,) in zip(SOURCES, search(model, SOURCES, config, KEYS), strict=True):
        prefix: list[int] = []
        while len(prefix) < 6:
            features = model.decode(model.encode(_source([source])), torch.tensor([[BOS, *prefix]]))
            logits = model.log_probabilities(features)[0, -1]
            best = max((EOS, *WORDS), key=lambda piece: logits[piece].item())
            if best == EOS:
                break
            prefix.append(best)
        assert hypothesis.tokens == prefix


def test_samples_follow_the_models_distribution(model):
    """First pieces of many draws against the softmax, by a chi-squared statistic."""
    draws = 4000
    config = DecodingConfig(method="sample", n_best=draws, max_length_extra=1, max_length_ratio=1e-9)
    (found,) = search(model, SOURCES[:1], config, [(0,)])
    features = model.decode(model.encode(_source(SOURCES[:1])), torch.tensor([[BOS]]))
    logits = model.log_probabilities(features)[0, 0].detach()
    logits[[0, 1, 2]] = -torch.inf
    expected = logits.softmax(dim=-1) * draws
    firsts = [(hypothesis.tokens or [EOS])[0] for hypothesis in found]
    statistic = sum(
        (firsts.count(piece) - expected[piece].item()) ** 2 / expected[piece].item() for piece in (EOS, *WORDS)
    )
    assert statistic < 16.3  # the 99.9th percentile at 3 degrees of freedom; the draw is keyed, so it never changes


@pytest.mark.parametrize("sampling", [{"top_k": 1}, {"top_p": 1e-9}, {"temperature": 1e-40}], ids=str)
def test_sampling_from_next_to_nothing_is_greedy(model, sampling):
    greedy = search(model, SOURCES, DecodingConfig(beam_size=1), KEYS)
    sampled = search(model, SOURCES, DecodingConfig(method="sample", **sampling), KEYS)
    assert [h[0].tokens for h in sampled] == [h[0].tokens for h in greedy]


def test_another_seed_or_line_draws_anew(model):
    def pieces(seed, line):
        config = DecodingConfig(method="sample", n_best=8, seed=seed, temperature=2.0)
        return sorted(h.tokens for h in search(model, SOURCES[:1], config, [(line,)])[0])

    assert pieces(1, 0) == pieces(1, 0)
    assert pieces(1, 0) != pieces(2, 0)
    assert pieces(1, 0) != pieces(1, 1)


@pytest.mark.parametrize("config", [DecodingConfig(), DecodingConfig(beam_size=1), DecodingConfig(method="sample")])
def test_scores_that_are_no_numbers_are_reported(model, config):
    broken = copy.deepcopy(model)
    with torch.no_grad():
        next(broken.parameters()).fill_(torch.nan)
    with pytest.raises(RunError, match="not finite"):
        search(broken, SOURCES, config, KEYS)


@pytest.mark.parametrize(
    "config",
    [DecodingConfig(beam_size=1), DecodingConfig(beam_size=4, n_best=4), DecodingConfig(method="sample", n_best=3)],
    ids=str,
)
@pytest.mark.parametrize("copies", [2, 3])
def test_copies_of_one_model_search_and_score_exactly_as_that_model(config, copies):
    one = _model(RNN)
    several = Ensemble([one] * copies).eval()
    found = search(one, SOURCES, config, KEYS)
    assert search(several, SOURCES, config, KEYS) == found
    for source, hypotheses in zip(SOURCES, found, strict=True):
        assert _forced(several, source, hypotheses[0].tokens) == _forced(one, source, hypotheses[0].tokens)


def test_an_ensemble_gives_each_piece_the_mean_of_the_probabilities():
    members = [_model(TRANSFORMER), _model(RNN, seed=6), _model(TRANSFORMER, seed=7)]
    target = torch.tensor([[BOS, 4, 5]] * len(SOURCES))

    def log_probabilities(model):
        return model.log_probabilities(model.decode(model.encode(_source(SOURCES)), target)).detach()

    mean = torch.stack([log_probabilities(model).double().exp() for model in members]).mean(dim=0)
    torch.testing.assert_close(log_probabilities(Ensemble(members)).double().exp(), mean, rtol=1e-5, atol=1e-7)


def test_the_mean_does_not_underflow():
    members = [_model(TRANSFORMER), _model(TRANSFORMER, seed=6)]
    with torch.no_grad():
        for model in members:
            model.output_weight.mul_(1e3)
    features = [torch.full((1, TRANSFORMER.width), 1e3)] * 2
    log_p = Ensemble(members).log_probabilities(features)
    highest = torch.stack([model.log_probabilities(one) for model, one in zip(members, features, strict=True)]).amax(0)
    assert highest.min() < -1000
    assert (log_p <= highest).all() and (log_p >= highest - 1).all()


def test_an_ensemble_keeps_to_the_fewest_positions_of_its_members():
    several = Ensemble([_model(TRANSFORMER), _model(LEARNED)]).eval()
    assert several.max_length == 12
    for (best,) in search(several, SOURCES, DecodingConfig(beam_size=1), KEYS):
        assert len(best.tokens) < 12
    assert Ensemble([_model(TRANSFORMER)]).max_length is None


def test_rounding_never_draws_what_is_impossible():
    logits = torch.tensor([[-torch.inf, 1.0, 0.5, -torch.inf]])
    for uniform in (0.0, 1.0):
        for top_k, top_p in ((0, 1.0), (2, 1.0), (0, 0.99)):
            assert inverse_transform_sample(logits, torch.tensor([uniform]), top_k, top_p).item() in (1, 2)


def test_draws_do_not_depend_on_the_order_of_nearly_equal_logits():
    logits = torch.tensor([[0.0, 0.0, 0.0, 0.0], [0.0, 1e-6, 0.0, 2e-6]])
    assert inverse_transform_sample(logits, torch.tensor([0.3, 0.3]), 0, 1.0).tolist() == [1, 1]


@given(st.integers(1, 12 * BLOCK_SIZE), st.integers(1, 10), st.integers(0, 10**6), st.booleans())
def test_the_largest_are_found_block_by_block_as_one_by_one(elements, count, seed, with_ties):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(3, elements, generator=generator)
    x = x.round() if with_ties else x
    x[:, 0] = -torch.inf
    values, places = blockwise_topk(x, min(count, elements))
    assert torch.equal(values, x.topk(min(count, elements)).values)
    assert torch.equal(x.gather(1, places), values)
    assert all(len(set(row)) == len(row) for row in places.tolist())


@pytest.mark.parametrize("decoding", [{"beam_size": 1}, {"beam_size": 3}, {"method": "sample", "beam_size": 3}])
def test_another_search_between_the_steps_changes_nothing(model, decoding):
    config = DecodingConfig(max_length_extra=6, **decoding)
    alone = search(model, SOURCES, config, KEYS)
    others = []
    before_step = lambda: others.append(search(model, SOURCES[:2], config, KEYS[:2]))  # noqa: E731
    assert search(model, SOURCES, config, KEYS, before_step) == alone
    assert len(others) >= max(len(hypotheses[0].tokens) for hypotheses in alone)
    assert all(other == others[0] for other in others)


def test_only_the_attention_of_the_recording_thread_is_recorded():
    model = _model(TRANSFORMER)
    source = _source(SOURCES)
    with ThreadPoolExecutor(1) as pool, record_attention(model) as maps:
        pool.submit(model.encode, source).result()
        model.encode(source[:1])
    assert [map_.weights.shape[0] for map_ in maps["encoder.layers.0.self_attention"]] == [1]
    assert not any(len(of_module) > 1 for of_module in maps.values())
