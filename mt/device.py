"""Where the arithmetic runs and in which number format."""

import contextlib
import ctypes
import os
import platform
import re
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import lru_cache
from pathlib import Path

import torch

from mt.config import DEVICE
from mt.errors import InputError

CPU_INFO = Path("/proc/cpuinfo")
PRECISIONS = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


def choose_device(wanted: str) -> torch.device:
    """``auto`` is the GPU where there is one (CUDA, then Apple's), else the CPU. Settles how this process uses a GPU.

    Raises InputError for what is no device, or none that this machine has.
    """
    _keep_cudnn_exact_and_quick()
    if wanted == "auto":
        if torch.cuda.is_available():
            return torch.device("cuda")
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    if not re.fullmatch(DEVICE, wanted):
        raise InputError(f"device={wanted}: must be auto, cpu, mps, cuda, or cuda:N with N from 0 to 99")
    device = torch.device(wanted)
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise InputError(f"device={wanted}: this machine has {torch.cuda.device_count()} CUDA devices; take auto")
    if device.type == "mps" and not torch.backends.mps.is_available():
        raise InputError("device=mps: not available on this machine; take auto")
    return device


def _keep_cudnn_exact_and_quick() -> None:
    # Its recurrent layers would round fp32 to TF32's ten bits.
    torch.backends.cudnn.allow_tf32 = False
    # Its attention plans anew for every shape, and batches and decoding steps have ever new ones.
    torch.backends.cuda.enable_cudnn_sdp(False)


def choose_precision(wanted: str, device: torch.device) -> torch.dtype:
    """``auto`` is bf16 where the processor multiplies it natively, fp16 on older GPUs, else fp32."""
    if wanted == "fp16" and device.type == "cpu":
        raise InputError("precision=fp16 needs a GPU; on a CPU take bf16 or fp32")
    if wanted == "auto":
        without_bf16 = "fp16" if device.type == "cuda" else "fp32"
        wanted = "bf16" if multiplies_bf16(device) else without_bf16
    return PRECISIONS[wanted]


def doubt_about(wanted: str, device: torch.device) -> str | None:
    """What to say of a precision that was asked for and will be slow; None for all others."""
    if wanted != "bf16" or device.type != "cpu" or multiplies_bf16(device):
        return None
    return "precision=bf16: this processor has no instructions for it and is faster in fp32; take auto"


def name_of(precision: torch.dtype) -> str:
    """As in a config: fp32, bf16 or fp16."""
    return next(name for name, dtype in PRECISIONS.items() if dtype == precision)


def check_compiler(device: torch.device) -> None:
    """Raises InputError where torch.compile lacks what it needs: on a CPU a C++ compiler, on a GPU Triton."""
    try:
        torch.compile(lambda x: x + 1)(torch.ones(1, device=device))
    except RuntimeError as error:
        reason = str(error).partition("\n")[0]
        raise InputError(f"training.compile=true: torch.compile does not work on this machine: {reason}") from error


def eager_on_cpu(x: torch.Tensor) -> bool:
    """Whether x is where what we wrote for CPUs is of use: not while torch.compile looks for what it would put instead
    of PyTorch's own operators."""
    return x.device.type == "cpu" and not torch.compiler.is_compiling()


def multiplies_bf16(device: torch.device) -> bool:
    """Whether the processor has instructions for it, and need not convert to fp32 and back."""
    if device.type == "cuda":
        return torch.cuda.get_device_capability(device) >= (8, 0)
    if device.type == "cpu":
        return torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported()
    return False


@lru_cache
def mkl_is_slow() -> bool:
    """Whether PyTorch multiplies fp32 matrices with MKL on a processor whose AVX-512 MKL does not use, AMD's, and has
    oneDNN, which does."""
    return (
        torch.backends.mkl.is_available()
        and hasattr(torch.ops.mkldnn, "_linear_pointwise")
        and torch.backends.cpu.get_cpu_capability() == "AVX512"
        and _processor_maker() == "AuthenticAMD"
    )


def _processor_maker() -> str:
    """As x86 processors name it; empty where the system, which is not Linux, does not tell."""
    found = re.search(r"vendor_id\s*: (\w+)", _cpu_info())
    return found[1] if found else ""


def _cpu_info() -> str:
    """What Linux tells of the processor; empty on other systems."""
    try:
        return CPU_INFO.read_text(encoding="utf-8")
    except OSError:
        return ""


def processor_name() -> str:
    """The processor's name as its maker wrote it, or as much as the system tells."""
    if found := re.search(r"^model name\s*: (.*\S)", _cpu_info(), re.MULTILINE):
        return found[1]
    if sys.platform == "darwin":
        command = ["/usr/sbin/sysctl", "-n", "machdep.cpu.brand_string"]
        with contextlib.suppress(OSError, subprocess.CalledProcessError):
            return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    return platform.processor() or platform.machine()


