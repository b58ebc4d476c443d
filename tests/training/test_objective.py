"""The chunked loss against PyTorch's own, value and gradients."""

import pytest
import torch
from torch.nn import functional

from mt.training.objective import smoothed_cross_entropy


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("rows", [1, 511, 512, 1300])
def test_loss_and_gradients_equal_pytorchs(rows, smoothing):
    torch.manual_seed(0)
    features = torch.randn(rows, 8, requires_grad=True)
    weight = torch.randn(40, 8, requires_grad=True)
    gold = torch.randint(40, (rows,))
    loss = smoothed_cross_entropy(features, weight, gold, smoothing) / rows
    actual = torch.autograd.grad(loss, (features, weight))
    expected_loss = functional.cross_entropy(features @ weight.T, gold, label_smoothing=smoothing)
    expected = torch.autograd.grad(expected_loss, (features, weight))
    assert torch.allclose(loss, expected_loss, rtol=1e-5)
    for ours, theirs in zip(actual, expected, strict=True):
        assert torch.allclose(ours, theirs, atol=1e-6)


def test_under_bf16_autocast_it_stays_close_to_the_formula():
    torch.manual_seed(0)
    features, weight = torch.randn(600, 16, requires_grad=True), torch.randn(50, 16, requires_grad=True)
    gold = torch.randint(50, (600,))
    with torch.autocast("cpu", torch.bfloat16):
        loss = smoothed_cross_entropy(features, weight, gold, 0.1)
    loss.backward()
    exact = functional.cross_entropy(features @ weight.T, gold, label_smoothing=0.1, reduction="sum")
    expected = torch.autograd.grad(exact, (features, weight))
    assert torch.isclose(loss, exact, rtol=2e-3)
    assert features.grad.dtype == weight.grad.dtype == torch.float32
    for ours, theirs in zip((features.grad, weight.grad), expected, strict=True):
        assert (ours - theirs).norm() < 0.02 * theirs.norm()
