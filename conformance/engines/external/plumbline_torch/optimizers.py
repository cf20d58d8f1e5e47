# SPDX-License-Identifier: Apache-2.0
"""PyTorch's optimizers, with groups and state as a case wants them, and their state by the protocol's names.

  kind, arguments = optimizer_of(case)            a class of torch.optim or modular.py
  optimizer = kind(groups(case, named), **arguments)
  optimizer.state[parameter].update(state_of(case, name, lambda tensor: tensor))
  moments(case, optimizer.state[parameter])       {"moment": tensor, ...}
"""
import fnmatch

import torch

from .modular import OPTIMIZERS as MODULAR
from .schedules import sets_one_rate

KEYS = {"ModularMomentum": {"master": "U", "moment": "M"}, "ModularSGD": {"master": "U"},
        "AdamW": {"moment": "exp_avg", "second_moment": "exp_avg_sq"},
        "Adam": {"moment": "exp_avg", "second_moment": "exp_avg_sq"},
        "SGD": {"moment": "momentum_buffer"}}
# SGD's first update makes its buffer, whatever a state holds; until then what was given lies under another key, which
# torch.optim.SGD leaves alone and saves.
GIVEN = "given_buffer"


def optimizer_of(case):
    config = case.config
    if case.is_exact:
        return MODULAR[config.optimizer], {"weight_bound": case.model["weight_bound"], "updates": case.updates}
    params = dict(config.optimizer_params)
    decoupled = params.pop("adam_w_mode", True)
    kind = "AdamW" if config.optimizer == "Adam" and decoupled else config.optimizer
    if config.optimizer == "Adam":
        params.setdefault("weight_decay", 0)
    if "betas" in params:
        params["betas"] = tuple(params["betas"])
    if sets_one_rate(config.scheduler):
        params["lr"] = 1
    return getattr(torch.optim, kind), params


def entry_of(config, name):
    """0 for the default group, or the number of the first entry of param_groups that fits, from 1 on."""
    return next((i for i, entry in enumerate(config.groups, 1) if fnmatch.fnmatchcase(name, entry["match"])), 0)


def groups(case, named):
    """Groups in the trace's order, default first, of {name: parameter}; one may be empty."""
    if case.is_exact:
        return [{"params": list(named.values())}]
    config, result = case.config, []
    own = config.optimizer_params.get("lr", 0.001)
    for entry in [{}, *config.groups]:
        group = {key: entry[key] for key in ("lr", "weight_decay") if key in entry}
        if "betas" in entry:
            group["betas"] = tuple(entry["betas"])
        if "lr" in group and sets_one_rate(config.scheduler):
            group["lr"] = group["lr"] / own
        result.append({"params": [], **group})
    for name, parameter in named.items():
        result[entry_of(config, name)]["params"].append(parameter)
    return result


def state_of(case, name, shard):
    """A parameter's state as the case gives it, for optimizer.state; shard(tensor) takes the part that is held."""
    given = {kind: shard(torch.tensor(tensors[name])) for kind, tensors in case.state.items()}
    keys = KEYS[case.config.optimizer]
    if case.is_exact:
        return {keys[kind]: tensor.float() for kind, tensor in given.items()}
    if case.config.optimizer == "SGD":
        key = keys["moment"] if case.updates > 0 else GIVEN
        return {key: given["moment"]} if given else {}
    return {**{keys[kind]: tensor for kind, tensor in given.items()}, "step": torch.tensor(float(case.updates))}


def moments(case, state):
    keys = KEYS[case.config.optimizer]
    return {kind: state[keys[kind]] if state.get(keys[kind]) is not None else state[GIVEN] for kind in case.state}
