"""Our translator, as ``translate.py`` runs it."""

from collections.abc import Callable
from pathlib import Path

from mt.config import DecodingConfig
from mt.core.device import limit_kernel_caches
from mt.translation.translator import Translator


def make_translate(run: Path, beam_size: int) -> Callable[[list[str]], list[str]]:
    """From lines to their translations; 1 is greedy search."""
    limit_kernel_caches()
    return Translator.load(run, DecodingConfig(beam_size=beam_size), device="cpu").translate
