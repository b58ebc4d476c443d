"""Command lines become checked configs; every error is reported at once: key, value, reason, nearest name."""

import re

import pytest
from hydra.core.global_hydra import GlobalHydra

from mt.cli.composition import compose_job, overlap
from mt.config import (
    AugmentationConfig,
    CompareConfig,
    FilesConfig,
    HubConfig,
    TableConfig,
    TextConfig,
    TrainConfig,
    TranslateConfig,
)
from mt.core.errors import InputError, counted
from mt.storage.run_folder import as_yaml

FILES = ["data=files", "data.source_language=en", "data.target_language=es", "data.train=[my.en,my.es]"]


def train_config(*words, **options):
    job = compose_job("train", TrainConfig, words, **options)
    return job.config


def config_errors(*words, command="train"):
    """The lines of the message that a command line gets, without the first."""
    schema = {"train": TrainConfig, "translate": TranslateConfig}[command]
    with pytest.raises(InputError) as caught:
        compose_job(command, schema, words)
    head, *lines = str(caught.value).splitlines()
    assert head == f"{counted(len(lines), 'error')}, nothing was started:"
    return [line.strip() for line in lines]


def write_experiment(folder, content):
    (folder / "experiment").mkdir(exist_ok=True)
    (folder / "experiment" / "mine.yaml").write_bytes(content)


def test_the_default_run():
    config = train_config()
    assert config.name == "tatoeba_en_fr-transformer_small"
    assert (config.data.source_language, config.data.target_language) == ("en", "fr")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"seed: [1,\n: {", "mine.yaml"),
        (b"# @package _global_\nseed: 1\nseed: 2\n", "found duplicate key"),
        (b"# @package _global_\nname: !!python/object/apply:os.getcwd []\n", "could not determine a constructor"),
        (b"\xff\x00\xab", "codec can't decode"),
        (b"# @package _global_\ndefaults:\n  - override /model: gone\n", "Could not find 'model/gone'"),
        (b"# @package _global_\ndefaults: 5\n", "must be a list"),
        (b"# @package _global_\ndefaults:\n  - /experiment: mine\n", "recursion"),
        (b"", "the file's first line must be: # @package _global_"),
        (b"- 1\n", "the file's first line must be: # @package _global_"),
        (b"name: mine\n", "the file's first line must be: # @package _global_"),
        (b"\xef\xbb\xbf# @package _global_\n", "# @package _global_ (without a byte order mark)"),
        (b"# @package _global_\ndefaults:\n  - model: wide\n", "under defaults, write - override /model: "),
        (b"# @package _global_\nname: [1]\n", "name=[1]: must be a text"),
        (b"# @package _global_\nseed: ${gone}\n", "seed: Interpolation key 'gone' not found"),
    ],
)
def test_experiment_reports_unusable_file(tmp_path, content, message):
    write_experiment(tmp_path, content)
    with pytest.raises(InputError) as caught:
        train_config("experiment=mine", config_dir=tmp_path)
    assert message in str(caught.value) and "Config search path" not in str(caught.value)


def test_a_file_of_ones_own_cannot_stand_for_one_of_ours(tmp_path):
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "transformer_tiny.yaml").write_text("width: 32\n")
    with pytest.raises(InputError, match="there already is a model=transformer_tiny; give this file another name"):
        train_config(config_dir=tmp_path)


def test_a_recorded_config_is_an_experiment(tmp_path):
    recorded = train_config("model=rnn_attention_tiny", *FILES, "data.valid=[v.en,v.es]", "text=off", "seed=9")
    values = recorded.model_dump(mode="json")
    values["training"]["replay"] = 0.0  # as 1.0.0 recorded it
    write_experiment(tmp_path, f"# @package _global_\n{as_yaml(values)}".encode())
    assert train_config("experiment=mine", config_dir=tmp_path) == recorded


def test_config_dir_warns_of_unread_files(tmp_path, caplog):
    write_experiment(tmp_path, b"# @package _global_\nseed: 5\n")
    for name in ("train.yaml", "experiment/other.yml"):
        (tmp_path / name).touch()
    assert train_config("experiment=mine", config_dir=tmp_path).seed == 5
    assert [record.args[0].name for record in caplog.records] == ["train.yaml", "other.yml"]


def test_own_files():
    config = train_config(*FILES, "data.valid=[v.en,v.es]")
    assert isinstance(config.data, FilesConfig)
    assert (config.data.train, config.data.valid, config.data.test) == (("my.en", "my.es"), ("v.en", "v.es"), None)
    assert config.name == "files-transformer_small"


