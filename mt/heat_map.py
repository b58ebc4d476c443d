"""Attention weights as a picture: target pieces down, source pieces across."""

from collections.abc import Sequence

from matplotlib.figure import Figure
from torch import Tensor


def heat_map(weights: Tensor, source_pieces: Sequence[str], target_pieces: Sequence[str], title: str) -> Figure:
    """weights (T, S) from 0 to 1; row t is how target piece t shared its attention among the source."""
    figure = Figure(figsize=(1.8 + 0.32 * len(source_pieces), 1.5 + 0.26 * len(target_pieces)), layout="constrained")
    axes = figure.add_subplot()
    image = axes.imshow(weights.float().cpu().numpy(), vmin=0, vmax=1, cmap="viridis", aspect="auto")
    axes.set_xticks(range(len(source_pieces)), [_legible(piece) for piece in source_pieces], rotation=60, ha="right")
    axes.set_yticks(range(len(target_pieces)), [_legible(piece) for piece in target_pieces])
    axes.set_title(title, fontsize=10)
    figure.colorbar(image, ax=axes, shrink=0.8)
    return figure


def _legible(piece: str) -> str:
    # Matplotlib would set $…$ as mathematics.
    return piece.replace("$", r"\$")
