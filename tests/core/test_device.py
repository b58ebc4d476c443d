"""What is kept of freed memory, and given back; how exactly a GPU may compute."""

import json
import os
import platform
import subprocess
import sys

import pytest
import torch

from mt.core import device
from mt.core.device import (
    choose_device,
    cpu_threads,
    has_triton,
    instruction_sets,
    limit_kernel_caches,
    multiplied_by,
    processor_name,
    tf32_in_recurrent_layers,
    warn_of_slow_precision,
)
from mt.core.errors import InputError
from mt.training.command import train
from tests import toy

RESIDENT = """
def resident():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS")) // 1024
"""

KEEP_AND_RETURN = f"""
import json
import torch
from mt.core.device import keep_freed_memory, return_freed_memory
{RESIDENT}
keep_freed_memory()
blocks = [torch.ones(2**20) for _ in range(100)]  # 400 MiB
pins = [torch.ones(1) for _ in range(100)]
found = [resident()]
del blocks
found.append(resident())
return_freed_memory()
found.append(resident())
print(json.dumps(found))
"""

EVER_NEW_SHAPES = f"""
import torch
from mt.core.device import limit_kernel_caches
{RESIDENT}
torch.set_num_threads(1)
limit_kernel_caches()
weight, x = torch.ones(256, 256, dtype=torch.bfloat16), torch.ones(1300, 256, dtype=torch.bfloat16)
with torch.no_grad():
    torch.nn.functional.linear(x, weight)
    before = resident()
    for rows in range(1000, 1300):
        torch.nn.functional.linear(x[:rows], weight)
print(resident() - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc has mallopt")
def test_freed_memory_is_kept_until_it_is_returned():
    printed = subprocess.check_output([sys.executable, "-c", KEEP_AND_RETURN])
    full, kept, returned = json.loads(printed)
    assert kept > full - 50
    assert returned < full - 300


@pytest.mark.parametrize("name", ["cuda:00", "cuda:256", "cuda:200", "cuda:-1", "cuda:1\n", "gpu", "", "cuda: 1"])
def test_choose_device_refuses_unknown_names(name):
    with pytest.raises(InputError, match="must be auto, cpu, mps, cuda, or cuda:N"):
        choose_device(name)


@pytest.mark.parametrize(
    ("gpus", "has_mps", "usable", "refused", "automatic"),
    [
        (2, False, ["cuda", "cuda:0", "cuda:1", "cpu"], ["cuda:2", "mps"], "cuda"),
        (1, True, ["cuda", "cuda:0", "mps"], ["cuda:1"], "cuda"),
        (0, True, ["mps", "cpu"], ["cuda", "cuda:0"], "mps"),
        (0, False, ["cpu"], ["cuda", "cuda:0", "mps"], "cpu"),
    ],
)
def test_a_gpu_that_is_not_there_is_refused(monkeypatch, gpus, has_mps, usable, refused, automatic):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: gpus > 0)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: has_mps)
    assert [str(choose_device(name)) for name in usable] == usable and str(choose_device("auto")) == automatic
    for name in refused:
        reason = "not available on this machine" if name == "mps" else f"this machine has {gpus} CUDA devices"
        with pytest.raises(InputError, match=f"^device.of={name}: {reason}; take auto"):
            choose_device(name, "device.of")


def test_recurrent_layers_are_exact_but_in_training_with_less():
    choose_device("cpu")
    assert not torch.backends.cuda.cudnn_sdp_enabled()
    for precision, rounds in ((torch.bfloat16, True), (torch.float32, False)):
        assert not torch.backends.cudnn.allow_tf32
        with tf32_in_recurrent_layers(precision):
            assert torch.backends.cudnn.allow_tf32 == rounds
    assert not torch.backends.cudnn.allow_tf32


@pytest.mark.skipif(platform.system() != "Linux", reason="/proc tells the memory")
def test_ever_new_shapes_take_no_more_memory():
    grown = int(subprocess.check_output([sys.executable, "-c", EVER_NEW_SHAPES]))
    assert grown < 80  # MiB: 20 where oneDNN multiplies, and 130 to 200 if either cache were left as it is


def test_few_kernels_are_kept_unless_the_user_says_how_many(monkeypatch):
    usual = {"ONEDNN_PRIMITIVE_CACHE_CAPACITY": str(max(16, 8 * cpu_threads())), "LRU_CACHE_CAPACITY": "16"}
    for name in usual:
        monkeypatch.setenv(name, "")  # to be put back afterwards
        monkeypatch.delenv(name)
    limit_kernel_caches()
    assert {name: os.environ[name] for name in usual} == usual
    for name in usual:
        monkeypatch.setenv(name, "77")
    limit_kernel_caches()
    assert {os.environ[name] for name in usual} == {"77"}


def test_describe_cpu_reports_model_and_blas(monkeypatch, tmp_path):
    assert processor_name() and all(isinstance(name, str) for name in instruction_sets())
    (tmp_path / "cpuinfo").write_text("processor\t: 0\nvendor_id\t: AuthenticAMD\nmodel name\t: AMD EPYC 9R14 \n")
    monkeypatch.setattr(device, "CPU_INFO", tmp_path / "cpuinfo")
    assert processor_name() == "AMD EPYC 9R14"
    monkeypatch.setattr(device, "CPU_INFO", tmp_path / "none")
    assert sys.platform == "darwin" or processor_name() == (platform.processor() or platform.machine())
    for name in ("_is_avx2_supported", "_is_avx512_supported", "_is_avx512_bf16_supported", "_is_amx_tile_supported"):
        monkeypatch.setattr(torch.cpu, name, lambda name=name: "avx2" in name or "bf16" in name)
    for name in ("_is_vnni_supported", "_is_amx_fp16_supported"):
        monkeypatch.delattr(torch.cpu, name, raising=False)  # not in every version
    assert instruction_sets() == ["AVX2", "AVX-512 BF16"]
    monkeypatch.setattr(torch.backends.mkl, "is_available", lambda: True)
    found = []
    for slow in (True, False):
        monkeypatch.setattr(device, "mkl_is_slow", lambda slow=slow: slow)
        found.append(multiplied_by(torch.float32, torch.device("cpu"), False))
    assert found == ["oneDNN where they are large, else MKL", "MKL"]
    assert multiplied_by(torch.bfloat16, torch.device("cpu"), False) in ("oneDNN", "PyTorch")
    assert multiplied_by(torch.float32, torch.device("cuda"), False) == "cuBLAS"
    assert "torch.compile" in multiplied_by(torch.float32, torch.device("cpu"), True)


@pytest.mark.parametrize(
    ("wanted", "device_name", "native", "doubted"),
    [
        ("bf16", "cpu", False, True),
        ("bf16", "cpu", True, False),
        ("auto", "cpu", False, False),
        ("fp32", "cpu", False, False),
        ("bf16", "cuda", False, False),
    ],
)
def test_bf16_on_a_processor_without_it_is_doubted(monkeypatch, caplog, wanted, device_name, native, doubted):
    monkeypatch.setattr(device, "multiplies_bf16", lambda where: native)
    warn_of_slow_precision(wanted, torch.device(device_name))
    assert bool(caplog.records) == doubted


def test_a_machine_that_cannot_compile_is_reported_before_any_work(tmp_path, monkeypatch):
    monkeypatch.setattr("torch._inductor.config.cpp.cxx", (str(tmp_path / "no-compiler"),))
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "cache"))
    config = toy.config(tmp_path, training={"compile": True})
    with pytest.raises(InputError, match="torch.compile does not work on this machine.*no-compiler"):
        train(config)
    assert not config.folder.exists()


@pytest.mark.skipif(torch.cuda.is_available(), reason="Triton may work on this machine")
def test_a_gpu_on_which_triton_does_not_work_is_used_without_it(monkeypatch, caplog):
    pytest.importorskip("triton")
    monkeypatch.setattr(device, "multiplies_bf16", lambda gpu: True)
    has_triton.cache_clear()
    assert not has_triton(torch.device("cuda"))
    assert "Triton does not work on this machine" in caplog.text
    has_triton.cache_clear()
