"""The schema refuses what cannot work, and every file in conf/ fits it and says what each key means."""

import re
import shlex
from typing import Annotated, Literal, get_args, get_origin

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError
from pydantic.fields import FieldInfo

from mt.cli.commands import COMMANDS
from mt.cli.composition import compose_job
from mt.cli.config_files import Files, example
from mt.cli.error_messages import schema_keys
from mt.cli.reference import head_comment, settings_page
from mt.config import (
    CompareConfig,
    DataConfig,
    DecodingChoice,
    DecodingConfig,
    ExportConfig,
    FilesConfig,
    MixtureConfig,
    RNNAttentionConfig,
    RobustnessConfig,
    Section,
    TextConfig,
    TokenizerConfig,
    TrainConfig,
    TrainingConfig,
    TransformerConfig,
    TranslateConfig,
)
from mt.config.commands import why_not_packed
from mt.config.training import scheduled_checkpoint_count
from mt.core.errors import InputError
from mt.core.installation import CONF
from mt.models.rnn import RNNAttention
from mt.models.transformer import Transformer
from tests.in_process import call

LANGUAGES = {"source_language": "en", "target_language": "es"}
LANGUAGE_WORDS = ["data.source_language=en", "data.target_language=es"]
FILES = ["data=files", *LANGUAGE_WORDS, "data.train=[a,b]"]
MIXTURE = ["data=mixture", *LANGUAGE_WORDS]
TABLE = ["data=table", *LANGUAGE_WORDS, "data.train=a"]
RNN = ["model=rnn_attention"]
TRANSLATE = ["translate", "run=r"]
REFERENCE = [*TRANSLATE, "reference=a"]


def compose(words):
    """The config of a command line. It is that of train.py unless it begins with the name of a command."""
    command, *words = words if COMMANDS.keys() & words[:1] else ["train", *words]
    job = compose_job(command, COMMANDS[command].schema, words)
    return job.config


def needed(file):
    """The settings that a config file needs, from the example in its head."""
    return shlex.split(example(file) or "")


@pytest.mark.parametrize("group", ["data", "text", "model", "training", "decoding", "experiment"])
def test_every_option_composes_and_fits_the_schema(group):
    for option in Files("train").options(group):
        words = needed(CONF / group / f"{option}.yaml") or [f"{group}={option}"]
        assert compose(words)


def test_conf_has_only_config_files_of_groups():
    found = {file.relative_to(CONF).as_posix() for file in CONF.rglob("*") if file.is_file()}
    groups = ("data", "text", "model", "training", "decoding", "experiment")
    options = {f"{group}/{option}.yaml" for group in groups for option in Files("train").options(group)}
    assert found == options | {f"{command}.yaml" for command in COMMANDS}


@pytest.mark.parametrize("command", COMMANDS)
def test_every_key_is_described(command):
    for key, field in schema_keys(COMMANDS[command].schema):
        assert field.description or key in ("data.kind", "model.architecture"), key


def test_the_page_of_settings_is_current(tmp_path):
    page = (CONF.parent / "docs" / "settings.md").read_text(encoding="utf-8")
    assert page == settings_page(), "make it anew: python -m mt settings > docs/settings.md"
    assert call("settings", folder=tmp_path).stdout == page


def test_every_key_of_decoding_can_be_chosen_or_left_to_the_model():
    choice = compose(TRANSLATE).decoding
    assert choice == DecodingChoice() and choice.model_fields_set == set()
    own = DecodingConfig(beam_size=7, length_penalty=0.5, max_length_extra=3)
    assert choice.over(own) == own
    settings = "decoding.beam_size=5", "decoding.length_penalty=null", "decoding.n_best=2"
    choice = compose([*TRANSLATE, *settings]).decoding
    assert choice.over(own) == own.model_copy(update={"beam_size": 5, "n_best": 2})
    assert choice.model_dump() == {"beam_size": 5, "n_best": 2}
    assert DecodingChoice(n_best=7).over(own).n_best == 7
    with pytest.raises(ValidationError, match="n_best=8 needs beam_size ≥ 8, not 7"):
        DecodingChoice(n_best=8).over(own)


