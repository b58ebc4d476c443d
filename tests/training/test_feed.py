"""Updates take the batches of the epochs in their order, and tell where the data has to go on after them."""

import contextlib
from itertools import chain, islice

import pytest
import torch

from mt.data.batching import BatchSettings, TrainingBatches
from mt.distributed.workers import Workers
from mt.training.feed import feed
from tests import toy

ALONE = Workers(torch.device("cpu"))


@pytest.fixture(scope="module")
def batches(tmp_path_factory):
    folder = tmp_path_factory.mktemp("feed")
    toy.write_corpus(folder, "copy", train=60)
    targets = folder / "train.yy"
    targets.write_text("".join(f"{line} ba de\n" for line in targets.read_text().splitlines()))
    data = toy.prepared(toy.config(folder))
    settings = BatchSettings(toy.config(folder).text.augmentation, 0.0, seed=1, batch_tokens=100)
    return TrainingBatches(data.train, data.layer, settings, ALONE)


@pytest.mark.parametrize(("epoch", "start"), [(0, 0), (1, 2)])
@pytest.mark.parametrize("accumulate", [1, 3])
def test_updates_take_one_batch_after_another_and_tell_the_place_behind_them(batches, epoch, start, accumulate):
    places = [(number, batch) for number in range(epoch, 4) for batch in range(batches.batches_in_epoch(number))]
    places = places[start:]
    expected = chain(*(batches.epoch(number, start if number == epoch else 0) for number in range(epoch, 4)))
    with contextlib.closing(feed(batches, epoch, start, accumulate, ALONE)) as updates:
        for ready in islice(updates, 2 * batches.batches_in_epoch(epoch) // accumulate):
            taken = list(islice(expected, accumulate))
            assert [one.ids.tolist() for one in ready.batches] == [one.ids.tolist() for one in taken]
            here, places = places[:accumulate], places[accumulate:]
            assert (ready.epoch, ready.batch) == (here[-1][0], here[-1][1] + 1)
            assert ready.source_tokens == sum(one.source_tokens for one in taken)
            assert ready.target_tokens == sum(one.target_tokens for one in taken)
            assert ready.padded_tokens == sum(one.target_output.numel() for one in taken)
            assert ready.source_tokens < ready.target_tokens
