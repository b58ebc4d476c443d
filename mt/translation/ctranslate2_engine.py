"""Search by CTranslate2, a C++ library, as ``mt.translation.hypotheses`` defines scores, ends and limits.

CTranslate2 and the search of PyTorch agree in these rules:

- A score is log P(hypothesis, EOS included) / lengthᵅ. With ``return_end_token``, EOS counts.
- A hypothesis is finished when it ends among the best ``beam_size`` of a step.
- A sentence is finished when ``beam_size`` (times ``patience``, which is 1) of its hypotheses are.

They differ in the cases below. Sentences with one of them are searched again by PyTorch, which raises RunError if
scores are not finite.

- Length limit: At the limit, CTranslate2 breaks off, while PyTorch's search ends the hypothesis with EOS. CTranslate2
  has one limit for a batch, PyTorch's search has one for each sentence. So a sentence is searched again if a
  hypothesis, EOS included, is longer than the limit of the sentence.
- Suppressed tokens (PAD, UNK and BOS): CTranslate2 can suppress tokens, but then excludes them from the softmax, which
  changes all scores. So they are declared as further EOS tokens, and a sentence is searched again if one of its
  hypotheses has them. (A hypothesis that ended with such a token and was then beaten by ``beam_size`` others is not
  detected. It makes a difference only if a hypothesis that ended with EOS at the same step just missed the best
  ``beam_size``.)
- Sources longer than the table of positions.
- Scores that are not finite.
"""

import logging
import math
import tempfile
from pathlib import Path
from typing import Any

import torch

from mt.config import DecodingConfig, TransformerConfig
from mt.core.errors import InputError
from mt.models.seq2seq import TranslationModel
from mt.tokenizer.tokenizer import EOS, UNK
from mt.translation.ctranslate2_conversion import ctranslate2_obstacles, import_ctranslate2, max_positions, write_model
from mt.translation.engine import Engine, SearchRequest
from mt.translation.hypotheses import Hypotheses, Hypothesis, collate_sources, hypothesis_limits
from mt.translation.torch_engine import TorchEngine
from mt.translation.trained_model import TrainedModel

logger = logging.getLogger(__name__)

NO_PENALTY = 1e-9
"""Replaces a length penalty of 0, at which CTranslate2 would stop as soon as the best hypothesis has ended. A length to
this power is 1 in fp32."""