def test_columns_are_numbers_or_names():
    table = ["data=table", "data.source_language=en", "data.target_language=es", "data.train=p.tsv"]
    numbers = train_config(*table, "data.source_column=0", "data.target_column=1").data
    names = train_config(*table, "data.source_column=en", "data.target_column='1'").data
    assert isinstance(numbers, TableConfig) and (numbers.source_column, numbers.target_column) == (0, 1)
    assert isinstance(names, TableConfig) and (names.source_column, names.target_column) == ("en", "1")


@pytest.mark.parametrize("code", ["no", "on", "yes", "nan", "null_AA", "off", "true"])
def test_language_codes_that_look_like_something_else(code):
    words = [*FILES, f"data.source_language={code}"]
    assert train_config(*words).data.source_language == code


@pytest.mark.parametrize("name", ["2024", "1e3", "true", "año", "a=b", "it's", "a b", "#1", "x(1)"])
def test_names_are_taken_to_the_letter(name):
    assert train_config(f"name={name}").name == name


def test_quoted_names_in_lists():
    data = train_config(*FILES[:3], 'data.train=["año, 1.en","b#.es"]').data
    assert isinstance(data, FilesConfig) and data.train == ("año, 1.en", "b#.es")


def test_an_experiment_gives_way_to_the_command_line():
    recipe = train_config("experiment=multi30k_en_de")
    assert isinstance(recipe.data, HubConfig) and recipe.data.path == "bentrevett/multi30k"
    assert recipe.model.width == 192 and recipe.training.max_updates == 40_000
    local = train_config("experiment=multi30k_en_de", *FILES, "model.dropout=0.3")
    assert isinstance(local.data, FilesConfig) and local.data.train == ("my.en", "my.es")
    assert local.model.width == 192 and local.model.dropout == 0.3
    assert local.tokenizer == recipe.tokenizer and local.training == recipe.training


def test_text_off_is_without_text_layer_and_augmentation():
    off = TextConfig(
        enabled=False, augmentation=AugmentationConfig(**dict.fromkeys(AugmentationConfig.model_fields, 0.0))
    )
    assert train_config("text=off").text == off
    # docs/results.md has the scores of these.
    for experiment in ("multi30k_en_de", "multi30k_en_de_rnn", "multi30k_gpu", "multi30k_speedrun"):
        assert train_config(f"experiment={experiment}").text == off
        assert train_config(f"experiment={experiment}", "text=default").text == TextConfig()


def test_an_experiment_names_its_run():
    assert train_config("experiment=demo").name == "demo"
    assert train_config("experiment=demo", "model=rnn_attention").name == "demo"
    assert train_config("experiment=demo", "name=other").name == "other"


@pytest.mark.parametrize("name", ["special", "2024"])
def test_a_name_in_an_experiment_of_the_users_own_is_kept(tmp_path, name):
    write_experiment(tmp_path, f"# @package _global_\n# mine\nname: {name}\n".encode())
    assert train_config("experiment=mine", config_dir=tmp_path).name == name
    assert train_config("experiment=mine", "name=x", config_dir=tmp_path).name == "x"


def test_all_errors_are_reported_at_once():
    expected = {
        "modle=x": "did you mean model?",
        "training.shedule.warmup=4000": "did you mean training.schedule.warmup (in updates)?",
        "+training.warmup=3": "did you mean training.schedule.warmup (in updates)?",
        "~seed": "seed=…",
        "--sede=3": "without dashes",
        "seed": "write key=value",
        "training.precision=fp8": "must be one of auto, fp32, bf16, fp16",
        "training.patience=-1": "greater than or equal to 0",
        "model=transfromer_small": "did you mean model=transformer_small?",
        "experiment=typo": "multi30k_en_de",
        "hydra.job.name=x": "no such key",
        "decoding.beam_size=1,2": "'decoding.beam_size=[1,2]'; for several runs, write a loop: for seed in 1 2 3; do ",
        "name=[": "cannot be read",
    }
    errors = {line.partition(": ")[0]: line for line in config_errors(*expected)}
    assert errors.keys() == {word.lstrip("+") for word in expected}
    for word, part in expected.items():
        assert part in errors[word.lstrip("+")]


def test_a_file_or_folder_alone_finds_its_key(tmp_path):
    text = tmp_path / "in.txt"
    text.touch()
    for word, hint in ((str(tmp_path), f", such as run={tmp_path}"), (str(text), f", such as input={text}"), ("x", "")):
        assert f"{word}: is not a setting; write key=value{hint}" in config_errors(word, command="translate")
        assert f"{word}: is not a setting; write key=value" in config_errors(word)


