"""Cleaning of a corpus with one fault of each kind: matches, counts, warnings and the command."""

import json

import numpy as np
import pytest

from mt.config import CleaningConfig
from mt.config.data import CLEANING_RULES
from mt.core.errors import InputError
from mt.data.cleaning.command import clean
from mt.data.cleaning.findings import dropped_ids, log_findings, remove_dropped
from mt.data.cleaning.rules import RULES
from mt.data.cleaning.sides import BatchLanguageIdentifier, CorpusSide
from mt.data.cleaning.stage import find_faulty_pairs
from mt.data.corpus import KEYS, load_corpus
from tests.data.cleaning.conftest import good_pairs, write_table

GOOD = good_pairs()
FAULTS = {
    "long": ("Word " * 700 + "end.", "Wort " * 700 + "Ende."),
    "encoding": ("The doors are green.", "Die TÃ¼ren sind grÃ¼n und schÃ¶n."),
    "letters": ("#### 12 ++ 34 -- ||", "Die rote Tür."),
    "copy": ("My aunt came by train.", "My aunt came by train!"),
    "script": ("The river is frozen today.", "Река сегодня замёрзла."),
    "language": ("We drank tea beside the window.", "Nous avons bu du thé à côté de la fenêtre."),
    "items": ("He closed the garden gate.", "<b>Er schloss</b> das Gartentor.&nbsp;"),
    "numbers": ("She was born in 1964.", "Sie wurde 1946 geboren."),
    "length": ("The cat sleeps on the sofa.", "Die Katze " + "schläft sehr lange und tief und fest " * 4 + "hier."),
    "duplicate": (GOOD[0][0].upper(), GOOD[0][1].rstrip(".") + "!"),
}


NEAR_MISSES = [
    ("The doors are green — “really”.", "Die Türen sind grün – „wirklich“."),
    ("Dial 0123 45 67, Ann!", "Wähl 0123 45 67, Anna!"),
    ("Amsterdam", "Amsterdam"),
    ("OK", "OK"),
    ("The letter Ω is Greek.", "Der Buchstabe Ω ist griechisch."),
    ("The inn is called La Petite Maison Rouge.", "Das Gasthaus heißt La Petite Maison Rouge."),
    ("Green market, warm word, broken.", "Grüner Markt, warmes Wort, kaputt."),  # looks like Dutch, with English words
    ("See <b>here</b>, Anna.", "Siehe <i>hier</i>, Anna."),
    ("She came at 10 o'clock in the evening.", "Sie kam abends um 22 Uhr an."),
    ("The cat sleeps on the sofa.", "Die alte Katze schläft gern auf dem Sofa."),
    (GOOD[0][0], GOOD[0][1].replace("Bauer", "Landwirt").replace("bauer", "landwirt")),
]
"""A pair for each rule that the rule nearly matches, but must not match."""


def judge(config):
    corpus = load_corpus(config)
    return corpus, find_faulty_pairs(corpus, config)


def find(config):
    corpus, findings = judge(config)
    return {rule: ids.tolist() for rule, ids in dropped_ids(findings, corpus).items() if len(ids)}


def test_config_lists_all_rules_in_order():
    assert tuple(RULES) == CLEANING_RULES


def test_each_fault_is_matched_by_its_rule(table):
    config = table([*GOOD, *FAULTS.values()])
    assert find(config) == {rule: [len(GOOD) + index] for index, rule in enumerate(FAULTS)}


@pytest.mark.parametrize("rule", FAULTS)
def test_disabled_rule_matches_nothing(table, rule):
    assert rule not in find(table([*GOOD, FAULTS[rule]], cleaning=["default", f"-{rule}"]))
    assert find(table([*GOOD, FAULTS[rule]], cleaning=[rule])) == {rule: [len(GOOD)]}


