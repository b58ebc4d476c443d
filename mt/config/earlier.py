"""Translates configs of earlier versions into the terms of today's schema.

Today a setting that has no effect is refused; earlier versions accepted it. A run that was begun with such a setting
has to stay readable, and the same command without the setting has to go on with it. So its config is read as if the
setting had been left at its default.
"""

from mt.config import AugmentationConfig, TrainingConfig, scheduled_checkpoints


def as_of_today(values: dict) -> dict:
    """Translates the values of a config.yaml that was written before provenance.json said what took effect into those
    of today's schema. Sections that are not mappings are returned as they are, for the schema to refuse."""
    sections = {name: part for name, part in values.items() if isinstance(part, dict)}
    today = dict(values)
    if "training" in sections:
        is_lstm = sections.get("model", {}).get("architecture") == "rnn_attention"
        today["training"] = _training_of_today(sections["training"], is_lstm)
    if "data" in sections:
        today["data"] = _data_of_today(sections["data"])
        if _is_split(today["data"]):  # by the rule that is split_version=1 today
            today["data"] = {"split_version": 1} | today["data"]
    if "decoding" in sections:  # the seed is for sampling, and the test set has always been translated by beam search
        today["decoding"] = _without(sections["decoding"], "seed")
    return today


def with_text_layer(values: dict) -> dict:
    """Completes the values of a config.yaml that was written before there was a text layer: those runs had none, and
    their pairs were not changed."""
    return {"text": {"rules": 0, "augmentation": dict.fromkeys(AugmentationConfig.model_fields, 0.0)}} | values


def without_cleaning(values: dict) -> dict:
    """Completes the values of a config.yaml that was written before there was cleaning: those runs dropped nothing."""
    data = values.get("data")
    if not isinstance(data, dict) or "cleaning" in data:
        return values
    return values | {"data": {"cleaning": False} | data}


def _without(section: dict, *names: str) -> dict:
    return {name: value for name, value in section.items() if name not in names}


def _training_of_today(training: dict, is_lstm: bool) -> dict:
    today = dict(training)
    if isinstance(training.get("optimizer"), dict):
        today["optimizer"] = _optimizer_of_today(training["optimizer"], is_lstm)
    settings = TrainingConfig(max_updates=960).model_dump() | training  # 960 was the default
    settings["save_every"] = settings["save_every"] or settings["validate_every"]
    counts = [settings[name] for name in ("max_updates", "validate_every", "save_every")]
    if settings["weights"] == "average" and all(isinstance(n, int) and n > 0 for n in [*counts, settings["average"]]):
        # Such a run averaged as many checkpoints as there were.
        today["average"] = min(settings["average"], scheduled_checkpoints(*counts))
    return today


def _optimizer_of_today(optimizer: dict, is_lstm: bool) -> dict:
    """Translates ``muon``, once the default, into ``auto``: it meant Muon for a Transformer and AdamW for an LSTM."""
    if optimizer.get("kind") != "muon":
        return optimizer
    return _without(optimizer, *(["muon_iterations"] if is_lstm else [])) | {"kind": "auto"}


def _data_of_today(data: dict) -> dict:
    """Leaves out settings of the data that were never read: the numbers of pairs to hold out for a split that the
    corpus has already, and the validation and test data of all corpora of a mixture but the first."""
    listed = data.get("corpora")
    corpora = [part for part in listed if isinstance(part, dict)] if isinstance(listed, list) else []
    if isinstance(listed, list) and (not corpora or len(corpora) < len(listed)):
        return data
    ignored = [f"{split}_pairs" for split in ("valid", "test") if _names(corpora[0] if corpora else data, split)]
    today = _without(data, *ignored)
    if corpora:
        first, *others = (_without(corpus, *ignored) for corpus in corpora)
        # Pairs were held out of the first corpus alone, as many as it said itself.
        today |= {name: first[name] for name in ("valid_pairs", "test_pairs") if name in first}
        never_read = ("valid", "test", "valid_split", "test_split", "valid_pairs", "test_pairs")
        today["corpora"] = [first, *(_without(corpus, *never_read) for corpus in others)]
    return today


def _is_split(data: dict) -> bool:
    """Returns whether pairs were held out, or training pairs were dropped because another corpus held them out."""
    one_corpus_of_all_splits = all(_names(data, split) for split in ("valid", "test"))
    return data.get("kind") in ("recipe", "mixture") or not one_corpus_of_all_splits


def _names(corpus: dict, split: str) -> bool:
    """Returns whether a corpus says where a split is, by the rule of ``names_split`` in ``mt.config``."""
    if corpus.get("kind") == "hub":
        usual = {"valid": "validation", "test": "test"}
        return corpus.get(f"{split}_split") not in (None, usual[split])
    return corpus.get("kind") == "recipe" or corpus.get(split) is not None
