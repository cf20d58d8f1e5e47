# SPDX-License-Identifier: Apache-2.0
"""The schedules of docs/semantics.md as LambdaLR, for engines without schedules of their own.

A type that sets one rate for all groups keeps the ratios of groups' own rates: optimizers.py makes groups whose "lr"
is that ratio, and the function here is the rate. With WarmupCosineLR groups have their rates, and it is the factor.
"""
import math

from torch.optim.lr_scheduler import LambdaLR


def sets_one_rate(scheduler):
    return scheduler is not None and scheduler["type"] in ("WarmupLR", "WarmupDecayLR", "OneCycle")


def _warmup(params, k, count):
    if params.get("warmup_type", "log") == "linear":
        return k / count
    return math.log(k + 1) / math.log(count)


def _warmup_rate(scheduler, default, k):
    params, decays = scheduler["params"], scheduler["type"] == "WarmupDecayLR"
    low, high = params.get("warmup_min_lr", 0), params.get("warmup_max_lr", 0.001 if decays else default)
    count = max(2, params.get("warmup_num_steps", 1000))
    if k < count:
        share = 0 if k < 0 else _warmup(params, k, count)
    else:
        total = params.get("total_num_steps")
        share = max(0, (total - k) / max(1, total - count)) if decays else 1
    return low + (high - low) * share


def _cosine_factor(scheduler, _, k):
    params = scheduler["params"]
    count, total = max(2, params.get("warmup_num_steps", 1000)), params["total_num_steps"]
    if k < 0:
        return 0
    if k < count:
        low = params.get("warmup_min_ratio", 0)
        return low + (1 - low) * _warmup(params, k, count)
    low = params.get("cos_min_ratio", 0.0001)
    return low + (1 - low) * (1 + math.cos(math.pi * min(1, (k - count + 1) / max(1, total - count)))) / 2


def _cycle(params, s):
    """Steps up and down, and σ, or None for σ once the cycle is over."""
    up = params.get("cycle_first_step_size", 2000)
    down = params.get("cycle_second_step_size", up)
    first = params.get("cycle_first_stair_count", 0)
    second = params.get("cycle_second_stair_count", first)
    if s - 1 >= up + down:
        return up + down, None
    c = s % (up + down)
    part, whole, stairs = (c, up, first) if c <= up else (up + down - c, down, second)
    return up + down, (stairs * part // whole / stairs if stairs > 0 else part / whole)


def _cycle_rate(scheduler, _, k):
    params = scheduler["params"]
    length, share = _cycle(params, k + 1)
    low, high, slow = params["cycle_min_lr"], params["cycle_max_lr"], params.get("decay_step_size", 0)
    if share is not None:
        return low + (high - low) * share
    return low if slow == 0 else low / (1 + params.get("decay_lr_rate", 0) * (k + 1 - length) / slow)


_RATES = {"WarmupLR": _warmup_rate, "WarmupDecayLR": _warmup_rate, "WarmupCosineLR": _cosine_factor,
          "OneCycle": _cycle_rate}


def make_schedule(scheduler, optimizer, default_lr, first_step):
    """A LambdaLR whose groups have the rates of first_step, and of the next one after each step(); or None."""
    if scheduler is None:
        return None
    for group in optimizer.param_groups:
        group["initial_lr"] = group["lr"]
    return LambdaLR(optimizer, lambda s: _RATES[scheduler["type"]](scheduler, default_lr, s - 1), first_step - 1)


def betas_at(scheduler, step):
    """What OneCycle sets all groups' betas to, or None."""
    if scheduler is None or scheduler["type"] != "OneCycle" or not scheduler["params"].get("cycle_momentum", True):
        return None
    low, high = (scheduler["params"].get(key, value) for key, value in (("cycle_min_mom", 0.8), ("cycle_max_mom", 0.9)))
    _, share = _cycle(scheduler["params"], step)
    return (low if step == 0 else high if share is None else high - (high - low) * share), 0.99