def test_translation_rule_is_only_in_strict_cleaning(table):
    random = np.random.default_rng(3)
    rows = random.choice(len(GOOD), 60, replace=False)
    pairs = list(GOOD)
    for row, other_row in zip(rows, np.roll(rows, 1), strict=True):
        pairs[row] = GOOD[row][0], GOOD[other_row][1]
    assert find(table(pairs)) == {}
    matches = set(find(table(pairs, cleaning="strict"))["translation"])
    # Some of them share three of four parts by chance.
    assert len(matches & set(rows.tolist())) >= 42 and len(matches - set(rows.tolist())) <= 3


def test_boilerplate_rule_matches_uncommon_translations(table):
    noise = [("Read more about it here.", GOOD[20 * index][1]) for index in range(60)]
    usual = [("Read more about it here.", "Lies hier mehr darüber.")] * 30
    matches = find(table([*GOOD, *noise, *usual], cleaning=["boilerplate"]))
    assert matches == {"boilerplate": list(range(len(GOOD), len(GOOD) + 60))}


def test_rules_accept_near_misses(table):
    long = tuple(" ".join(pair[side] for pair in GOOD[:29]) for side in (0, 1))
    assert 1100 < max(len(text.replace(" ", "")) for text in long) < 1280
    assert find(table([*GOOD, *NEAR_MISSES, long])) == {}


def test_is_foreign_script_ignores_capitalized_names():
    side = CorpusSide("zh", BatchLanguageIdentifier())
    side.add_texts(["我昨天去了图书馆，借了三本书。"] * 20)
    texts = ["我用Twitter。", "iPhone和MacBook在哪", "Wikipedia", "The facebook page is 大"]
    assert side.is_foreign_script(texts, side.count_letters(texts)).tolist() == [False, False, True, True]


def test_faulty_validation_pairs_are_counted_and_kept(table, tmp_path):
    valid = write_table(tmp_path / "other.jsonl", [*GOOD[:9], FAULTS["language"]])
    config = table(GOOD, valid=valid)
    corpus, cleaning = judge(config)
    assert cleaning.counts("valid") == dict.fromkeys(cleaning.rules, 0) | {"language": 1}
    kept = remove_dropped(corpus, dropped_ids(cleaning, corpus), config)
    assert kept.valid["target"][:] == corpus.valid["target"][:] and len(kept.train) == len(GOOD)


def test_remove_dropped_counts_pairs_and_keeps_ids(table):
    config = table([FAULTS["copy"], *GOOD, FAULTS["numbers"]])
    corpus, findings = judge(config)
    kept = remove_dropped(corpus, dropped_ids(findings, corpus), config).drop_key_columns()
    assert kept.train["id"][:] == list(range(1, len(GOOD) + 1))
    assert kept.report[0].dropped == {"by cleaning: copy": 1, "by cleaning: numbers": 1}
    assert kept.report[0].kept == len(GOOD) == kept.report[0].read - 2
    assert not set(KEYS) & set(kept.train.column_names)


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ([(de, en) for en, de in GOOD], "most sources are in de and most targets in en"),
        ([(en, other) for (en, _), (other, _) in zip(GOOD, GOOD[7:], strict=False)], "most targets are in en"),
    ],
    ids=["swapped", "one language"],
)
def test_check_languages_refuses_swapped_or_equal_languages(table, pairs, message):
    with pytest.raises(InputError, match=message):
        judge(table(pairs))


@pytest.mark.parametrize(
    ("source", "target", "cleaning"), [("en", "en", "strict"), ("en_US", "en_GB", "default"), ("eng", "en", "strict")]
)
def test_copies_are_kept_if_languages_are_equal(table, source, target, cleaning):
    corrections = [(en.replace("e", "ee", 1), en) for en, _ in GOOD[::3]]
    cased = [(en.lower(), en) for en, _ in GOOD[1::3]]
    copies = [(en, en) for en, _ in GOOD[2::3]]
    settings = {"source_language": source, "target_language": target, "source_column": "en", "target_column": "de"}
    matches = find(table([*corrections, *cased, *copies], cleaning=cleaning, **settings))
    assert matches.keys() <= {"duplicate"}
    assert find(table([*GOOD, FAULTS["copy"]], cleaning=["copy"], **settings)) == {"copy": [len(GOOD)]}
    assert table((), **settings).without_rule("letters") == "data.cleaning=[default,-letters]"