def test_the_default_run_is_the_schemas_defaults():
    config = compose([])
    for section, schema in (
        ("text", TextConfig()),
        ("tokenizer", TokenizerConfig()),
        ("model", TransformerConfig(architecture="transformer")),
        ("training", TrainingConfig()),
        ("decoding", DecodingConfig()),
    ):
        assert getattr(config, section) == schema


def test_config_files_begin_with_a_comment():
    for file in CONF.rglob("*.yaml"):
        assert re.match(r"\s*\w", head_comment(file)), file


def test_presets_have_architecture_of_their_name():
    sizes = {}
    for option in Files("train").options("model"):
        if option.startswith("rnn"):
            continue
        model = compose([f"model={option}"]).model
        sizes[option] = (model.width, model.feed_forward, model.heads, model.encoder_layers, model.decoder_layers)
    assert sizes == {
        "auto": (192, 768, 4, 3, 3),
        "transformer_tiny": (128, 256, 4, 4, 4),
        "transformer_small": (192, 768, 4, 3, 3),
        "transformer_small_deep": (192, 512, 4, 6, 2),
        "transformer_base": (512, 2048, 8, 6, 6),
        "transformer_big": (1024, 4096, 16, 6, 6),
    }


@pytest.mark.parametrize(
    ("option", "other"),
    [
        *((f"rnn_attention_{size}", f"transformer_{size}") for size in ("tiny", "small", "base")),
        ("transformer_small_deep", "transformer_small"),
    ],
)
def test_presets_that_are_to_be_compared_are_equally_large(option, other):
    def parameters(option):
        model = compose([f"model={option}"]).model
        architecture = Transformer if isinstance(model, TransformerConfig) else RNNAttention
        with torch.device("meta"):
            return sum(weight.numel() for weight in architecture(model, 8000, 8000, True).parameters())

    assert parameters(option) == pytest.approx(parameters(other), rel=0.05)


def test_the_plain_recurrent_model_is_the_schemas_defaults_and_the_small_one():
    default = RNNAttentionConfig(architecture="rnn_attention")
    for option in ("rnn_attention", "rnn_attention_small"):
        assert compose([f"model={option}"]).model == default


@given(width=st.integers(1, 600).map(lambda half: 2 * half), heads=st.integers(1, 64))
def test_heads_must_divide_width_and_hint_has_nearest_divisors(width, heads):
    if width % heads == 0:
        assert TransformerConfig(architecture="transformer", width=width, heads=heads).heads == heads
        return
    with pytest.raises(ValidationError) as caught:
        TransformerConfig(architecture="transformer", width=width, heads=heads)
    message = caught.value.errors()[0]["msg"]
    assert f"heads={heads}" in message and f"width={width}" in message
    named = [int(number) for number in re.findall(r"\d+", message.partition("nearest")[2])]
    assert named
    for near in named:
        assert width % near == 0
        between = range(min(near, heads) + 1, max(near, heads))
        assert not any(width % other == 0 for other in between)