MIXED = ["data=mixture", "data.source_language=en", "data.target_language=es"]
COLUMNS = ["data=table", "data.source_language=en", "data.target_language=es", "data.train=p.tsv"]
ONE_ERROR = [
    # Each is a command line, and the one line of its error, where … is any text.
    (["model=tiny"], "model=tiny: …did you mean model=rnn_attention_tiny or transformer_tiny?"),
    (["model.heads=6", "model.width=abc"], "model.width=abc: must be a whole number"),
    ([*FILES, "data.path=x"], "data.path=x: only data of kind hub has this key"),
    (FILES[:3], f"data.train: is needed, for example: {' '.join(FILES[:3])} 'data.train=[my.en,my.es]'"),
    *(([*MIXED, f"data.corpora={given}"], "data.corpora[0]…must be a section: {key:value,…}…")
      for given in ("[my.en]", "[1]", "[null]", "[[]]")),
    *(([f"{key}={value}"], f"{key}={value}: must be …") for key, value in (
        ("data.weight", "1e-50"), ("data.weight", "1e+20"), ("decoding.length_penalty", "1000"),
        ("decoding.max_length_ratio", "1e+30"), ("decoding.max_length_extra", "10000000000000000000"),
        ("tokenizer.vocabulary_size", "260"))),
    ([*COLUMNS, "data.source_column=1.5", "data.target_column=b"],
     "data.source_column=1.5: must be a text or must be a whole number"),
    ([*FILES[:3], "data.train=a.en,a.es"], "…'data.train=[a.en,a.es]'…"),
    ([*FILES[:3], "data.train=a.en"], "data.train=a.en: must be a list, written 'data.train=[a,b]'"),
    (["data=fils", *FILES[1:], "data.recipe=tatoeba_en_fr"], "…did you mean data=files?…"),
    (["training.max_updates=90"], "training.schedule.warmup=100 takes all of max_updates=90: try 9"),
    (["model.norm=middle"], "model.norm=middle: must be one of pre, post"),
    (["model.norm=prä"], "model.norm=prä: must be one of pre, post; did you mean pre?"),
    (["tokenizer.kind=bep"], "tokenizer.kind=bep: must be one of bpe, unigram, char; did you mean bpe?"),
    (["data.train=" + "[" * 3000 + "]" * 3000], "…cannot be read…"),
    (["data.train=" + "{a:" * 600 + "1" + "}" * 600], "…cannot be read…"),
    (["data.cleaning=[" + ",".join(["-copy"] * 1000) + "]"], "…-copy (5,999 characters)]"),
    *(([f"seed={several}"], f"seed={several}: a setting takes one value; a list is written 'seed=[{several}]'; …")
      for several in ("1,2", "range(1,5,0)", "range(1,2000000)", "shuffle(1,2)", "glob(*)", "interval(1,3)")),
    (["model=glob(*tiny*)"], "model=glob(*tiny*): a setting takes one value; …"),
]  # fmt: skip


@pytest.mark.parametrize(("words", "message"), ONE_ERROR, ids=lambda value: str(value)[-50:])
def test_an_error_has_one_line(words, message):
    (line,) = config_errors(*words)
    assert re.fullmatch("(?s)" + ".*".join(map(re.escape, message.split("…"))), line) and len(line) < 1000, line
    assert not GlobalHydra.instance().is_initialized()


def test_wrong_combinations_are_reported_beside_other_errors():
    lines = config_errors(
        "model.heads=5", "model.dropuot=0.1", "training.init_from=a", "tokenizer.reuse=b", "data=files"
    )
    assert any(
        line.startswith("model.dropuot=0.1: there is no such key; did you mean model.dropout?") for line in lines
    )
    assert any("heads=5 does not divide width=192" in line for line in lines)
    assert any("leave tokenizer.reuse out" in line for line in lines)
    assert sum("is needed" in line for line in lines) == 3
    assert len(lines) == 6


def test_a_hyphen_stands_for_the_standard_streams():
    job = compose_job("translate", TranslateConfig, ["run=x", "input=-", "output=-"])
    assert job.config.input is job.config.output is None
    assert config_errors("run=x", "reference=-", command="translate") == [
        "reference=-: must be a path; ./- is a file with the name -"
    ]


def test_errors_inside_a_list_name_the_item():
    corpora = "data.corpora=[{kind:files,tran:[a,b]},{kind:hbu},{kind:hub,path:p,weight:0}]"
    lines = config_errors("data=mixture", "data.source_language=en", "data.target_language=es", corpora)
    starts = [line.partition(": ")[0] for line in lines]
    assert starts == [
        "data.corpora[0].train",
        "data.corpora[0].tran=[a,b]",
        "data.corpora[1].kind=hbu",
        "data.corpora[2].weight=0",
    ]
    assert "did you mean hub?" in lines[2]


