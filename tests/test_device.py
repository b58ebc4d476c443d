"""What is kept of freed memory, and given back; how exactly a GPU may compute."""

import json
import os
import platform
import subprocess
import sys

import pytest
import torch

from mt.device import choose_device, cpu_threads, keep_few_kernels, tf32_in_recurrent_layers

KEEP_AND_RETURN = """
import json
import torch
from mt.device import keep_freed_memory, return_freed_memory

def resident():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS")) // 1024

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


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc is told what to keep")
def test_freed_memory_is_kept_until_it_is_returned():
    printed = subprocess.check_output([sys.executable, "-c", KEEP_AND_RETURN])
    full, kept, returned = json.loads(printed)
    assert kept > full - 50
    assert returned < full - 300


def test_recurrent_layers_are_exact_but_in_training_with_less():
    choose_device("cpu")
    assert not torch.backends.cuda.cudnn_sdp_enabled()
    for precision, rounds in ((torch.bfloat16, True), (torch.float32, False)):
        assert not torch.backends.cudnn.allow_tf32
        with tf32_in_recurrent_layers(precision):
            assert torch.backends.cudnn.allow_tf32 == rounds
    assert not torch.backends.cudnn.allow_tf32


def test_few_kernels_are_kept_unless_the_user_says_how_many(monkeypatch):
    monkeypatch.setenv("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "")  # to be put back afterwards
    monkeypatch.delenv("ONEDNN_PRIMITIVE_CACHE_CAPACITY")
    keep_few_kernels()
    assert int(os.environ["ONEDNN_PRIMITIVE_CACHE_CAPACITY"]) == max(16, 8 * cpu_threads())
    monkeypatch.setenv("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "77")
    keep_few_kernels()
    assert os.environ["ONEDNN_PRIMITIVE_CACHE_CAPACITY"] == "77"
