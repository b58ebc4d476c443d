"""Folders of encoder-decoder models that the library ``transformers`` computes: NLLB-200, M2M-100, mBART-50, MADLAD, T5
and others."""

from typing import Any

import torch

from mt.config import PiecesConfig, TransformerConfig
from mt.core.direction import ANY_DIRECTION, UNKNOWN_LANGUAGE, AskedDirection
from mt.core.errors import InputError
from mt.core.installation import optional_packages
from mt.storage.marian import TO_SAFETENSORS, read_search
from mt.storage.model_description import ModelDescription, TextLayerDescription
from mt.storage.model_folder import ModelFolder

UNLIMITED_RATIO = 1e-6
"""A ``decoding.max_length_ratio`` with which ``decoding.max_length_extra`` alone limits translations."""
BATCH_TOKENS = 1024
"""``decoding.batch_tokens``, because a vocabulary may have 256,000 tokens, and each position has a score for all."""


class TransformersFolder(ModelFolder):
    """A folder that ``transformers`` loads. Its model translates, and is not trained or exported."""

    files = ("*.json", "*.safetensors", "*.model", "*.spm", "*.txt")

    def read_description(self, asked: AskedDirection = ANY_DIRECTION) -> ModelDescription:
        """Return a description with the search of generation_config.json, of a model that translates in a direction.

        ``model`` and ``tokenizer`` are stand-ins, which nothing reads.
        """
        generation, decoding = read_search(self.path)
        search: dict[str, float] = {"batch_tokens": BATCH_TOKENS}
        if limit := generation.get("max_length"):  # which counts the start token and EOS
            search |= {"max_length_ratio": UNLIMITED_RATIO, "max_length_extra": max(0, limit - 2)}
        return ModelDescription(
            source_language=asked.source or UNKNOWN_LANGUAGE,
            target_language=asked.target or UNKNOWN_LANGUAGE,
            text=TextLayerDescription(enabled=False),
            model=TransformerConfig(architecture="transformer"),
            tokenizer=PiecesConfig(),
            decoding=decoding.model_copy(update=search),
            confidence=None,
        )

    def load(self) -> tuple[Any, Any]:
        """Return the tokenizer and the model of ``transformers``, in fp32 on the CPU.

        Raises:
            InputError: They cannot be loaded, for example because the weights are pickled.
        """
        with optional_packages():
            import transformers
        transformers.logging.set_verbosity_error()
        transformers.logging.disable_progress_bar()
        kinds = transformers.AutoTokenizer, transformers.AutoModelForSeq2SeqLM
        options: dict[str, Any] = {"use_safetensors": True, "trust_remote_code": False, "local_files_only": True}
        options |= {"attn_implementation": "eager", "dtype": torch.float32}  # others return no attention
        try:
            tokenizer, model = (kind.from_pretrained(self.path, **options) for kind in kinds)
        except Exception as error:  # of many kinds: damaged files, other architectures, missing packages
            reason = " ".join(str(error).split())
            raise InputError(
                f"{self.path}: transformers cannot load this as an encoder-decoder with weights in safetensors: "
                f"{reason[:300]}. To convert pickled weights: {TO_SAFETENSORS.format(self.path, 'FOLDER')}"
            ) from error
        return tokenizer, model