def test_composition_reports_wrong_interpolation():
    assert config_errors("runs=${nope}", "seed=-1") == [
        "runs=${nope}: Interpolation key 'nope' not found",
        "seed=-1: must be greater than or equal to 0",
    ]


def test_a_name_may_be_another_keys_number():
    assert train_config("seed=2", "name=${seed}").name == "2"
    assert train_config("runs=${training.shard}", "training.init_from=${seed}").runs == "false"


def test_numbers_of_thousands_of_digits():
    digits = "9" * 5000
    lines = config_errors(f"seed={digits}", f"name={digits}", f"training.clip_norm={'9' * 400}", f"seeed={digits}")
    assert [line.partition("=")[0] for line in lines] == ["name", "seed", "training.clip_norm", "seeed"]
    assert all("… 9" in line and "characters)" in line and len(line) < 400 for line in lines)
    assert lines[0].endswith("must have at most 200 characters") and lines[1].endswith("has too many digits")


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("x" * 5000, f"{'x' * 100} … {'x' * 100} (5,000 characters)"),
        ("a/" * 2048, f"{'a/' * 50} … {'a/' * 50} (4,096 characters)"),
        ("ü" * 128, "ü" * 128),
        ("a/" + "ü" * 128 + "/b", "a/" + "ü" * 128 + "/b"),
    ],
)
def test_a_path_that_is_too_long_is_refused(path, shown):
    (line,) = config_errors("run=x", f"input={path}", command="translate")
    assert line == f"input={shown}: is too long: a path has at most 4,095 bytes, and a name in it 255"


@pytest.mark.parametrize("path", ["ü" * 127 + "x", "a/" * 2047 + "a"])
def test_the_longest_paths_are_taken(path):
    assert train_config(f"runs={path}").runs == path


@pytest.mark.parametrize(
    ("command", "key", "setting"),
    [
        ("train", "name", "name=NAME"),
        ("train", "tokenizer.reuse", "tokenizer.reuse=NAME"),
        ("train", "data.train[1]", "data.train=[my.en,NAME]"),
        ("train", "data.valid[0][0]", "data.valid=[[NAME,my.es]]"),
        ("translate", "run[1]", "run=[x,NAME]"),
        ("translate", "output", "output=NAME"),
        ("translate", "decoding.alignments", "decoding.alignments=NAME"),
    ],
)
def test_every_path_has_a_bounded_length(command, key, setting):
    base = {"train": FILES, "translate": ["run=x"]}[command]
    (line,) = config_errors(*base, setting.replace("NAME", "ü" * 130), command=command)
    assert line.startswith(f"{key}={'ü' * 130}: is too long")


def test_an_unknown_rule_of_cleaning_is_cut_short():
    (line,) = config_errors(f"data.cleaning=[{'x' * 5000}]")
    assert f"must be a list of rules: {'x' * 100} … {'x' * 100} (5,000 characters) is none of long, " in line


@pytest.mark.parametrize(
    ("typed", "folders"),
    [
        ("first=[runs/a-seed=1,runs/a-seed=2]", ("runs/a-seed=1", "runs/a-seed=2")),
        (r"first=[C:\runs\a=1,b\]", ("C:\\runs\\a=1", "b\\")),
        ("first=runs/a#1", "runs/a#1"),
        (r"first=a\b=c", r"a\b=c"),
        ("first=2024", "2024"),
        ("runs=[[a/x-seed=1,a/x-seed=2],[b=1]]", (("a/x-seed=1", "a/x-seed=2"), ("b=1",))),
    ],
)
def test_composition_accepts_folders_with_special_characters(typed, folders):
    key = typed.partition("=")[0]
    job = compose_job("compare", CompareConfig, [typed, *["second=other"] * (key == "first")])
    assert getattr(job.config, key) == folders


def test_a_file_of_ones_own_may_change_between_two_command_lines(tmp_path):
    for seed in (3, 4):
        write_experiment(tmp_path, f"# @package _global_\nseed: {seed}\n".encode())
        assert train_config("experiment=mine", config_dir=tmp_path).seed == seed


def test_keys_overlap_if_one_is_the_other_or_lies_within_it():
    for one, other, expected in (
        ("model", "model", True),
        ("model", "model.width", True),
        ("training.schedule.warmup", "training.schedule", True),
        ("model.width", "model.widths", False),
        ("model.width", "model.heads", False),
    ):
        assert overlap(one, other) == overlap(other, one) == expected