class CTranslate2Engine(Engine):
    """Searches with CTranslate2. On a CPU, it searches as many batches at once as torch has threads, each on one core.

    PyTorch searches the sentences that CTranslate2 would search differently.
    """

    name = "ctranslate2"

    def __init__(self, trained: TrainedModel, config: DecodingConfig) -> None:
        """Convert a model, and load the result on the model's device."""
        assert isinstance(trained.description.model, TransformerConfig)
        self.model = trained.model
        self.config = config
        self.fallback = TorchEngine(trained.model, config)
        self.max_positions = max_positions(trained.description.model)
        self._on_cpu = trained.model.device.type == "cpu"
        compute_type = config.compute_type or "float32"
        # On a CPU, CTranslate2 divides a core's batch into parts of this many sentences. The numbers are the fastest
        # for beams of up to 5. Wider beams get fewer sentences, to limit the memory. On a GPU, an undivided batch (0)
        # is the fastest.
        sentences = 128 if compute_type == "float32" else 32
        self.max_batch_size = max(1, sentences * 5 // max(5, config.beam_size)) if self._on_cpu else 0
        self._source_names = trained.tokenizers.source.all_subwords()
        names = trained.tokenizers.target.all_subwords()
        self._target_ids = {name: token for token, name in enumerate(names)}
        self._eos = names[EOS]
        self._end_tokens = {self._eos, *(names[token] for token in self.model.suppressed_tokens)}
        threads = torch.get_num_threads()
        with tempfile.TemporaryDirectory() as folder:
            write_model(trained, Path(folder))
            self._translator = import_ctranslate2().Translator(
                folder,
                trained.model.device.type,
                device_index=trained.model.device.index or 0,
                compute_type=compute_type,
                inter_threads=threads if self._on_cpu else 1,
                intra_threads=1,
            )
        # CTranslate2 has just set its number of threads for this thread, in the OpenMP library that torch uses, too.
        torch.set_num_threads(threads)

    @classmethod
    def check(cls, config: DecodingConfig, device: torch.device, model_count: int) -> None:
        if model_count > 1:
            raise InputError("CTranslate2 does not combine several models: set decoding.engine=torch for an ensemble")
        if config.compute_type is not None and not _machine_obstacles(device):
            supported = import_ctranslate2().get_supported_compute_types(device.type, device.index or 0)
            if config.compute_type not in supported:
                raise InputError(
                    f"decoding.compute_type={config.compute_type} is not supported on this machine's {device.type}; "
                    f"supported are {', '.join(sorted(supported))}"
                )

    @classmethod
    def open(cls, model: TranslationModel, trained: TrainedModel, config: DecodingConfig) -> Engine:
        """Convert the model, and return its engine; or warn with all obstacles, and return a ``TorchEngine``."""
        device = trained.model.device
        reasons = [*ctranslate2_obstacles(trained.description.model), *_machine_obstacles(device)]
        vocabulary = trained.tokenizers.target.vocabulary_size
        if 2 * config.beam_size > vocabulary:
            reasons.append(f"decoding.beam_size={config.beam_size}: it takes at most half of the {vocabulary} tokens")
        if not reasons:
            try:
                engine = cls(trained, config)
                if device.type == "cuda":
                    engine.search_with_ctranslate2(SearchRequest([[UNK]], [()]))
                return engine
            except RuntimeError as error:
                # CTranslate2 does not use torch's CUDA libraries but looks for others, which may be missing.
                if device.type != "cuda":
                    raise
                reasons.append(str(error))
        logger.warning(
            "PyTorch is used instead of CTranslate2: %s; decoding.engine=torch avoids this warning", "; ".join(reasons)
        )
        return TorchEngine(model, config)

    def rows_per_source(self, request: SearchRequest) -> int:
        if any(request.constraints):
            return self.fallback.rows_per_source(request)
        return 1 if self._on_cpu or request.greedy else self.config.beam_size

    def search(self, request: SearchRequest) -> Hypotheses:
        """Return the hypotheses of each source; see ``Engine.search``.

        Only PyTorch calls ``before_step``. It searches all sources with constraints, and those that CTranslate2 would
        search differently.
        """
        without_results: Hypotheses = [[] for _ in request.sources]
        all_hypotheses = without_results if any(request.constraints) else self.search_with_ctranslate2(request)
        remaining = [index for index, hypotheses in enumerate(all_hypotheses) if not hypotheses]
        # PyTorch may need more rows for each source than CTranslate2, but must not exceed the rows of this batch.
        count = max(1, len(all_hypotheses) * self.rows_per_source(request) // self.fallback.rows_per_source(request))
        # The remaining sources of all batches together would be searched by one core while the others wait.
        for start in range(0, len(remaining), count):
            indices = remaining[start : start + count]
            for index, hypotheses in zip(indices, self.fallback.search(request.select(indices)), strict=True):
                all_hypotheses[index] = hypotheses
        return all_hypotheses

    def search_with_ctranslate2(self, request: SearchRequest) -> Hypotheses:
        """Return the hypotheses that CTranslate2 finds for each source; none for sources that it searches differently.

        The docstring of the module lists the differences.
        """
        sources, beam_size = request.sources, 1 if request.greedy else self.config.beam_size
        limits = hypothesis_limits(self.model, collate_sources(sources), self.config).tolist()
        all_hypotheses: Hypotheses = [[] for _ in sources]
        short = [index for index, tokens in enumerate(sources) if len(tokens) < self.max_positions]
        if short:
            max_length = max(limits[index] for index in short)
            translated = self._translator.translate_batch(
                [[self._source_names[token] for token in sources[index]] for index in short],
                max_batch_size=self.max_batch_size,
                beam_size=beam_size,
                num_hypotheses=beam_size,
                length_penalty=self.config.length_penalty or NO_PENALTY,
                end_token=[EOS, *self.model.suppressed_tokens],
                return_end_token=True,
                return_scores=True,
                min_decoding_length=0,
                max_decoding_length=min(max_length + 1, self.max_positions),
                max_input_length=0,
            )
            for index, result in zip(short, translated, strict=True):
                all_hypotheses[index] = self._hypotheses(result, limits[index], request, index)
        return all_hypotheses

    def _hypotheses(self, result: Any, limit: int, request: SearchRequest, index: int) -> list[Hypothesis]:
        """Return the hypotheses of the source at an index, best first; none if PyTorch would search it differently.

        Args:
            result: The result of CTranslate2 for this source.
            limit: The length limit of the source.
            request: The request.
            index: The index of the source in the request.
        """
        hypotheses, scores = result.hypotheses, result.scores
        if not all(map(math.isfinite, scores)):
            return []
        if max(map(len, hypotheses)) > limit:
            # If the checker rejects the truncated hypothesis of a greedy search, for example because it is a loop,
            # PyTorch only needs to search the source under constraints.
            truncated = Hypothesis([self._target_ids[name] for name in hypotheses[0][:limit]], -math.inf)
            checker = request.checkers[index] if request.checkers and not hypotheses[1:] else None
            is_rejected = checker and checker.violated_constraints(request.sources[index], truncated.tokens)
            return [truncated] if is_rejected else []
        if any(names[-1] != self._eos or not self._end_tokens.isdisjoint(names[:-1]) for names in hypotheses):
            return []
        best = list(zip(hypotheses, scores, strict=True))[: request.n_best or self.config.n_best]
        return [
            Hypothesis(
                [self._target_ids[name] for name in names[:-1]], score * len(names) ** self.config.length_penalty
            )
            for names, score in best
        ]


def _machine_obstacles(device: torch.device) -> list[str]:
    """Return every reason why CTranslate2 cannot run on a device of this machine; an empty list if it can."""
    if device.type not in ("cpu", "cuda"):
        return [f"device={device}: it runs on CPUs and NVIDIA GPUs only"]
    if device.type == "cuda" and import_ctranslate2().get_cuda_device_count() == 0:
        return [f"device={device}: the CTranslate2 that is installed finds no GPU"]
    return []
