"""Several validation sets: each has its own loss and scores, and one of them decides."""

from mt.training.checkpoint import newest_checkpoint
from mt.training.command import train
from tests import toy
from tests.data.corpora import load, texts, write
from tests.training.runs import read_results, read_validations, train_until


def test_named_validation_sets_equal_separate_sets(folder):
    chat, news = ([f"{folder}/{split}.{language}" for language in ("xx", "yy")] for split in ("test", "valid"))
    alone = toy.config(folder, "alone", data={"valid": chat}, training={"metric": "loss"})
    training = {"metric": "2.loss", "valid_bleu_pairs": 16}
    both = toy.config(folder, "both", data={"valid": {"news": news, "2": [chat]}}, training=training)
    train(alone)
    train_until(both, 12)
    train(both)
    assert read_results(alone)["best_valid_score"] == read_results(both)["best_valid_score"]
    best = [newest_checkpoint(each.folder).progress for each in (alone, both)]
    assert best[0].best_loss == best[1].best_loss and best[0].best_chrf == best[1].best_chrf
    for expected, line in zip(*(read_validations(each.folder) for each in (alone, both)), strict=True):
        for key in ("loss", "bleu", "chrf"):
            assert line[f"2.{key}"] == expected[key]
            assert line["news." + key] == line[key]
        assert line["loss"] != expected["loss"]


def test_validation_tables_skip_empty_pairs(tmp_path):
    news, chat = (write(tmp_path / f"{name}.tsv", [f"{name}\ta", "\tb", "c\td"]) for name in ("news", "chat"))
    sets = {"news": news, "chat": chat}
    corpus = load(kind="table", train=news, valid=sets, test=news, source_column=0, target_column=1)
    assert [texts(pairs) for pairs in corpus.validation_sets().values()] == [[(name, "a"), ("c", "d")] for name in sets]
