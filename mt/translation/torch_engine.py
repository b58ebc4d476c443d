"""Search by the PyTorch model itself."""

import math
from pathlib import Path

import torch

from mt.config import DecodingChoice, DecodingConfig
from mt.core.errors import RunError
from mt.data.batching import collate
from mt.models.seq2seq import TranslationModel
from mt.storage.run_folder import TrainedModel
from mt.translation.beam_search import beam_search, greedy_search
from mt.translation.engine import Engine, SearchRequest
from mt.translation.hypotheses import Decoder, Hypothesis
from mt.translation.sampling import sample


class TorchEngine(Engine):
    """Searches with the model on its current device and with its current weights."""

    name = "torch"

    def __init__(self, model: TranslationModel, config: DecodingConfig) -> None:
        self.model = model
        self.config = config

    @classmethod
    def check(cls, config: DecodingConfig | DecodingChoice, device: torch.device, model_count: int) -> None:
        pass

    @classmethod
    def open(cls, model: TranslationModel, trained: TrainedModel, folder: Path, config: DecodingConfig) -> Engine:
        return cls(model, config)

    def rows_per_source(self, n_best: int | None = None, greedy: bool = False) -> int:
        if greedy:
            return 1
        return (n_best or self.config.n_best) if self.config.method == "sample" else self.config.beam_size

    @torch.inference_mode()
    def search(self, request: SearchRequest) -> list[list[Hypothesis]]:
        config, n_best = self.config, request.n_best or self.config.n_best
        batch = collate(range(len(request.sources)), request.sources, [[]] * len(request.sources))
        decoder = Decoder(self.model, batch.source.to(self.model.device), config, request.before_step)
        if request.greedy or (config.method == "beam" and config.beam_size == 1):
            found = greedy_search(decoder)
        elif config.method == "beam":
            found = beam_search(decoder, config.beam_size)
        else:
            found = sample(decoder, config, n_best, request.sampling_keys)
        if not all(hypotheses and math.isfinite(hypotheses[0].log_probability) for hypotheses in found):
            raise RunError("the model's scores are not finite: try precision=fp32, or bf16 instead of fp16")
        for hypotheses in found:
            hypotheses.sort(key=lambda hypothesis: -hypothesis.score(config.length_penalty))
        return [hypotheses[:n_best] for hypotheses in found]
