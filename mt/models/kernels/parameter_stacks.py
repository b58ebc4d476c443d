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

    def __init__(self, model: nn.Module, products: Sequence[Sequence[str]]) -> None:
        """
        Args:
            model: The model.
            products: Names of parameters that are used together: a list of weights that multiply the same input, or
                of their biases.
        """
        parameters = dict(model.named_parameters())
        fused = {name for names in products for name in names}
        groups = [*products, *([name] for name in parameters if name not in fused)]
        full_precision = {
            id(parameter)
            for part in model.modules()
            if not isinstance(part, nn.Linear)
            for parameter in part.parameters(recurse=False)
        }
        self._stacks: dict[tuple, list[Sequence[str]]] = {}
        """(shape, whether it is used in fp32) → the groups of names of a stack, in order."""
        for names in groups:
            parameter = parameters[names[0]]
            self._stacks.setdefault((parameter.shape, id(parameter) in full_precision), []).append(names)
        self._parameters = [
            [parameters[name] for names in groups for name in names] for groups in self._stacks.values()
        ]
        self.gradients = [torch.zeros_like(torch.stack([p.detach() for p in stack])) for stack in self._parameters]
        """The gradient of each stack, a sum to which ``add_gradients`` adds."""

    def leaves(self) -> list[Tensor]:
        """Return copies of the parameters, one tensor for each stack. Gradients are taken with respect to them."""
        return [torch.stack([p.detach() for p in stack]).requires_grad_() for stack in self._parameters]

    def weights(self, leaves: Sequence[Tensor], precision: torch.dtype) -> dict[str, Tensor]:
        """Return the weights of the forward pass by the name of the parameter, or of the first one of a product.

        The weights (O, I) of a product are one above the other. Parameters of linear layers are in ``precision``, and
        all others in fp32.

        Args:
            leaves: From ``leaves``.
            precision: The number format of matrix products.
        """
        weights = {}
        for ((_, in_fp32), groups), leaf in zip(self._stacks.items(), leaves, strict=True):
            stack = leaf if in_fp32 else leaf.to(precision)
            for names, part in zip(groups, stack.split([len(names) for names in groups]), strict=True):
                weights[names[0]] = part.flatten(0, 1)
        return weights

    def add_gradients(self, gradients: Sequence[Tensor]) -> None:
        """Add the gradients of the leaves to ``self.gradients``."""
        for total, gradient in zip(self.gradients, gradients, strict=True):
            total.add_(gradient)

    def hand_over(self) -> None:
        """Make ``self.gradients`` the gradients of the parameters, without copying."""
        for parameters, gradient in zip(self._parameters, self.gradients, strict=True):
            for parameter, part in zip(parameters, gradient.unbind(), strict=True):
                parameter.grad = part

    def flattened_gradients(self) -> Tensor:
        """Return the gradients of all parameters in the order of ``self.gradients``, in one dimension."""
        return torch.cat([p.grad.flatten() for stack in self._parameters for p in stack if p.grad is not None])
