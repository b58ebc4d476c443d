"""Dropout: right share, right scale, right gradient, and the same mask from the same seed."""

import torch

from mt.model.dropout import Dropout


def test_share_and_scale():
    torch.manual_seed(1)
    dropped = Dropout(0.3)(torch.ones(1000, 1001))
    kept = dropped != 0
    assert abs((~kept).float().mean() - round(0.3 * 256) / 256) < 0.002
    assert torch.allclose(dropped[kept], torch.tensor(256 / (256 - round(0.3 * 256))))
    assert abs(dropped.mean() - 1) < 0.003
    # Neighbours are independent: both fall out with the square of the probability.
    both = (~kept[:, 1:] & ~kept[:, :-1]).float().mean()
    assert abs(both - (round(0.3 * 256) / 256) ** 2) < 0.002


def test_the_gradient_passes_where_the_value_did():
    x = torch.randn(7, 9, requires_grad=True)
    y = Dropout(0.5)(x)
    y.sum().backward()
    assert torch.allclose(x.grad, (y / x).detach())


def test_same_seed_same_mask_and_a_new_one_each_call():
    layer, x = Dropout(0.5), torch.ones(64)
    torch.manual_seed(3)
    first, second = layer(x), layer(x)
    torch.manual_seed(3)
    assert torch.equal(layer(x), first)
    assert not torch.equal(first, second)


def test_nothing_happens_outside_training():
    x = torch.randn(5, 5)
    assert Dropout(0.5).eval()(x) is x
    assert Dropout(0.0)(x) is x
