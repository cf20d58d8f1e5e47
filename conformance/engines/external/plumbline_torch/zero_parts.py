# SPDX-License-Identifier: Apache-2.0
"""Which part of a parameter DeepSpeed's optimizers keep on this rank, and the tensors of it, by deepspeed.utils and the
fragments that it is made of.

  part = part_of(engine, parameter)               None: this rank has nothing of it
  part.begin, part.size                           in the parameter, row-major
  part.master(), part.gradient(), part.state(key) one dimension, without padding; the first and the last can be written

Stage 0 has whole parameters; stages 1 and 2, and bf16's optimizer, equal parts of a flat buffer a group; stage 3 equal
parts of each parameter. DeepSpeed's own setters of whole tensors are not used: that of stage 3 narrows beyond the end
of a parameter whose size the ranks do not divide (0.19.8, runtime/zero/stage3.py:3198)."""
import torch
from deepspeed import utils


class _Whole:
    def __init__(self, engine, parameter):
        self.optimizer, self.parameter = engine.basic_optimizer, parameter
        self.begin, self.size = 0, parameter.numel()

    def master(self):
        return self.parameter.detach().view(-1)

    def gradient(self):
        return self.parameter.grad.view(-1)

    def state(self, key):
        tensor = self.optimizer.state[self.parameter].get(key)
        return None if tensor is None else tensor.view(-1)


class _Fragment:
    def __init__(self, engine, parameter):
        self.parameter, self.mapping = parameter, parameter._hp_mapping
        self.begin, self.size = self.mapping.lp_fragment_address.start, self.mapping.lp_fragment_address.numel
        self.place, self.optimizer = self.mapping.get_hp_fragment_address(), engine.basic_optimizer
        self.flat = self.optimizer.param_groups[self.mapping.param_group_index]["params"][0]

    def master(self):
        return self.mapping.get_hp_fragment().detach()

    def gradient(self):
        gradient = self.mapping.get_lp_grad_fragment(self.parameter._index_in_param_group).view(-1)
        # bf16's optimizer keeps the gradients of whole parameters on each rank.
        return gradient.narrow(0, self.begin, self.size) if gradient.numel() == self.parameter.numel() else gradient

    def state(self, key):
        tensor = self.optimizer.state[self.flat].get(key)
        return None if tensor is None else tensor.narrow(0, self.place.start, self.place.numel)


class _Shard:
    def __init__(self, engine, parameter):
        self.optimizer, self.parameter = engine.optimizer, parameter
        self.begin = engine.global_rank * parameter.partition_numel()
        self.size = min(parameter.partition_numel(), parameter.ds_numel - self.begin)

    def master(self):
        return utils.safe_get_local_fp32_param(self.parameter).detach()[:self.size]

    def gradient(self):
        return utils.safe_get_local_grad(self.parameter)[:self.size]

    def state(self, key):
        try:
            return utils.safe_get_local_optimizer_state(self.parameter, key)[:self.size]
        except (KeyError, TypeError, AttributeError):  # not made yet, or None
            return None


def part_of(engine, parameter):
    if engine.zero_optimization_stage() == 0:
        return _Whole(engine, parameter)
    if engine.zero_optimization_stage() == 3:
        shard = _Shard(engine, parameter)
        return shard if shard.size > 0 else None
    return _Fragment(engine, parameter) if parameter._hp_mapping is not None else None


def stored(engine):
    """The tensors that the basic optimizer's state is keyed by."""
    if engine.zero_optimization_stage() == 3:
        return engine.optimizer.fp32_partitioned_groups_flat
    return [tensor for group in engine.basic_optimizer.param_groups for tensor in group["params"]]


def weight_of(engine, parameter):
    """(begin, values) of a working weight: whole, or in stage 3 this rank's shard of one that does not stay whole."""
    if engine.zero_optimization_stage() < 3:
        return 0, parameter.detach().view(-1)
    if not parameter.requires_grad:  # sharded as well, but every rank states a frozen one whole
        import deepspeed
        with deepspeed.zero.GatheredParameters([parameter]):
            return 0, parameter.detach().clone().view(-1)
    if parameter.ds_persist:
        return 0, parameter.detach().view(-1)
    begin = engine.global_rank * parameter.partition_numel()
    return begin, parameter.ds_tensor.detach()[:max(0, min(parameter.partition_numel(), parameter.ds_numel - begin))]
