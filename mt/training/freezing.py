"""Parts of a model that training leaves as they are (``training.freeze``).

A frozen parameter has no gradient, so that the optimizer has no state of it and does not change it. A parameter that
several parts share, such as the matrix of tied embeddings and output layer, is frozen in all of them.
"""

from mt.config import TrainingConfig
from mt.core.errors import InputError
from mt.core.wording import did_you_mean
from mt.models.embedding import LearnedPositions, TokenEmbedding
from mt.models.seq2seq import Seq2Seq


def freeze(model: Seq2Seq, settings: TrainingConfig) -> None:
    """Freeze the parts of a model that ``training.freeze`` names, in place.

    A part is a module that has parameters, under its path in the model, or ``embeddings``, which are all token and
    position embeddings.

    Raises:
        InputError: The model has no such part, or nothing is left to train.
    """
    parts = {name: [part] for name, part in model.named_modules(remove_duplicate=False) if [*part.parameters()]}
    parts["embeddings"] = [part for part in model.modules() if isinstance(part, TokenEmbedding | LearnedPositions)]
    for name in settings.freeze:
        if name not in parts:
            hint = did_you_mean(name, [*parts]) or "; some are embeddings, encoder, decoder, encoder.layers.0, output"
            raise InputError(f"training.freeze: the model has no part {name}{hint}")
        for part in parts[name]:
            part.requires_grad_(False)
    if not model.trained_parameter_count:
        raise InputError("training.freeze leaves nothing to train; name fewer parts")
