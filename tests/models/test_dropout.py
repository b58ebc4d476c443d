"""Dropout: right share, right scale, right gradient, and the same mask from the same seed."""

import pytest
import torch

from mt.models.dropout import Dropout, ReluDropout


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


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("probability", [0.0, 0.1, 0.9])
def test_with_a_relu_it_is_dropout_and_a_relu(probability, dtype):
    x = (torch.randn(50, 60) * 1e30).to(dtype)
    results = []
    for of in (ReluDropout(probability), lambda x: Dropout(probability)(x).relu()):
        torch.manual_seed(1)
        leaf = x.clone().requires_grad_()
        y = of(leaf * 1)
        y.backward(torch.arange(x.numel(), dtype=dtype).view(x.shape))
        results.append((y, leaf.grad))
    (y, gradient), (expected, expected_gradient) = results
    assert torch.equal(y == 0, expected == 0)
    rounding = {torch.float32: 1e-6, torch.bfloat16: 2**-7}[dtype]
    assert torch.allclose(y, expected, rtol=rounding)
    assert torch.allclose(gradient, expected_gradient, rtol=rounding)


def test_with_a_relu_nothing_but_the_result_is_kept_for_the_backward_pass():
    kept = []
    with torch.autograd.graph.saved_tensors_hooks(lambda x: kept.append(x) or x, lambda x: x):
        y = ReluDropout(0.1)(torch.randn(5, 6, requires_grad=True) * 1)
    assert [x.data_ptr() for x in kept] == [y.data_ptr()]


def test_with_a_relu_outside_training_it_is_a_relu():
    x = torch.randn(5, 5)
    assert torch.equal(ReluDropout(0.5).eval()(x.clone()), x.relu())
