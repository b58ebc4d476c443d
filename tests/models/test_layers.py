"""A linear layer is PyTorch's own, whichever library multiplies."""

import pytest
import torch
from torch import nn

from mt.core import device
from mt.models import layers as module
from mt.models.layers import Dropout, Linear, ReluDropout, add_weight_gradient, linear

ONEDNN = pytest.mark.skipif(not hasattr(torch.ops.mkldnn, "_linear_pointwise"), reason="this PyTorch has no oneDNN")
LIBRARIES = [False, pytest.param(True, marks=ONEDNN)]


@pytest.fixture(params=LIBRARIES, ids=["MKL", "oneDNN"])
def library(request, monkeypatch):
    monkeypatch.setattr(module, "mkl_is_slow", lambda: request.param)
    monkeypatch.setattr(module, "MIN_ONEDNN_MULTIPLICATIONS", 1)


def _rows_far_apart(rows, columns):
    return torch.randn(rows, 2 * columns)[:, :columns]


INPUTS = {
    "rows": torch.randn(40, 24),
    "one row": torch.randn(1, 24),
    "no row": torch.randn(0, 24),
    "a vector": torch.randn(24),
    "sentences": torch.randn(3, 5, 24),
    "sentences side by side": torch.randn(5, 3, 24).transpose(0, 1),
    "columns": torch.randn(24, 40).t(),
    "rows far apart": _rows_far_apart(40, 24),
    "one row repeated": torch.randn(1, 24).expand(40, 24),
}


@pytest.mark.parametrize("x", INPUTS.values(), ids=INPUTS)
@pytest.mark.parametrize("outputs", [1, 16, 1000])
@pytest.mark.parametrize("bias", [True, False])
def test_linear_equals_pytorch(library, x, outputs, bias):
    layer = Linear(24, outputs, bias=bias)
    x = x.detach().requires_grad_()
    factors = torch.randn(*x.shape[:-1], outputs)
    y = layer(x)
    assert y.is_contiguous()
    y = y.add_(1).sub_(1)  # as PyTorch's, it may be overwritten
    (y * factors).sum().backward()

    exact = nn.Linear(24, outputs, bias=bias).double()
    exact.load_state_dict(layer.state_dict())
    exact_x = x.detach().double().requires_grad_()
    exact_y = exact(exact_x)
    (exact_y * factors).sum().backward()
    assert torch.allclose(y.double(), exact_y, atol=1e-5)
    assert torch.allclose(x.grad.double(), exact_x.grad, atol=1e-4)
    for ours, theirs in zip(layer.parameters(), exact.parameters(), strict=True):
        assert torch.allclose(ours.grad.double(), theirs.grad, atol=1e-4)


def test_linear_accepts_any_weight_strides(library):
    x = torch.randn(7, 24)
    for weight in (torch.randn(24, 16).t(), _rows_far_apart(16, 24), torch.randn(48, 16).t()[:, ::2]):
        assert torch.allclose(linear(x, weight).double(), x.double() @ weight.double().t(), atol=1e-5)


@pytest.mark.parametrize(("inputs", "outputs"), [(24, 500), (500, 24)])
def test_add_weight_gradient(library, inputs, outputs):
    gradient, x = torch.randn(1200, outputs), torch.randn(1200, inputs)
    total = torch.ones(outputs, inputs)
    expected = 1 + gradient.double().t() @ x.double()
    assert torch.allclose(add_weight_gradient(total, gradient, x).double(), expected, atol=1e-3)


def test_linear_computes_only_needed_gradients(library):
    layer, x = Linear(24, 16), torch.randn(7, 24)
    layer.bias.requires_grad_(False)
    layer(x).sum().backward()
    assert x.grad is None and layer.bias.grad is None
    assert torch.allclose(layer.weight.grad, x.sum(dim=0).expand(16, 24), atol=1e-5)
    with torch.inference_mode():
        assert not layer(x).requires_grad


