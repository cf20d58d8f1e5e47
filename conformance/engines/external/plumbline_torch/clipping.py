# SPDX-License-Identifier: Apache-2.0
"""Norm and clipping of gradients, of {name: parameter}: torch.nn.utils, and clipping by units, which PyTorch lacks."""
import torch
from torch.nn import utils

from .optimizers import entry_of

ROWS = ("embed.weight", "pos.weight", "head.weight", "unused.weight")


def clipped(config, named):
    """Those that are not exempt."""
    is_exempt = [False] + [not entry.get("clip", True) for entry in config.groups]
    return {name: parameter for name, parameter in named.items() if not is_exempt[entry_of(config, name)]}


def total_norm(named):
    return utils.get_total_norm([parameter.grad for parameter in named.values()])


def _unit_norms(name, tensor):
    """Broadcasts over `tensor`: rows of embeddings and heads, columns of other matrices, a vector as a whole."""
    dims = 0 if tensor.dim() < 2 else 1 if name in ROWS else 0
    return torch.linalg.vector_norm(tensor, dim=dims, keepdim=True)


@torch.no_grad()
def clip_units(named, ratio, eps):
    for name, parameter in named.items():
        norms = _unit_norms(name, parameter.grad)
        limits = ratio * _unit_norms(name, parameter).clamp(min=eps)
        parameter.grad.mul_(torch.where(norms > limits, limits / norms, 1))


def clip(config, named, norm):
    """Of what clipped() returned, whose total norm is `norm`."""
    if config.gradient_clipping > 0:
        utils.clip_grads_with_norm_(named.values(), config.gradient_clipping, norm)
    elif config.clips == "unit":
        clip_units(named, config.adaptive_clipping.get("ratio", 0.01), config.adaptive_clipping.get("eps", 1e-3))
