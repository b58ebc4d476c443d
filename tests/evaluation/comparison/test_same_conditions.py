"""Both architectures see the same batches in the same order: plan and sampling hang on the seed, not on the model."""

from itertools import islice

import torch

from mt.config.resolved import Resolved
from mt.distributed.workers import Workers
from mt.training.trainer import Trainer
from mt.training.updater import prefetch_updates
from tests import toy


def _first_batches(folder, architecture, count):
    config = toy.config(folder, architecture, architecture, tokenizer={"sampling": 0.2})
    config.folder.mkdir(parents=True)
    alone = Workers(torch.device("cpu"))
    trainer = Trainer(Resolved(config), toy.prepared(config), alone, None)
    updates = prefetch_updates(trainer.batches, 0, 0, 1, alone)
    try:
        return [update.batches[0] for update in islice(updates, count)]
    finally:
        updates.close()


def test_architectures_see_equal_batches(tmp_path):
    toy.write_corpus(tmp_path, "reverse", train=600)
    first, second = (_first_batches(tmp_path, architecture, 100) for architecture in toy.MODELS)
    assert len(first) == 100
    for one, other in zip(first, second, strict=True):
        for name in ("ids", "source", "target"):
            assert torch.equal(getattr(one, name), getattr(other, name))
