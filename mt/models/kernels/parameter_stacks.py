"""The parameters of a model, copied into one tensor for each shape, so that few kernels cast, clip and sum all of them.

On a GPU, a kernel for each parameter takes longer to launch than to compute.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn


class ParameterStacks:
    """Stacks of a model's parameters. A stack holds parameters of one shape and kind.

    The parameters themselves stay where they are: optimizer, checkpoints and export see no difference.
    """

    def __init__(self, model: nn.Module, products: Sequence[Sequence[nn.Linear]]) -> None:
        """
        Args:
            model: The model.
            products: Lists of layers with biases that multiply the same input.
        """
        groups: list[list[Tensor]] = []
        for layers in products:
            groups += [layer.weight for layer in layers], [layer.bias for layer in layers]
        grouped = {parameter for group in groups for parameter in group}
        groups += [[parameter] for parameter in model.parameters() if parameter not in grouped]
        full_precision = {
            parameter
            for part in model.modules()
            if not isinstance(part, nn.Linear)
            for parameter in part.parameters(recurse=False)
        }
        self._stacks: dict[tuple, list[list[Tensor]]] = {}
        """(shape, whether it is used in fp32) → the groups of a stack, in order."""
        for group in groups:
            self._stacks.setdefault((group[0].shape, group[0] in full_precision), []).append(group)
        self.gradients = [torch.zeros_like(leaf) for leaf in self.leaves()]
        """The gradient of each stack, a sum."""
        parameters = [parameter for groups in self._stacks.values() for group in groups for parameter in group]
        parts = [part for gradient in self.gradients for part in gradient.unbind()]
        self.parameter_gradients = list(zip(parameters, parts, strict=True))
        """Each parameter with its part of ``gradients``."""

    def leaves(self) -> list[Tensor]:
        """Return copies of the parameters, one tensor for each stack. Gradients are taken with respect to them."""
        return [
            torch.stack([parameter.detach() for group in groups for parameter in group]).requires_grad_()
            for groups in self._stacks.values()
        ]

    def weights(self, leaves: Sequence[Tensor], precision: torch.dtype) -> dict[Tensor, Tensor]:
        """Return the weights of the forward pass by their parameter, or by the first one of a product.

        The weights (O, I) of a product are one above the other. Parameters of linear layers are in ``precision``, and
        all others in fp32.

        Args:
            leaves: From ``leaves``.
            precision: The number format of matrix products.
        """
        weights: dict[Tensor, Tensor] = {}
        for ((_, in_fp32), groups), leaf in zip(self._stacks.items(), leaves, strict=True):
            stack = leaf if in_fp32 else leaf.to(precision)
            for group, part in zip(groups, stack.split([len(group) for group in groups]), strict=True):
                weights[group[0]] = part.flatten(0, 1)
        return weights