@pytest.mark.parametrize("library", LIBRARIES[1:], indirect=True)
def test_onednn_linear_refuses_second_derivative(library):
    x = torch.randn(7, 24, requires_grad=True)
    (gradient,) = torch.autograd.grad(Linear(24, 16)(x).pow(2).sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        gradient.sum().backward()


@pytest.mark.parametrize("library", LIBRARIES[1:], indirect=True)
def test_compiled_linear_is_plain_linear(library):
    found = []

    def note(graph, inputs):
        found.extend(str(node.target) for node in graph.graph.nodes if node.op == "call_function")
        return graph

    torch.compiler.reset()
    x, weight = torch.randn(3, 4), torch.randn(2, 4)
    product = torch.compile(linear, backend=note, fullgraph=True)(x, weight, None)
    assert torch.equal(product, x @ weight.T)
    assert len(found) == 1 and "linear" in found[0]


def test_small_products_use_mkl(monkeypatch):
    monkeypatch.setattr(module, "mkl_is_slow", lambda: True)
    called = []
    monkeypatch.setattr(torch.ops.mkldnn, "_linear_pointwise", lambda x, *rest: called.append(x.shape) or x[:, :256])
    layer = Linear(256, 256, bias=False)
    layer(torch.randn(31, 256))
    assert not called
    layer(torch.randn(32, 256))
    assert called == [(32, 256)]


def test_linear_under_autocast_and_in_double(library):
    layer, x = Linear(24, 16), torch.randn(7, 24)
    plain = nn.Linear(24, 16)
    plain.load_state_dict(layer.state_dict())
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert layer(x).dtype == torch.bfloat16 and torch.equal(layer(x), plain(x))
    assert torch.equal(layer.double()(x.double()), plain.double()(x.double()))


@ONEDNN
@pytest.mark.parametrize(
    ("cpu_info", "capability", "slow"),
    [
        ("processor : 0\nvendor_id\t: AuthenticAMD\nflags : avx512f", "AVX512", True),
        ("vendor_id\t: AuthenticAMD", "AVX2", False),
        ("vendor_id\t: GenuineIntel", "AVX512", False),
        ("CPU implementer\t: 0x41", "DEFAULT", False),
        (None, "AVX512", False),
    ],
)
def test_mkl_is_slow_on_amd_avx512(monkeypatch, tmp_path, cpu_info, capability, slow):
    if cpu_info is not None:
        (tmp_path / "cpuinfo").write_text(cpu_info)
    monkeypatch.setattr(device, "CPU_INFO", tmp_path / "cpuinfo")
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: capability)
    monkeypatch.setattr(torch.backends.mkl, "is_available", lambda: True)
    assert device.mkl_is_slow.__wrapped__() == slow


def test_dropout_share_and_scale():
    torch.manual_seed(1)
    dropped = Dropout(0.3)(torch.ones(1000, 1001))
    kept = dropped != 0
    assert abs((~kept).float().mean() - round(0.3 * 256) / 256) < 0.002
    assert torch.allclose(dropped[kept], torch.tensor(256 / (256 - round(0.3 * 256))))
    assert abs(dropped.mean() - 1) < 0.003
    # Neighbors are independent: both fall out with the square of the probability.
    both = (~kept[:, 1:] & ~kept[:, :-1]).float().mean()
    assert abs(both - (round(0.3 * 256) / 256) ** 2) < 0.002


def test_dropout_gradient_has_same_mask():
    x = torch.randn(7, 9, requires_grad=True)
    y = Dropout(0.5)(x)
    y.sum().backward()
    assert torch.allclose(x.grad, (y / x).detach())


def test_dropout_mask_depends_on_seed():
    layer, x = Dropout(0.5), torch.ones(64)
    torch.manual_seed(3)
    first, second = layer(x), layer(x)
    torch.manual_seed(3)
    assert torch.equal(layer(x), first)
    assert not torch.equal(first, second)


def test_dropout_is_identity_in_evaluation():
    x = torch.randn(5, 5)
    assert Dropout(0.5).eval()(x) is x
    assert Dropout(0.0)(x) is x


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("probability", [0.0, 0.1, 0.9])
def test_relu_dropout_equals_dropout_and_relu(probability, dtype):
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


def test_relu_dropout_saves_only_its_result():
    kept = []
    with torch.autograd.graph.saved_tensors_hooks(lambda x: kept.append(x) or x, lambda x: x):
        y = ReluDropout(0.1)(torch.randn(5, 6, requires_grad=True) * 1)
    assert [x.data_ptr() for x in kept] == [y.data_ptr()]


def test_relu_dropout_is_relu_in_evaluation():
    x = torch.randn(5, 5)
    assert torch.equal(ReluDropout(0.5).eval()(x.clone()), x.relu())
