"""Search by CTranslate2, a C++ library, for the hypotheses that ``mt.translation.search`` defines.

CTranslate2 and our own search agree in this: a score is log P(hypothesis, end included) / lengthᵅ, where
``return_end_token`` makes the end count; a hypothesis is finished when it ends among the best ``beam_size`` of a step;
and a sentence is finished when ``beam_size`` (times ``patience``, which is 1) of its hypotheses are.

They differ in the cases below. A sentence for which one of them is found is searched again by the model itself, which
raises RunError if its scores are not finite.

- Length limit. At the limit, CTranslate2 breaks off, while our search ends the hypothesis. CTranslate2 has one limit
  for a batch, our search one for each sentence. So a sentence counts as searched differently if a hypothesis, end
  included, is longer than the sentence's limit. (Not in greedy search: there the hypothesis is ended at the limit, and
  the model only has to score it.)
- PAD, UNK and BOS. Our search never writes them. CTranslate2 can be told not to, but then leaves them out of the
  softmax's sum as well, while our search does not, and all scores change. So CTranslate2 is told instead that they are
  ends, too, and a sentence with one of them among its hypotheses counts as searched differently. (A hypothesis that
  ended with one of them and was then beaten by ``beam_size`` real ones is not noticed. It matters only if a real end at
  the same step just missed the best ``beam_size``.)
- Sources longer than the table of positions.
- Scores that are not finite.
"""

import logging
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from mt.config import DecodingChoice, DecodingConfig, TransformerConfig
from mt.core.errors import InputError
from mt.data.batching import collate
from mt.storage.run_folder import TrainedModel
from mt.text.tokenizer import EOS, UNK
from mt.translation.ctranslate2_conversion import (
    EXPORT_FOLDER,
    export_into,
    import_ctranslate2,
    max_positions,
    obstacles,
)
from mt.translation.engine import TorchEngine
from mt.translation.search import Hypothesis, forced_log_probabilities, longest_hypotheses

logger = logging.getLogger(__name__)

NO_PENALTY = 1e-9
"""Given to CTranslate2 in place of a length penalty of 0, at which it would stop as soon as the best hypothesis has
ended. A length to this power is 1 in fp32, as it is to the power 0."""


def check_machine(config: DecodingConfig | DecodingChoice, device: torch.device) -> None:
    """Raises InputError if CTranslate2 runs on this device but does not support ``decoding.compute_type`` there."""
    if config.compute_type is not None and not _machine_obstacles(device):
        supported = import_ctranslate2().get_supported_compute_types(device.type, device.index or 0)
        if config.compute_type not in supported:
            raise InputError(
                f"decoding.compute_type={config.compute_type} is not supported on this machine's {device.type}; "
                f"supported are {', '.join(sorted(supported))}"
            )


def open_engine(trained: TrainedModel, run: Path, config: DecodingConfig) -> "CTranslate2Engine | None":
    """Returns an engine with an export of the model, which is kept in the run folder.

    If CTranslate2 cannot be used, returns None after a warning with every reason.
    """
    device = trained.model.device
    reasons = [*obstacles(trained.description.model), *_machine_obstacles(device)]
    vocabulary = trained.tokenizers.target.vocabulary_size
    if 2 * config.beam_size > vocabulary:
        reasons.append(f"decoding.beam_size={config.beam_size}: it takes at most half of the {vocabulary} pieces")
    if reasons:
        logger.warning("PyTorch is used instead of CTranslate2: %s", "; ".join(reasons))
        return None
    exported = export_into(run, trained)
    try:
        engine = CTranslate2Engine(exported, str(run / EXPORT_FOLDER), trained, config)
        if device.type == "cuda":
            engine.find([[UNK]])
    except RuntimeError as error:
        if device.type != "cuda":
            raise
        # CTranslate2 does not use torch's CUDA libraries but looks for others, which may be missing.
        logger.warning("PyTorch is used instead of CTranslate2: %s", error)
        return None
    return engine


def _machine_obstacles(device: torch.device) -> list[str]:
    if device.type not in ("cpu", "cuda"):
        return [f"device={device}: it runs on CPUs and NVIDIA GPUs only"]
    if device.type == "cuda" and import_ctranslate2().get_cuda_device_count() == 0:
        return [f"device={device}: the CTranslate2 that is installed finds no GPU"]
    return []


