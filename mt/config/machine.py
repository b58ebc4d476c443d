"""The settings of device, threads and number format."""

from collections.abc import Iterator
from typing import Literal

from mt.config.fields import Device, Section, Threads

Precision = Literal["auto", "fp32", "bf16", "fp16"]


class MachineConfig(Section):
    """The settings of all commands that run a model."""

    device: Device = "auto"
    """Device to compute on: auto, cpu, mps, cuda or cuda:N. auto: a GPU if there is one."""
    threads: Threads = 0
    """Number of CPU threads of each process. 0: as many as PyTorch chooses."""


class PrecisionConfig(MachineConfig):
    """The settings of commands whose number format can be chosen."""

    precision: Precision = "fp32"
    """Number format of matrix products. auto: bf16 if the processor has instructions for it, fp16 on older GPUs,
    otherwise fp32."""

    def contradictions(self) -> Iterator[str]:
        if self.device == "cpu" and self.precision == "fp16":
            yield "precision=fp16 needs a GPU: on device=cpu take bf16 or fp32"
