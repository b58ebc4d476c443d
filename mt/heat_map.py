"""Attention weights as a picture: target pieces down, source pieces across."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from torch import Tensor


def heat_map(weights: Tensor, source_pieces: Sequence[str], target_pieces: Sequence[str], title: str) -> Figure:
    """weights (T, S) from 0 to 1; row t is how target piece t shared its attention among the source."""
    figure = Figure(figsize=(1.8 + 0.32 * len(source_pieces), 1.5 + 0.26 * len(target_pieces)), layout="constrained")
    axes = figure.add_subplot()
    image = draw_heat_map(axes, weights, source_pieces, target_pieces, title)
    figure.colorbar(image, ax=axes, shrink=0.8)
    return figure


def draw_heat_map(
    axes: Axes,
    weights: Tensor,
    source_pieces: Sequence[str],
    target_pieces: Sequence[str],
    title: str,
    font_size: float = 10,
) -> AxesImage:
    """The same into one of several axes."""
    image = axes.imshow(weights.float().cpu().numpy(), vmin=0, vmax=1, cmap="viridis", aspect="auto")
    sources, targets = ([_legible(piece) for piece in pieces] for pieces in (source_pieces, target_pieces))
    axes.set_xticks(range(len(sources)), sources, rotation=60, ha="right", fontsize=font_size)
    axes.set_yticks(range(len(targets)), targets, fontsize=font_size)
    axes.set_title(title, fontsize=font_size)
    return image


def _legible(piece: str) -> str:
    # Matplotlib would set $…$ as mathematics.
    return piece.replace("$", r"\$")
