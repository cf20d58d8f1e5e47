# SPDX-License-Identifier: Apache-2.0
"""Family llama (docs/semantics.md) as a torch module, called like gpt2.py's."""
import torch
from torch import nn
from torch.nn import functional

from .layers import Linear, RMSNorm, Rows, Unused, attention, drop, heads, loss


def turned(y, positions, theta):
    """rot of heads [m, H, T, D]: channels i and i + D/2 are a pair. In fp32, and rounded once."""
    half = y.shape[3] // 2
    exponents = torch.arange(half, dtype=torch.float32, device=y.device) / -half
    angles = positions[:, None] * theta**exponents
    cos, sin = angles.cos(), angles.sin()
    first, second = y.float().split(half, 3)
    return torch.cat((first * cos - second * sin, second * cos + first * sin), 3).to(y.dtype)


class Attention(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.heads, self.groups, self.rate = model["heads"], model["kv_heads"], model["dropout"]
        self.theta, width = model["rope_theta"], model["width"]
        narrow = width // self.heads * self.groups
        self.q, self.k, self.v, self.out = (Linear(width, out, bias=False) for out in (width, narrow, narrow, width))

    def forward(self, h, positions, mask):
        q = turned(heads(self.q(h), self.heads), positions, self.theta)
        k = turned(heads(self.k(h), self.groups), positions, self.theta)
        k, v = (x.repeat_interleave(self.heads // self.groups, 1) for x in (k, heads(self.v(h), self.groups)))
        return self.out(attention(q, k, v, mask, self.rate))


class Mlp(nn.Module):
    def __init__(self, model):
        super().__init__()
        width, hidden = model["width"], model["hidden"]
        self.gate, self.up = (Linear(width, hidden, bias=False) for _ in range(2))
        self.down = Linear(hidden, width, bias=False)

    def forward(self, h):
        return self.down(functional.silu(self.gate(h)) * self.up(h))


class Block(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.rate = model["dropout"]
        self.norm1, self.norm2 = (RMSNorm(model["width"], model["norm_epsilon"]) for _ in range(2))
        self.attn, self.mlp = Attention(model), Mlp(model)

    def forward(self, x, positions, scores_mask, attention_mask, mlp_mask):
        x = x + drop(self.attn(self.norm1(x), positions, scores_mask), attention_mask, self.rate)
        return x + drop(self.mlp(self.norm2(x)), mlp_mask, self.rate)


class Llama(nn.Module):
    def __init__(self, model, storage):
        super().__init__()
        self.storage, self.rate = storage, model["dropout"]
        self.embed = Rows(model["vocab"], model["width"])
        self.layers = nn.ModuleList(Block(model) for _ in range(model["layers"]))
        self.norm = RMSNorm(model["width"], model["norm_epsilon"])
        self.head = Rows(model["vocab"], model["width"])
        self.unused = Unused() if model["unused"] else None

    def forward(self, tokens, labels, weights, positions, count, masks):
        x = drop(self.embed(tokens, self.storage), masks.get("embedding"), self.rate)
        for number, layer in enumerate(self.layers):
            sites = ("scores", "attention_out", "mlp_out")
            x = layer(x, positions, *(masks.get("%s.%d" % (site, number)) for site in sites))
        return loss(self.head.logits(self.norm(x)), labels, weights, count)