WRONG_COMBINATIONS = [
    # Each is a command line, and what the one line of its error has.
    *(([*FILES[:3], "data.train=[a,b]", f"data.source_language={name}"], f"set its code, {code}")
      for name, code in (("english", "en"), ("Chinese", "zh"), ("portuguese", "pt"))),
    ([*FILES[:3], "data.train=[a,a]"], "train has a on both sides"),
    ([*FILES[:3], "data.train=[a.es,b.en.gz]"], "the es file first"),
    ([*TABLE, "data.source_column=0", "data.target_column=es"], "must be two names, or two numbers"),
    ([*TABLE, "data.source_column=1", "data.target_column=1"], "are both 1"),
    (["tokenizer.kind=unigram", "tokenizer.sampling=0.1"], "sampling=0.1 is for kind=bpe, not unigram"),
    (["model.width=9", "model.heads=3"], "sinusoidal positions need an even width"),
    (["model.max_positions=100"], "positions=learned"),
    (["training.weights=average", "training.keep_last=4"], "set training.keep_last=5"),
    (["training.weights=last", "training.average=3"], "weights=average"),
    (["training.weights=average", "training.keep_last=5", "training.max_updates=960"], "take average=4, or save more"),
    (["training.consistency=1"], "objective=simcut or r_drop"),
    (["training.start_share=0.5"], "start_share=0.5 needs init_from"),
    (["training.init_from=a", "training.initial_embeddings=co_occurrence"], "set initial_embeddings=random"),
    (["training.objective=r_drop", "training.cutoff=0.1"], "objective=simcut"),
    (["training.optimizer.kind=adamw", "training.optimizer.muon_iterations=5"], "kind=muon"),
    (["training.device=cpu", "training.precision=fp16"], "precision=fp16 needs a GPU"),
    (["training.max_updates=9", "training.schedule.warmup=9"], "takes all of max_updates=9"),
    (["training.epochs=3", "training.minutes=5"], "epochs=3 contradicts minutes"),
    (["training.schedule.kind=step"], "schedule.steps=[] must be updates"),
    (["training.schedule.kind=step", "training.schedule.steps=[9,1200]"], "must be updates before max_updates=1200"),
    (["training.schedule.kind=plateau", "training.patience=2"], "patience=2 is to be larger"),
    ([*TRANSLATE, "decoding.beam_size=2", "decoding.n_best=3"], "beam_size ≥ 3"),
    ([*TRANSLATE, "decoding.top_k=5"], "method=sample"),
    ([*TRANSLATE, "decoding.seed=2"], "seed=2 is for method=sample"),
    ([*TRANSLATE, "decoding.engine=ctranslate2", "decoding.method=sample"], "with method=sample set engine=torch"),
    ([*TRANSLATE, "decoding.compute_type=int8"], "engine=ctranslate2"),
    ([*TRANSLATE, "decoding.method=sample", "decoding.beam_size=2"], "sampling has no beam"),
    ([*TRANSLATE, "precision=bf16", "decoding.engine=ctranslate2"], "set decoding.compute_type"),
    ([*REFERENCE, "confidence=true"], "confidence=true"),
    *(([*REFERENCE, f"decoding.{setting}"], f"decoding.{setting}: reference=… scores")
      for setting in ("n_best=2", "beam_size=2", "max_length_extra=2", "engine=ctranslate2")),
    (["training.init_from=a", "tokenizer.reuse=b"], "leave tokenizer.reuse out"),
    (["model.positions=learned", "model.max_positions=128"], "max_positions=128: data.max_length=128 needs 129"),
    (["decoding.method=sample"], "decoding.method"),
    (["decoding.engine=ctranslate2"], "decoding.engine=ctranslate2"),
    (["decoding.compute_type=int8"], "engine=ctranslate2"),
    (["decoding.seed=2"], "decoding.seed=2 is for method=sample"),
    (["training.objective=r_drop", "model.dropout=0"], "set model.dropout > 0"),
    ([*RNN, "training.objective=r_drop", "model.dropout=0"], "set model.dropout > 0"),
    ([*RNN, "model.variational_dropout=true", "model.dropout=0"], "set model.dropout > 0"),
    ([*RNN, "training.compile=true"], "training.compile=true is for Transformers"),
    ([*RNN, "training.batching=packed"], "training.batching=packed is for Transformers"),
    (["training.batching=packed", "model.attention_dropout=0.1"], "work with model.attention_dropout=0.1: take"),
    (["training.batching=packed", "training.shard=true"], "training.shard=true"),
    ([*RNN, "training.optimizer.kind=muon"], "take auto or adamw"),
    ([*RNN, "training.optimizer.muon_iterations=5"], "training.optimizer.muon_iterations=5 is for Transformers"),
    ([*FILES, "data.valid=[c,d]", "data.valid_pairs=9"], "data.valid_pairs=9 is for a corpus without valid data"),
    ([*FILES, "data.valid={news:[c,d]}", "training.metric=new.loss"], "has no set new; did you mean news?"),
    ([*FILES, "data.valid={news:[c,d],chat:[e,e]}"], "valid has e on both sides"),
    (["training.batching=packed", "training.freeze=[encoder]"], "batching=packed trains all parts"),
    (["data=multi30k", "data.test_split=other", "data.test_pairs=9"],
     "data.test_pairs=9 is for a corpus without test data"),
    ([*MIXTURE, "data.valid_pairs=9", "data.corpora=[{kind:files,train:[a,b],valid:[c,d]}]"],
     "data.valid_pairs=9 is for a corpus without valid data"),
    ([*MIXTURE, "data.corpora=[{kind:files,train:[a,b]},{kind:table,train:c,valid:d}]"],
     "corpora[1].valid is not read"),
    ([*MIXTURE, "data.corpora=[{kind:files,train:[a,b]},{kind:hub,path:p,test_split:dev}]"],
     "corpora[1].test_split is not read"),
    ([*MIXTURE, "data.corpora=[{kind:files,train:[a,b]},{kind:files,train:[c,d],valid_pairs:7}]"],
     "corpora[1].valid_pairs=7: the mixture has valid_pairs=2000"),
    ([*MIXTURE, "data.test_pairs=100", "data.corpora=[{kind:files,train:[a,b],test_pairs:5}]"],
     "corpora[0].test_pairs=5: the mixture has test_pairs=100"),
    ([*FILES, "data.tagged=true"], "data.tagged=true is for the second corpus of a mixture"),
    ([*MIXTURE, "data.corpora=[{kind:files,train:[a,b],tagged:true},{kind:files,train:[c,d]}]"],
     "validation and test data come from the first"),
    *((["export", "run=a", "output=b", *settings], named) for settings, named in (
        (["format=hugging_face", "quantization=int8"], "quantization=int8 is for format=ctranslate2 or argos"),
        (["format=hugging_face", "version=1.2"], "version=1.2 is for format=argos"),
        (["format=ctranslate2", "version=1.2"], "version=1.2 is for format=argos"))),
]  # fmt: skip


