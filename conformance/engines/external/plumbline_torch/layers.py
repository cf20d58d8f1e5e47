# SPDX-License-Identifier: Apache-2.0
"""Layers of the real families (docs/semantics.md): PyTorch's functions over parameters in the protocol's layout.

Activations x are of the storage type. A parameter may be of fp32 (a master weight, which is rounded where it is used;
PyTorch's autograd then gives it a gradient in fp32) or of the storage type already, as FSDP's and DeepSpeed's units
have it. Matrices of layers are [in, out], which nn.Linear holds transposed: what is sharded by its first dim, or
flat, so is contiguous in the protocol's order too.
"""
import math

import torch
from torch import nn
from torch.nn import functional


def parameter(*shape):
    return nn.Parameter(torch.zeros(shape))


class Linear(nn.Module):
    def __init__(self, width_in, width_out, bias=True):
        super().__init__()
        self.weight = parameter(width_in, width_out)
        self.bias = parameter(width_out) if bias else None

    def forward(self, x):
        bias = None if self.bias is None else self.bias.to(x.dtype)
        return functional.linear(x, self.weight.to(x.dtype).t(), bias)


class Rows(nn.Module):
    """An embedding, or a head, whose weight has a row for each token."""

    def __init__(self, rows, width):
        super().__init__()
        self.weight = parameter(rows, width)

    def forward(self, index, dtype):
        # Rounded after the look-up: the gradient of a row, a sum over its tokens, then is one in the weight's type.
        return functional.embedding(index, self.weight).to(dtype)

    def logits(self, h):
        return functional.linear(h, self.weight.to(h.dtype))


class LayerNorm(nn.Module):
    def __init__(self, width, epsilon):
        super().__init__()
        self.weight, self.bias, self.epsilon = parameter(width), parameter(width), epsilon

    def forward(self, x):
        return functional.layer_norm(x, x.shape[-1:], self.weight.to(x.dtype), self.bias.to(x.dtype), self.epsilon)


class RMSNorm(nn.Module):
    def __init__(self, width, epsilon):
        super().__init__()
        self.weight, self.epsilon = parameter(width), epsilon

    def forward(self, x):
        return functional.rms_norm(x, x.shape[-1:], self.weight.to(x.dtype), self.epsilon)


class Unused(nn.Module):
    """A parameter that takes part in nothing."""

    def __init__(self):
        super().__init__()
        self.weight = parameter(3, 5)


def drop(y, mask, rate):
    return y if mask is None else y * mask.to(y.dtype) / (1 - rate)


def heads(x, count):
    """[m, T, channels] as [m, count, T, channels / count]."""
    return x.unflatten(2, (count, -1)).transpose(1, 2)


def attention(q, k, v, mask, rate):
    """Causal, of heads [m, H, T, D]: softmax and its scale in fp32. Returns [m, T, H · D]."""
    scores = (q @ k.transpose(2, 3)).float() / math.sqrt(q.shape[3])
    past = torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device).tril()
    shares = drop(scores.masked_fill(~past, -math.inf).softmax(-1), mask, rate)
    return (shares.to(v.dtype) @ v).transpose(1, 2).flatten(2)


def loss(logits, labels, weights, count):
    """Σ u · ce / N of a micro-batch, with the N of the global batch: the shares of all of them add up to the loss."""
    ce = functional.cross_entropy(logits.float().flatten(0, 1), labels.flatten(), reduction="none")
    return (weights.flatten() * ce).sum() / count
