# SPDX-License-Identifier: Apache-2.0
"""A training loop in plain PyTorch behind the kit's callbacks: one process, as it stands; an adapter of a wrapper
(DistributedDataParallel, say) derives from it and overrides what the wrapper changes."""
import contextlib

import torch

from plumbline_engine import Engine, StepResult

from .clipping import clip, clipped, total_norm
from .compiling import compiled
from .models import inputs, make_module
from .optimizers import groups, moments, optimizer_of, state_of
from .scaling import LossScaling
from .schedules import betas_at, make_schedule
from .storage import STORAGE, array

CHECKPOINT = "checkpoint.pt"


class TorchEngine(Engine):
    backend = None  # of torch.compile; None: not compiled

    # What an adapter may override: the model that is called, the optimizer that steps, sums over ranks.

    def wrap(self, module):
        return module

    def make_optimizer(self, kind, param_groups, arguments):
        return kind(param_groups, **arguments)

    def total(self, tensor):
        """The sum over ranks."""
        return tensor

    def micro_batch(self, is_last):
        """A context for forward and backward."""
        return contextlib.nullcontext()

    def state(self):
        """{parameter: its state}, of those whose state this rank has."""
        return self.optimizer.state

    def owned(self):
        """{name: parameter} of those."""
        return self.trained

    def part(self, parameter, whole):
        """Of a parameter's state, what goes with the part of it that this rank has."""
        return whole

    def held(self, tensor):
        """A parameter, or what has its shape, as the kit's export() takes it."""
        return array(tensor)

    def all_finite(self):
        """Of all gradients on all ranks."""
        return all(bool(parameter.grad.isfinite().all()) for parameter in self.trained.values())

    # The kit's callbacks.

    def build(self):
        torch.set_num_threads(1)
        case = self.case
        self.module = make_module(case)
        self.parameters = dict(self.module.named_parameters())
        self.trained = {name: p for name, p in self.parameters.items() if p.requires_grad}
        self.model = compiled(self.wrap(self.module), self.backend)
        kind, arguments = optimizer_of(case)
        self.optimizer = self.make_optimizer(kind, groups(case, self.trained), arguments)
        for name, parameter in self.owned().items():
            self.state()[parameter].update(
                state_of(case, name, lambda whole, parameter=parameter: self.part(parameter, whole)))
        self.schedule = make_schedule(case.config.scheduler, self.optimizer,
                                      case.config.optimizer_params.get("lr", 0.001), case.first_step)
        self.scaling = LossScaling(case)

    def step(self, batch):
        self.optimizer.zero_grad()
        self.next_step = batch.step + 1
        count = int(self.total(torch.tensor(int((batch.loss_weights != 0).sum()))))
        loss = self.backward(batch, count)
        return (self.update_exact if self.case.is_exact else self.update_real)(batch.step, loss, count)

    def backward(self, batch, count):
        """Leaves the complete gradient in each parameter, and returns the loss."""
        loss = torch.zeros((), dtype=torch.float64)
        for part in range(len(batch.tokens)):
            with self.micro_batch(part + 1 == len(batch.tokens)):
                share = self.model(*inputs(self.case, batch, part, count))
                # Family exact has its scale where its gradients begin, since folds know of it.
                (share if self.case.is_exact else self.scaling.scaler.scale(share)).backward()
            loss += share.detach()
        for parameter in self.trained.values():  # one that takes part in nothing has a gradient of zero
            parameter.grad = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
        return self.total(loss).item()

    def keep_gradients(self):
        self.gradients = {name: parameter.grad.clone() for name, parameter in self.trained.items()}

    def update_exact(self, _, loss, count):
        for parameter in self.trained.values():
            parameter.grad.div_(self.case.config.loss_scale)
        self.keep_gradients()
        self.optimizer.step()
        return StepResult(loss=loss, tokens=count)

    def update_real(self, step, loss, count):
        scaler, rates = self.scaling.scaler, [group["lr"] for group in self.optimizer.param_groups]
        scaler.unscale_(self.optimizer)
        self.keep_gradients()
        norm, skipped = self.clip()
        betas = betas_at(self.case.config.scheduler, step)
        for group in self.optimizer.param_groups if betas else ():
            group.update({"betas": betas} if "betas" in group else {})
        scaler.step(self.optimizer)
        self.scaling.update(skipped)
        if self.schedule:
            self.schedule.step()
        return StepResult(loss=loss, tokens=count, lr=rates, gradient_norm=norm, skipped=skipped,
                          loss_scaler=self.scaling.state())

    def clip(self):
        """The norm of what is not exempt, and whether there is anything that is not finite."""
        if not self.all_finite():
            return total_norm(self.trained).item(), True
        kept = clipped(self.case.config, self.trained)
        norm = total_norm(kept)
        clip(self.case.config, kept, norm)
        return norm.item(), False

    def export(self):
        storage, held = STORAGE[self.case.config.storage], self.owned()
        kinds = {"gradient": {name: self.held(self.gradients[name]) for name in held}}
        for name, parameter in held.items():
            for kind, tensor in moments(self.case, self.state()[parameter]).items():
                kinds.setdefault(kind, {})[name] = self.held(tensor)
        if not self.case.is_exact:
            kinds["master"] = {name: self.held(parameter) for name, parameter in self.parameters.items()
                               if name in held or name not in self.trained}
        kinds["weight"] = {name: self.held(parameter if self.case.is_exact else parameter.to(storage))
                           for name, parameter in self.parameters.items()}
        return kinds

    def optimizer_state(self):
        """Of all ranks, on rank 0."""
        return self.optimizer.state_dict()

    def save(self, folder):
        optimizer = self.optimizer_state()
        if self.ranks.rank == 0:
            torch.save({"model": self.module.state_dict(), "optimizer": optimizer, "step": self.next_step,
                        "schedule": self.schedule.state_dict() if self.schedule else None,
                        "scaling": self.scaling.state()}, folder / CHECKPOINT)

    def load(self, folder):
        saved = torch.load(folder / CHECKPOINT, weights_only=True)
        self.module.load_state_dict(saved["model"])
        self.optimizer.load_state_dict(saved["optimizer"])
        if self.schedule:
            self.schedule.load_state_dict(saved["schedule"])
        self.scaling.load(saved["scaling"])
        return saved["step"]