@pytest.mark.parametrize(("words", "named"), WRONG_COMBINATIONS, ids=lambda value: str(value)[-50:])
def test_validation_errors_name_their_keys(words, named):
    with pytest.raises(InputError, match="1 error") as caught:
        compose(words)
    assert named in str(caught.value)


def test_packed_batches_know_every_option_of_a_transformer():
    """A new option fails here until ``PackedTransformer`` computes it, or ``why_not_packed`` refuses it."""
    fields = TransformerConfig.model_fields
    assert set(fields) == {
        "architecture", "width", "feed_forward", "heads", "encoder_layers", "decoder_layers", "dropout",
        "attention_dropout", "activation", "norm", "positions", "max_positions", "tie_embeddings", "scale_embeddings",
        "output_bias", "decoder_start",
    }  # fmt: skip
    assert fields["positions"].annotation == Literal["sinusoidal", "learned"]
    known = TransformerConfig(architecture="transformer", positions="learned", norm="post", activation="silu")
    assert why_not_packed(known, shard=False) is None


def test_both_files_may_have_the_suffix_of_one_language():
    values = {"kind": "files", "source_language": "en", "target_language": "en", "train": ["wrong.en", "right.en"]}
    assert "copy" not in FilesConfig.model_validate(values).cleaning_rules


def test_a_mixture_hands_its_languages_and_lengths_down():
    corpora = [{"kind": "files", "train": ["a", "b"]}, {"kind": "hub", "path": "p", "weight": 0.5}]
    mixture = TypeAdapter(DataConfig).validate_python(
        {"kind": "mixture", "corpora": corpora, "max_length": 50, **LANGUAGES}
    )
    assert isinstance(mixture, MixtureConfig)
    assert [corpus.source_language for corpus in mixture.corpora] == ["en", "en"]
    assert [corpus.max_length for corpus in mixture.corpora] == [50, 50]
    with pytest.raises(ValidationError, match="max_length=9: the mixture has max_length=50"):
        MixtureConfig.model_validate(
            {"kind": "mixture", "corpora": [corpora[0] | {"max_length": 9}], "max_length": 50, **LANGUAGES}
        )
    with pytest.raises(ValidationError, match="source_language"):
        turned = {"kind": "recipe", "recipe": "tatoeba_en_fr", "source_language": "fr"}
        MixtureConfig.model_validate({"kind": "mixture", "corpora": [turned], **LANGUAGES})