def instruction_sets() -> list[str]:
    """Those of the processor on which the speed, or the rounding, of products of matrices depends."""
    functions = {
        "AVX2": "_is_avx2_supported",
        "AVX-512": "_is_avx512_supported",
        "AVX-512 VNNI": "_is_vnni_supported",
        "AVX-512 BF16": "_is_avx512_bf16_supported",
        "AMX": "_is_amx_tile_supported",
        "AMX FP16": "_is_amx_fp16_supported",
    }
    # Private functions of PyTorch, not all of which every version has.
    return [name for name, function in functions.items() if getattr(torch.cpu, function, bool)()]


def multiplied_by(precision: torch.dtype, device: torch.device, compiled: bool) -> str:
    """Which library multiplies matrices in a number format."""
    if compiled:
        return "what torch.compile chooses"
    if device.type != "cpu":
        return {"cuda": "cuBLAS", "mps": "Metal"}[device.type]
    if precision == torch.bfloat16:
        return "oneDNN" if torch.ops.mkldnn._is_mkldnn_bf16_supported() else "PyTorch"
    found = re.search(r"BLAS_INFO=(\w+)", torch.__config__.show())
    blas = "MKL" if torch.backends.mkl.is_available() else found[1] if found else "PyTorch"
    return f"oneDNN where they are large, else {blas}" if mkl_is_slow() else blas


def autocast(device: torch.device, precision: torch.dtype) -> AbstractContextManager[None]:
    """Matrix products in ``precision``, everything delicate in fp32."""
    return torch.autocast(device.type, dtype=precision, enabled=precision != torch.float32)


def recurrent_layers_need_fp32(device: torch.device) -> bool:
    """Whether PyTorch's LSTM cannot be left to autocast.

    On a GPU, autocast makes cuDNN's LSTM compute in fp16, whatever type it was told. On a CPU it asks for oneDNN's
    LSTM in bf16, which processors without AVX-512 do not have.
    """
    return device.type == "cuda" or (device.type == "cpu" and not torch.ops.mkldnn._is_mkldnn_bf16_supported())


@contextmanager
def tf32_in_recurrent_layers(precision: torch.dtype) -> Iterator[None]:
    """Inside this cuDNN's recurrent layers, which get fp32 even under autocast, may round it to TF32 if ``precision``
    is no more exact than that."""
    torch.backends.cudnn.allow_tf32 = precision != torch.float32
    try:
        yield
    finally:
        torch.backends.cudnn.allow_tf32 = False


def later(tensor: torch.Tensor) -> Callable[[], list]:
    """Sends a tensor on its way to the CPU; what is returned tells its values. On CUDA that waits for no more than had
    been asked of the GPU by now."""
    if tensor.device.type != "cuda":
        return tensor.tolist
    copy, arrived = tensor.to("cpu", non_blocking=True), torch.cuda.Event()
    arrived.record(torch.cuda.current_stream(tensor.device))

    def values() -> list:
        arrived.synchronize()
        return copy.tolist()

    return values


@lru_cache
def cpu_threads() -> int:
    """As many as torch takes by itself, one a core. The first call remembers it, and must come before anyone sets
    another number."""
    return torch.get_num_threads()


def keep_freed_memory() -> None:
    """Let glibc keep large buffers that were freed instead of returning them to the system.

    Every training step asks for the same buffers again; faulting their pages in anew costs up to 15 % of a step.
    """
    if libc := _glibc():
        trim_threshold, mmap_max = -1, -4  # M_TRIM_THRESHOLD and M_MMAP_MAX of malloc.h
        libc.mallopt(mmap_max, 0)
        libc.mallopt(trim_threshold, 2**31 - 1)


def keep_few_kernels() -> None:
    """Let oneDNN keep the kernels of the last few shapes: 16 serve one layer after another, 8 a core as many batches
    that are decoded side by side; and let PyTorch keep, in each thread, what led to as few of them.

    By themselves both keep 1,024, together one or two megabytes each, and batches and decoding steps have ever new
    shapes. Without effect after the first operation of the process.
    """
    os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", str(max(16, 8 * cpu_threads())))
    os.environ.setdefault("LRU_CACHE_CAPACITY", "16")


def return_freed_memory() -> None:
    """Give back what was kept.

    Batches of ever new shapes leave holes: a process that never did this would come to hold several times what a step
    needs. The pages given back are faulted in again, so this is for now and then, not for every step.
    """
    if libc := _glibc():
        libc.malloc_trim(0)


@lru_cache
def _glibc() -> ctypes.CDLL | None:
    return ctypes.CDLL(None) if platform.libc_ver()[0] == "glibc" else None


def memory_bytes(device: torch.device) -> int:
    """All the memory that the GPU, or the machine, has."""
    if device.type == "cuda":
        return torch.cuda.get_device_properties(device).total_memory
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def peak_memory_bytes(device: torch.device) -> int:
    """The most memory this process has held: on the GPU, or of the machine."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
