"""Devices, number formats, memory and threads."""

import contextlib
import ctypes
import importlib.util
import logging
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

from mt.core.errors import InputError

logger = logging.getLogger(__name__)

CPU_INFO = Path("/proc/cpuinfo")
DEVICE = r"cpu|mps|cuda(:(0|[1-9][0-9]?))?"
"""Pattern of device names. The number has at most two digits, because PyTorch takes cuda:256 for cuda:0."""
PRECISIONS = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


def choose_device(wanted: str, key: str = "device") -> torch.device:
    """Return a device by name, and configure cuDNN for this process.

    ``auto`` is the GPU if there is one (CUDA, then Apple's), else the CPU.

    Raises:
        InputError: ``wanted`` is not the name of a device, or this machine does not have that device.
    """
    # Otherwise cuDNN's recurrent layers would round fp32 to TF32's ten bits.
    torch.backends.cudnn.allow_tf32 = False
    # cuDNN's attention makes a new plan for every shape, and batches and decoding steps keep coming in new shapes.
    torch.backends.cuda.enable_cudnn_sdp(False)
    if wanted == "auto":
        if torch.cuda.is_available():
            return torch.device("cuda")
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    if not re.fullmatch(DEVICE, wanted):
        raise InputError(f"{key}={wanted}: must be auto, cpu, mps, cuda, or cuda:N with N from 0 to 99")
    device = torch.device(wanted)
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise InputError(f"{key}={wanted}: this machine has {torch.cuda.device_count()} CUDA devices; take auto")
    if device.type == "mps" and not torch.backends.mps.is_available():
        raise InputError(f"{key}=mps: not available on this machine; take auto")
    return device


def choose_precision(wanted: str, device: torch.device, key: str = "precision") -> torch.dtype:
    """Return the number format of a name: ``auto`` or a key of PRECISIONS.

    ``auto`` is bf16 if the device multiplies it natively, otherwise fp16 on a CUDA GPU and fp32 elsewhere.

    Raises:
        InputError: The name is fp16 and the device is a CPU. The message names the setting, ``key``.
    """
    if wanted == "fp16" and device.type == "cpu":
        raise InputError(f"{key}=fp16 needs a GPU; on a CPU take bf16 or fp32")
    if wanted == "auto":
        without_bf16 = "fp16" if device.type == "cuda" else "fp32"
        wanted = "bf16" if multiplies_bf16(device) else without_bf16
    return PRECISIONS[wanted]


def warn_of_slow_precision(wanted: str, device: torch.device, key: str = "precision") -> None:
    """Log a warning if the precision is slow on this device."""
    if wanted == "bf16" and device.type == "cpu" and not multiplies_bf16(device):
        logger.warning("%s=bf16 is slow on this processor, which has no bf16 instructions: take auto or fp32", key)


def precision_name(precision: torch.dtype) -> str:
    """Return the name of a number format in configs: fp32, bf16 or fp16."""
    return next(name for name, dtype in PRECISIONS.items() if dtype == precision)


def check_compiler(device: torch.device) -> None:
    """Raise InputError if torch.compile does not work: it needs a C++ compiler on a CPU, Triton on a GPU."""
    try:
        torch.compile(lambda x: x + 1)(torch.ones(1, device=device))
    except RuntimeError as error:
        reason = str(error).partition("\n")[0]
        raise InputError(
            f"training.compile=true: torch.compile does not work on this machine, so leave this out: {reason}"
        ) from error


@lru_cache
def has_triton(device: torch.device) -> bool:
    """Return whether Triton's kernels run on a CUDA GPU: it has bf16, and Triton finds a C compiler."""
    if importlib.util.find_spec("triton") is None or not multiplies_bf16(device):
        return False
    try:
        from triton.runtime import driver

        driver.active.get_current_target()  # compiles the functions that launch kernels
    except Exception as error:  # Triton raises many kinds
        logger.warning(
            "Triton does not work on this machine, so training is slower; it needs a C compiler such as gcc: %s", error
        )
        return False
    return True


def eager_on_cpu(x: torch.Tensor) -> bool:
    """Return whether to use this project's own CPU kernels for x: it is on the CPU and torch.compile is not tracing.

    The compiler can only optimize PyTorch's own operators.
    """
    return x.device.type == "cpu" and not torch.compiler.is_compiling()


def multiplies_bf16(device: torch.device) -> bool:
    """Return whether the processor has instructions for bf16 and need not convert it to fp32 and back."""
    if device.type == "cuda":
        return torch.cuda.get_device_capability(device) >= (8, 0)
    if device.type == "cpu":
        return torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported()
    return False


@lru_cache
def mkl_is_slow() -> bool:
    """Return whether PyTorch multiplies fp32 matrices with MKL although oneDNN would be faster.

    On AMD processors, oneDNN uses AVX-512 and MKL does not.
    """
    return (
        torch.backends.mkl.is_available()
        and hasattr(torch.ops.mkldnn, "_linear_pointwise")
        and torch.backends.cpu.get_cpu_capability() == "AVX512"
        and _cpu_info("vendor_id") == "AuthenticAMD"
    )


def _cpu_info(field: str) -> str:
    """Return a field of /proc/cpuinfo, or an empty text on systems other than Linux."""
    with contextlib.suppress(OSError):
        if match := re.search(rf"^{field}\s*: (.*\S)", CPU_INFO.read_text(encoding="utf-8"), re.MULTILINE):
            return match[1]
    return ""


def processor_name() -> str:
    """Return the CPU's model name, or just its architecture if the system does not tell the name."""
    if name := _cpu_info("model name"):
        return name
    if sys.platform == "darwin":
        command = ["/usr/sbin/sysctl", "-n", "machdep.cpu.brand_string"]
        with contextlib.suppress(OSError, subprocess.CalledProcessError):
            return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    return platform.processor() or platform.machine()


