# SPDX-License-Identifier: Apache-2.0
"""The optimizers of family exact (docs/exact-family.md, Optimizers) as torch.optim.Optimizer: elementwise, so that flat
buffers, shards and DTensors are updated like whole parameters; of a DTensor it is the part that this rank has.

State of a parameter: "U", and "M" with momentum; fp32, whose integers these are. The number of updates made is
group["updates"]. A parameter's gradient is the complete D, already divided by a loss scale.
"""
import torch


def _local(tensor):
    return tensor.to_local() if hasattr(tensor, "to_local") else tensor


class _Modular(torch.optim.Optimizer):
    def __init__(self, params, weight_bound, updates=0):
        super().__init__(params, {"weight_bound": weight_bound, "updates": updates})

    def _first_state(self, parameter, bound):
        """Of a parameter that nobody has given a state: the smallest U of its weights."""
        state = self.state[parameter]
        if "U" not in state:
            state["U"] = 8 * (parameter.detach().float() + bound)
        if self.has_moment and "M" not in state:
            state["M"] = torch.zeros_like(state["U"])
        return state

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            group["updates"] += 1
            bound, t = group["weight_bound"], group["updates"]
            for parameter in group["params"]:
                if parameter.grad is not None:
                    state = {key: _local(value) for key, value in self._first_state(parameter, bound).items()}
                    self._update(state, _local(parameter.grad).float(), t, 8 * (2 * bound + 1))
                    _local(parameter).copy_(torch.floor(state["U"] / 8) - bound)
        return loss


class ModularSGD(_Modular):
    has_moment = False

    def _update(self, state, D, t, modulus):
        U = state["U"]
        U.copy_(torch.remainder(U - torch.remainder(D, modulus), modulus))


class ModularMomentum(_Modular):
    has_moment = True

    def _update(self, state, D, t, modulus):
        U, M = state["U"], state["M"]
        M.copy_(torch.remainder(M + torch.remainder(D, 29) + t % 29 + 14, 29) - 14)
        U.copy_(torch.remainder(U - M - t % modulus, modulus))


OPTIMIZERS = {"ModularMomentum": ModularMomentum, "ModularSGD": ModularSGD}
