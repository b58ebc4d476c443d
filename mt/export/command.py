"""``python -m mt export``: writes a trained model in the format of another program."""

from collections.abc import Callable

from mt.config import ExportConfig, ExportFormat
from mt.export import ctranslate2, hugging_face

EXPORTERS: dict[ExportFormat, Callable[[ExportConfig], None]] = {
    "ctranslate2": ctranslate2.export_ctranslate2,
    "hugging_face": hugging_face.export_hugging_face,
    "argos": ctranslate2.export_argos,
}


def export(config: ExportConfig) -> None:
    """Export the model of ``config.run`` in the format ``config.format`` to ``config.output``.

    Raises:
        InputError: The run cannot be read, the other program cannot run the model, or the output exists.
    """
    EXPORTERS[config.format](config)