def instruction_sets() -> list[str]:
    """Return the instruction sets of the processor that affect the speed or rounding of matrix products."""
    functions = {
        "AVX2": "_is_avx2_supported",
        "AVX-512": "_is_avx512_supported",
        "AVX-512 VNNI": "_is_vnni_supported",
        "AVX-512 BF16": "_is_avx512_bf16_supported",
        "AMX": "_is_amx_tile_supported",
        "AMX FP16": "_is_amx_fp16_supported",
    }
    # These are private functions of PyTorch, and not every version has all of them.
    return [name for name, function in functions.items() if getattr(torch.cpu, function, bool)()]


def multiplied_by(precision: torch.dtype, device: torch.device, compiled: bool) -> str:
    """Return the name of the library that multiplies matrices in a number format on a device."""
    if compiled:
        return "what torch.compile chooses"
    if device.type != "cpu":
        return {"cuda": "cuBLAS", "mps": "Metal"}[device.type]
    if precision == torch.bfloat16:
        return "oneDNN" if torch.ops.mkldnn._is_mkldnn_bf16_supported() else "PyTorch"
    match = re.search(r"BLAS_INFO=(\w+)", torch.__config__.show())
    blas = "MKL" if torch.backends.mkl.is_available() else match[1] if match else "PyTorch"
    return f"oneDNN where they are large, else {blas}" if mkl_is_slow() else blas


def autocast(device: torch.device, precision: torch.dtype) -> AbstractContextManager[None]:
    """Return a context manager for mixed precision: matrix products in ``precision``, delicate operations in fp32."""
    return torch.autocast(device.type, dtype=precision, enabled=precision != torch.float32)


def recurrent_layers_need_fp32(device: torch.device) -> bool:
    """Return whether PyTorch's LSTM must be given fp32 instead of being left to autocast.

    On a GPU, autocast makes cuDNN's LSTM compute in fp16, whatever type is requested. On a CPU, autocast asks for
    oneDNN's LSTM in bf16, which does not exist for processors without AVX-512.
    """
    return device.type == "cuda" or (device.type == "cpu" and not torch.ops.mkldnn._is_mkldnn_bf16_supported())


@contextmanager
def tf32_in_recurrent_layers(precision: torch.dtype) -> Iterator[None]:
    """Let cuDNN's recurrent layers round fp32 to TF32 inside this context if ``precision`` is no more exact than TF32.

    These layers get fp32 even under autocast.
    """
    torch.backends.cudnn.allow_tf32 = precision != torch.float32
    try:
        yield
    finally:
        torch.backends.cudnn.allow_tf32 = False


def copy_to_cpu_async(tensor: torch.Tensor) -> Callable[[], list]:
    """Start copying a tensor to the CPU, and return a function that waits for the copy and returns it as a list.

    On CUDA, this function waits only for work that was queued on the GPU before the copy, and not for later work.
    """
    if tensor.device.type != "cuda":
        return tensor.tolist
    copy, done = tensor.to("cpu", non_blocking=True), torch.cuda.Event()
    done.record(torch.cuda.current_stream(tensor.device))

    def values() -> list:
        done.synchronize()
        return copy.tolist()

    return values


@lru_cache
def cpu_threads() -> int:
    """Return torch's default number of threads, which is one per core.

    The first call stores the number, so it must come before any call of ``torch.set_num_threads``.
    """
    return torch.get_num_threads()


def keep_freed_memory() -> None:
    """Make glibc keep large buffers that were freed instead of returning them to the system.

    Every training step asks for the same buffers again, and faulting their pages in anew costs up to 15 % of a step.
    """
    if libc := _glibc():
        trim_threshold, mmap_max, arena_max = -1, -4, -8  # M_TRIM_THRESHOLD, M_MMAP_MAX and M_ARENA_MAX of malloc.h
        libc.mallopt(mmap_max, 0)
        libc.mallopt(arena_max, 1)  # other arenas, of threads, would not keep what is freed
        libc.mallopt(trim_threshold, 2**31 - 1)


def limit_kernel_caches() -> None:
    """Limit how many kernels oneDNN and PyTorch keep for reuse, to save memory.

    oneDNN caches a kernel for each of the last shapes: 16 are enough where one layer runs after another, and 8 per
    core where each core decodes a batch of its own. PyTorch caches 16 kernel descriptions in each thread.

    The default of both caches is 1,024 entries. An entry takes one or two megabytes, and batches and decoding steps
    keep coming in new shapes. Call this before the first operation of the process; later it has no effect.
    """
    os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", str(max(16, 8 * cpu_threads())))
    os.environ.setdefault("LRU_CACHE_CAPACITY", "16")


def return_freed_memory() -> None:
    """Make glibc return to the system the freed memory that it keeps after ``keep_freed_memory``.

    Batches of ever new shapes fragment the memory: without this, a process would grow to several times the size of a
    step. Returned pages have to be faulted in again, so call this now and then, not in every step.
    """
    if libc := _glibc():
        libc.malloc_trim(0)


@lru_cache
def _glibc() -> ctypes.CDLL | None:
    return ctypes.CDLL(None) if platform.libc_ver()[0] == "glibc" else None


def memory_bytes(device: torch.device) -> int:
    """Return the total memory in bytes of a CUDA GPU or, for any other device, of the machine."""
    if device.type == "cuda":
        return torch.cuda.get_device_properties(device).total_memory
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def peak_memory_bytes(device: torch.device) -> int:
    """Return the peak memory in bytes of this process so far, on a CUDA GPU or, for any other device, in RAM."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