@pytest.mark.parametrize(
    "words",
    [
        ["training.optimizer.muon_iterations=5"],
        ["training.objective=r_drop", "model.dropout=0", "model.attention_dropout=0.1"],
        ["model=rnn_attention", "model.variational_dropout=true"],
        [*FILES, "data.valid=[c,d]", "data.test_pairs=9"],
        ["data=multi30k", "data.valid_pairs=9"],  # its splits' usual names are a guess: there may be none
        ["data=multi30k", "data.valid_split=null", "data.valid_pairs=9"],
        [*MIXTURE, "data.valid_pairs=9", "data.corpora=[{kind:files,train:[a,b]},{kind:hub,path:p}]"],
        ["training=paper", "training.max_updates=10000"],
    ],
)
def test_validation_accepts_settings_that_take_effect(words):
    assert compose(words)


@given(max_updates=st.integers(1, 200), validate_every=st.integers(1, 250), save_every=st.none() | st.integers(1, 250))
def test_scheduled_checkpoints_are_counted(max_updates, validate_every, save_every):
    intervals = [validate_every, save_every or validate_every]
    saved = [u for u in range(1, max_updates + 1) if u == max_updates or any(u % every == 0 for every in intervals)]
    assert scheduled_checkpoint_count(max_updates, validate_every, save_every) == len(saved)


@pytest.mark.parametrize("value", [True, -1, 1.5, float("nan"), "many", ""])
def test_numbers_are_numbers(value):
    with pytest.raises(ValidationError):
        TrainingConfig.model_validate({"patience": value})
    assert TrainingConfig.model_validate({"patience": 1e3}).patience == 1000


@pytest.mark.parametrize("schema", [TrainConfig, TranslateConfig, CompareConfig, RobustnessConfig, ExportConfig])
def test_every_number_has_a_least_and_a_largest_value(schema):
    for key, field in schema_keys(schema):
        for limits in _limits(field.annotation, field.metadata):
            names = {name for limit in limits for name in ("ge", "gt", "le", "lt") if hasattr(limit, name)}
            assert names & {"ge", "gt"} and names & {"le", "lt"}, key


def _limits(annotation, metadata=()):
    """Of each number that an annotation mentions, what limits it."""
    if annotation in (int, float):
        yield [limit for one in metadata for limit in (one.metadata if isinstance(one, FieldInfo) else [one])]
    elif get_origin(annotation) is Annotated:
        yield from _limits(get_args(annotation)[0], get_args(annotation)[1:])
    elif not isinstance(annotation, type) or not issubclass(annotation, Section):
        for argument in get_args(annotation):
            yield from _limits(argument)


@pytest.mark.parametrize(
    ("key", "last", "beyond"),
    [
        ("batch_tokens", 2**31 - 1, 10**20),
        ("threads", 1024, 99_999_999_999),
        ("clip_norm", 1e9, 10**400),
        ("device", "cuda:99", "cuda:100"),
        ("device", "cuda:0", "cuda:00"),
        ("device", "cuda:12", "cuda:256"),
        ("device", "cuda:1", "cuda:\N{ARABIC-INDIC DIGIT ONE}"),
        ("init_from", "a b", "a\0b"),
    ],
)
def test_the_last_value_that_works_and_one_beyond(key, last, beyond):
    assert getattr(TrainingConfig.model_validate({key: last}), key) == last
    with pytest.raises(ValidationError):
        TrainingConfig.model_validate({key: beyond})


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a\nb", "x" * 201])
def test_a_run_name_stays_inside_the_runs_folder(name):
    with pytest.raises(ValidationError) as caught:
        TrainConfig.model_validate({"name": name, "data": {}, "model": {}})
    assert ("name",) in [error["loc"] for error in caught.value.errors()]
