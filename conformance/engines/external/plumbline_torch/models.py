# SPDX-License-Identifier: Apache-2.0
"""The module of a case, with the case's weights, and what its forward is called with for a micro-batch.

  module = make_module(case)              named_parameters() are the protocol's, in fp32; frozen ones take no gradient
  module(*inputs(case, batch, part, N)).backward()      this micro-batch's share of the loss of the global batch
"""
import torch

from plumbline_engine.exact_torch import ExactDecoder

from .gpt2 import Gpt2
from .llama import Llama
from .storage import STORAGE

FAMILIES = {"gpt2": Gpt2, "llama": Llama}
DEFAULTS = {"dropout": 0, "norm_epsilon": 1e-5, "unused": False, "tied_head": True, "rope_theta": 10000}


def make_module(case):
    storage = STORAGE[case.config.storage]
    if case.is_exact:
        module = ExactDecoder(case.model, storage, case.config.loss_scale)
    else:
        module = FAMILIES[case.family]({**DEFAULTS, **case.model}, storage)
    frozen = {p.name for p in case.parameters if p.frozen}
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            parameter.copy_(torch.tensor(case.weights[name]))
            parameter.requires_grad_(name not in frozen)
    return module


def _exact_inputs(case, batch, part, count):
    tokens, labels = (torch.tensor(values[part]).long() for values in (batch.tokens, batch.labels))
    share = torch.tensor(batch.loss_weights[part]).float() / count
    shape = case.model["positions"], case.model["width"]
    masks = [[torch.tensor(batch.keep_mask(part, site, layer, shape)) for site in ("exact_attention", "exact_mlp")]
             for layer in range(case.model["layers"])] if case.has_dropout else None
    return tokens, labels, share, masks


def _masks(case, batch, part, longest):
    """Of all sites of dropout: {"embedding" or "site.layer": bools}. An element's word is drawn with T positions."""
    model, rate = case.model, case.model.get("dropout", 0)
    if rate == 0:
        return {}
    T, d = model["positions"], model["width"]
    shapes = {"scores": (model["heads"], T, T), "attention_out": (T, d), "mlp_out": (T, d)}
    masks = {"embedding": batch.keep_mask(part, "embedding", 0, (T, d), rate)[:, :longest]}
    for layer in range(model["layers"]):
        for site, shape in shapes.items():
            mask = batch.keep_mask(part, site, layer, shape, rate)
            masks["%s.%d" % (site, layer)] = (mask[..., :longest, :longest] if site == "scores" else mask[:, :longest])
    return {key: torch.tensor(mask) for key, mask in masks.items()}


def inputs(case, batch, part, count):
    if case.is_exact:
        return _exact_inputs(case, batch, part, count)
    longest = int(batch.lengths[part].max())  # padding is on the right; what all samples have of it is left out
    tokens, labels, weights = (torch.tensor(values[part][:, :longest])
                               for values in (batch.tokens, batch.labels, batch.loss_weights))
    masks = _masks(case, batch, part, longest)
    return tokens.long(), labels.long(), weights.float(), torch.arange(longest), count, masks
