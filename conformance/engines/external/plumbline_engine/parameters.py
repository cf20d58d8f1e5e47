# SPDX-License-Identifier: Apache-2.0
"""Names and shapes of a model's parameters in canonical order (docs/exact-family.md, docs/semantics.md)."""
import math
import typing


class Parameter(typing.NamedTuple):
    name: str
    shape: tuple
    frozen: bool = False

    @property
    def numel(self):
        return math.prod(self.shape)


def _exact(model):
    d, f = model["width"], model["hidden"]
    e = model["kv_heads"] * (d // model["heads"])
    yield "embed.weight", (model["vocab"], d)
    yield "pos.weight", (model["positions"], d)
    for layer in range(model["layers"]):
        for name, shape in (("attn.q", (d, d)), ("attn.k", (d, e)), ("attn.v", (d, e)), ("attn.o", (d, d)),
                            ("mlp.up", (d, f)), ("mlp.down", (f, d))):
            yield "layers.%d.%s" % (layer, name), shape


def _gpt2(model):
    d, f = model["width"], model["hidden"]
    yield "embed.weight", (model["vocab"], d)
    yield "pos.weight", (model["positions"], d)
    for layer in range(model["layers"]):
        for name, shape in (("norm1", (d,)), ("attn.qkv", (d, 3 * d)), ("attn.out", (d, d)), ("norm2", (d,)),
                            ("mlp.up", (d, f)), ("mlp.down", (f, d))):
            yield "layers.%d.%s.weight" % (layer, name), shape
            yield "layers.%d.%s.bias" % (layer, name), shape[-1:]
    yield "norm.weight", (d,)
    yield "norm.bias", (d,)
    if not model.get("tied_head", True):
        yield "head.weight", (model["vocab"], d)
    if model.get("unused", False):
        yield "unused.weight", (3, 5)


def _llama(model):
    d, f = model["width"], model["hidden"]
    e = model["kv_heads"] * (d // model["heads"])
    yield "embed.weight", (model["vocab"], d)
    for layer in range(model["layers"]):
        for name, shape in (("norm1", (d, )), ("attn.q", (d, d)), ("attn.k", (d, e)), ("attn.v", (d, e)),
                            ("attn.out", (d, d)), ("norm2", (d, )), ("mlp.gate",
                                                                     (d, f)), ("mlp.up", (d, f)), ("mlp.down", (f, d))):
            yield "layers.%d.%s.weight" % (layer, name), shape
    yield "norm.weight", (d,)
    yield "head.weight", (model["vocab"], d)
    if model.get("unused", False):
        yield "unused.weight", (3, 5)


FAMILIES = {"exact": _exact, "gpt2": _gpt2, "llama": _llama}


def parameters(family, model):
    frozen = model.get("frozen", [])
    return [Parameter(name, shape, name in frozen) for name, shape in FAMILIES[family](model)]
