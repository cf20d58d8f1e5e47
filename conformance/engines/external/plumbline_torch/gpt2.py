# SPDX-License-Identifier: Apache-2.0
"""Family gpt2 (docs/semantics.md) as a torch module. `model` is a case's; masks are [m, ...] bools by "site" or
"site.layer", as models.py makes them, or None."""
from torch import nn
from torch.nn import functional

from .layers import LayerNorm, Linear, Rows, Unused, attention, drop, heads, loss


class Attention(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.heads, self.rate = model["heads"], model["dropout"]
        self.qkv, self.out = Linear(model["width"], 3 * model["width"]), Linear(model["width"], model["width"])

    def forward(self, h, mask):
        q, k, v = (heads(x, self.heads) for x in self.qkv(h).chunk(3, 2))
        return self.out(attention(q, k, v, mask, self.rate))


class Mlp(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.up, self.down = Linear(model["width"], model["hidden"]), Linear(model["hidden"], model["width"])

    def forward(self, h):
        return self.down(functional.gelu(self.up(h), approximate="tanh"))


class Block(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.rate = model["dropout"]
        self.norm1, self.norm2 = (LayerNorm(model["width"], model["norm_epsilon"]) for _ in range(2))
        self.attn, self.mlp = Attention(model), Mlp(model)

    def forward(self, x, scores_mask, attention_mask, mlp_mask):
        x = x + drop(self.attn(self.norm1(x), scores_mask), attention_mask, self.rate)
        return x + drop(self.mlp(self.norm2(x)), mlp_mask, self.rate)


class Gpt2(nn.Module):
    def __init__(self, model, storage):
        super().__init__()
        self.storage, self.rate = storage, model["dropout"]
        self.embed, self.pos = (Rows(model[rows], model["width"]) for rows in ("vocab", "positions"))
        self.layers = nn.ModuleList(Block(model) for _ in range(model["layers"]))
        self.norm = LayerNorm(model["width"], model["norm_epsilon"])
        self.head = None if model["tied_head"] else Rows(model["vocab"], model["width"])
        self.unused = Unused() if model["unused"] else None

    def forward(self, tokens, labels, weights, positions, count, masks):
        x = self.embed(tokens, self.storage) + self.pos(positions, self.storage)
        x = drop(x, masks.get("embedding"), self.rate)
        for number, layer in enumerate(self.layers):
            x = layer(x, *(masks.get("%s.%d" % (site, number)) for site in ("scores", "attention_out", "mlp_out")))
        return loss((self.head or self.embed).logits(self.norm(x)), labels, weights, count)
