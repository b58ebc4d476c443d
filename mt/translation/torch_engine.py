"""Search by the PyTorch model itself."""

import math

import torch

from mt.config import DecodingConfig
from mt.core.errors import RunError
from mt.models.seq2seq import TranslationModel
from mt.translation.beam_search import beam_search
from mt.translation.engine import Engine, SearchRequest
from mt.translation.hypotheses import Hypothesis, SearchState
from mt.translation.sampling import greedy_search, sample
from mt.translation.trained_model import TrainedModel


class TorchEngine(Engine):
    """Searches with the model on its current device and with its current weights."""

    name = "torch"

    def __init__(self, model: TranslationModel, config: DecodingConfig) -> None:
        self.model = model
        self.config = config

    @classmethod
    def check(cls, config: DecodingConfig, device: torch.device, model_count: int) -> None:
        pass

    @classmethod
    def open(cls, model: TranslationModel, trained: TrainedModel, config: DecodingConfig) -> Engine:
        return cls(model, config)

    def rows_per_source(self, request: SearchRequest) -> int:
        if request.greedy:
            return 1
        return (request.n_best or self.config.n_best) if self.config.method == "sample" else self.config.beam_size

    @torch.inference_mode()
    def search(self, request: SearchRequest) -> list[list[Hypothesis]]:
        config, n_best = self.config, request.n_best or self.config.n_best
        decoder = SearchState(self.model, request.sources, config, request.before_step, request.constraints)
        if request.greedy or (config.method == "beam" and config.beam_size == 1):
            all_hypotheses = greedy_search(decoder)
        elif config.method == "beam":
            all_hypotheses = beam_search(decoder, config.beam_size)
        else:
            all_hypotheses = sample(decoder, config, n_best, request.sampling_keys)
        if not all(hypotheses and math.isfinite(hypotheses[0].log_probability) for hypotheses in all_hypotheses):
            raise RunError("the model's scores are not finite: try precision=fp32, or bf16 instead of fp16")
        for hypotheses in all_hypotheses:
            hypotheses.sort(key=lambda hypothesis: -hypothesis.score(config.length_penalty))
        return [hypotheses[:n_best] for hypotheses in all_hypotheses]