def test_check_languages_warns_of_third_language(table, caplog):
    config = table(GOOD, target_language="en", source_column="en", target_column="de")
    judge(config)
    assert "most targets seem to be in de, not in en" in caplog.text


def test_log_findings_warns_if_few_pairs_remain(table, caplog):
    numbers = [(f"{n} {n + 7} {n + 5} 99", f"99 {n + 5} {n + 7} {n}") for n in range(10, 90)]
    config = table(numbers)
    corpus, findings = judge(config)
    log_findings(findings, corpus, config)
    (line,) = (line for line in caplog.messages if line.startswith("cleaning leaves") or "the rule" in line)
    assert line.startswith("cleaning leaves 0 of 80 training pairs") and "experiment=toy_task" in line


def test_log_findings_warns_of_swapped_file(table, tmp_path, caplog):
    right = write_table(tmp_path / "right.jsonl", GOOD)
    wrong = write_table(tmp_path / "wrong.jsonl", [(de, en) for en, de in GOOD[::5]])
    config = table((), train=(right, wrong))
    corpus, findings = judge(config)
    log_findings(findings, corpus, config)
    (line,) = (line for line in caplog.messages if "swap its sides" in line)
    assert "wrong.jsonl" in line and "right.jsonl" not in line


def test_remove_dropped_refuses_to_drop_all_pairs(table):
    config = table([(en, f"{en}!") for en, _ in GOOD], cleaning=["copy"])
    corpus, findings = judge(config)
    with pytest.raises(InputError, match=r"1,296 by the rule copy.*data.cleaning=false disables that rule"):
        remove_dropped(corpus, dropped_ids(findings, corpus), config)


def test_cleaning_accepts_single_pair(table):
    assert find(table([("The bread is warm.", "Das Brot ist warm.")], cleaning="strict")) == {}


def test_clean_writes_every_pair_once(table, tmp_path):
    config = table([*GOOD, *FAULTS.values()])
    output = tmp_path / "cleaned"
    clean(CleaningConfig(data=config, output=str(output)))
    lines = {name: (output / f"{name}.jsonl").read_text().splitlines() for name in ("kept", "dropped", "valid", "test")}
    assert [len(lines[name]) for name in lines] == [len(GOOD), len(FAULTS), 20, 20]
    dropped = [json.loads(line) for line in lines["dropped"]]
    assert {row["rule"]: (row["en"], row["de"]) for row in dropped} == FAULTS
    page = (output / "cleaning.html").read_text()
    assert all(rule in page for rule in CLEANING_RULES if rule != "translation") and "1946" in page
    with pytest.raises(InputError, match="exists and is not empty"):
        clean(CleaningConfig(data=config, output=str(output)))


OCCUPIED, IN_USE = "exists and is not empty", "the current folder and mount points cannot be replaced"


@pytest.mark.parametrize(
    ("output", "reason"), [(".", IN_USE), ("a/..", IN_USE), ("/", IN_USE), ("..", OCCUPIED), ("a/../..", OCCUPIED)]
)
def test_clean_refuses_unusable_output(table, tmp_path, monkeypatch, output, reason):
    working = tmp_path / "working"
    working.mkdir()
    monkeypatch.chdir(working)
    with pytest.raises(InputError) as caught:
        clean(CleaningConfig(data=table(GOOD), output=output))
    assert str(caught.value) == f"output={output}: {reason}; take a new folder"
    assert list(working.iterdir()) == []
