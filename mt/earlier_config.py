"""Configs of earlier versions in today's terms.

A setting that had no effect is refused today. A run that was begun with one has to stay readable, and has to go on with
the same command without that setting; so it is read as if the setting had been left at its default.
"""


def as_of_today(values: dict) -> dict:
    """The values of a config.yaml that was written before provenance.json said what took effect, as today's schema
    takes them. Sections that are none are returned as they are, for the schema to refuse."""
    data = values.get("data")
    if isinstance(data, dict):
        # Held-out pairs were chosen in the way that is called version 1 today.
        values = values | {"data": {"split_version": 1} | data}
    model, training = values.get("model"), values.get("training")
    if not isinstance(model, dict) or not isinstance(training, dict):
        return values
    optimizer = training.get("optimizer")
    if isinstance(optimizer, dict):
        is_lstm = model.get("architecture") == "rnn_attention"
        values = values | {"training": training | {"optimizer": _optimizer_of_today(optimizer, is_lstm)}}
    return values


def _optimizer_of_today(optimizer: dict, is_lstm: bool) -> dict:
    """``muon`` was the default, and meant what is called ``auto`` today: Muon for a Transformer, AdamW for an LSTM."""
    if optimizer.get("kind") != "muon":
        return optimizer
    ignored = {"muon_iterations"} if is_lstm else set()
    return {name: value for name, value in optimizer.items() if name not in ignored} | {"kind": "auto"}