class CTranslate2Engine:
    """Searches with CTranslate2. On a CPU it searches as many batches at a time as torch has threads, each on one core.

    ``search`` has the model itself search the sentences that CTranslate2 would search differently.
    """

    def __init__(
        self,
        files: dict[str, bytes],
        name: str,
        trained: TrainedModel,
        config: DecodingConfig,
    ) -> None:
        """
        Args:
            files: The export's contents by file name, as ``export_into`` returns them.
            name: What CTranslate2 calls the model.
        """
        assert isinstance(trained.description.model, TransformerConfig)
        device = trained.model.device
        self.model = trained.model
        self.config = config
        self.by_model = TorchEngine(trained.model, config)
        on_cpu = device.type == "cpu"
        compute_type = config.compute_type or "float32"
        # On a CPU, CTranslate2 cuts a core's batch itself, into parts of this many sentences. The numbers are the
        # fastest for beams of up to 5; wider ones get fewer sentences, so as not to take more memory. On a GPU, the
        # whole batch at a time (0) is the fastest.
        sentences = 128 if compute_type == "float32" else 32
        self._at_once = max(1, sentences * 5 // max(5, config.beam_size)) if on_cpu else 0
        self.rows_each = 1 if on_cpu else config.beam_size
        self.positions = max_positions(trained.description.model)
        source, target = trained.tokenizers.source, trained.tokenizers.target
        self._source_names = source.pieces(range(source.vocabulary_size))
        names = target.pieces(range(target.vocabulary_size))
        self._target_numbers = {name: number for number, name in enumerate(names)}
        self._end = names[EOS]
        self._ends = {self._end, *(names[piece] for piece in self.model.never_written)}
        threads = torch.get_num_threads()
        self._translator = import_ctranslate2().Translator(
            name,
            device.type,
            device_index=device.index or 0,
            compute_type=compute_type,
            inter_threads=threads if on_cpu else 1,
            intra_threads=1,
            files=files,
        )
        # CTranslate2 and torch share one OpenMP library, in which CTranslate2 has just set its own number of threads
        # for this thread.
        torch.set_num_threads(threads)

    def search(
        self,
        sources: Sequence[list[int]],
        sampling_keys: Sequence[tuple[int, ...]],
        before_step: Callable[[], None] = lambda: None,
    ) -> list[list[Hypothesis]]:
        """See Engine. Raises RunError if the model's scores are not finite.

        CTranslate2 does all steps by itself: ``before_step`` is called by the model's search alone.
        """
        found = self.find(sources)
        left = [place for place, hypotheses in enumerate(found) if not hypotheses]
        # The model may need more rows for each source than CTranslate2, but must keep to the rows of this batch.
        at_once = max(1, len(sources) * self.rows_each // self.by_model.rows_each)
        # They are searched right here, not after all batches, when one core would search the few that were left while
        # the others wait.
        for start in range(0, len(left), at_once):
            places = left[start : start + at_once]
            searched = self.by_model.search(
                [sources[n] for n in places], [sampling_keys[n] for n in places], before_step
            )
            for place, hypotheses in zip(places, searched, strict=True):
                found[place] = hypotheses
        return found

    def find(self, sources: Sequence[list[int]]) -> list[list[Hypothesis]]:
        """Searches with CTranslate2 alone. Returns an empty list for each sentence on which its search would differ
        from ours.

        See the module's docstring for these sentences. Arguments and results are as those of ``search``.
        """
        batch = collate(range(len(sources)), sources, [[]] * len(sources)).source
        limits = longest_hypotheses(self.model, batch, self.config).tolist()
        found: list[list[Hypothesis]] = [[] for _ in sources]
        fitting = [place for place, pieces in enumerate(sources) if len(pieces) < self.positions]
        if fitting:
            translated = self._translate([sources[place] for place in fitting], max(limits[place] for place in fitting))
            results = dict(zip(fitting, translated, strict=True))
            for place, result in results.items():
                found[place] = self._hypotheses(result, limits[place])
            if self.config.beam_size == 1:
                for place, hypothesis in self._ended_at_limit(results, sources, limits).items():
                    found[place] = [hypothesis]
        return found

    def _ended_at_limit(
        self, results: Mapping[int, Any], sources: Sequence[list[int]], limits: Sequence[int]
    ) -> dict[int, Hypothesis]:
        """Returns the greedy hypotheses that are longer than their limit, ended at it and scored by the model.

        The keys are the indices of their sources.
        """
        written = {
            place: self._numbers(result.hypotheses[0][: limits[place]])
            for place, result in results.items()
            if len(result.hypotheses[0]) > limits[place] and math.isfinite(result.scores[0])
        }
        if not written:
            return {}
        pairs = collate(list(written), [sources[place] for place in written], list(written.values()))
        pairs = pairs.to(self.model.device)
        totals = forced_log_probabilities(self.model, pairs.source, pairs.target_input, pairs.target_output)
        return {
            place: Hypothesis(pieces, total)
            for (place, pieces), total in zip(written.items(), totals.tolist(), strict=True)
        }

    def _numbers(self, names: Sequence[str]) -> list[int]:
        return [self._target_numbers[name] for name in names]

    def _translate(self, sources: Sequence[list[int]], longest: int) -> list[Any]:
        return self._translator.translate_batch(
            [[self._source_names[piece] for piece in pieces] for pieces in sources],
            max_batch_size=self._at_once,
            beam_size=self.config.beam_size,
            num_hypotheses=self.config.beam_size,
            length_penalty=self.config.length_penalty or NO_PENALTY,
            end_token=[EOS, *self.model.never_written],
            return_end_token=True,
            return_scores=True,
            min_decoding_length=0,
            max_decoding_length=min(longest + 1, self.positions),
            max_input_length=0,
        )

    def _hypotheses(self, result: Any, limit: int) -> list[Hypothesis]:
        """Returns the n_best hypotheses of a sentence, best first, or none if it was searched differently.

        See the module's docstring.
        """
        hypotheses, scores = result.hypotheses, result.scores
        if max(map(len, hypotheses)) > limit or not all(map(math.isfinite, scores)):
            return []
        for names in hypotheses:
            if names[-1] != self._end or not self._ends.isdisjoint(names[:-1]):
                return []
        best = list(zip(hypotheses, scores, strict=True))[: self.config.n_best]
        return [
            Hypothesis(self._numbers(names[:-1]), score * len(names) ** self.config.length_penalty)
            for names, score in best
        ]
