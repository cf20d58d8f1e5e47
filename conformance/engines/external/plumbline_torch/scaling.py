# SPDX-License-Identifier: Apache-2.0
"""The loss scale of fp16 (docs/semantics.md) by PyTorch's GradScaler: it scales the loss, divides gradients, looks for
what is not finite, and skips the optimizer's step.

When the scale is halved and doubled is GradScaler's own affair too where a case asks for its rule: no hysteresis, and
a minimum that is not reached. Otherwise it is told the next scale, by update(new_scale), as its users do who have
another rule. Other storage types have a scale of 1, which never changes."""
import torch

LARGEST = 2.0**126


class LossScaling:
    def __init__(self, case):
        config = case.config
        self.rule = config.raw.get("fp16", {}) if config.has_loss_scaler else None
        self.window = int(self.rule.get("loss_scale_window", 1000)) if self.rule else 1
        self.hysteresis = int(self.rule.get("hysteresis", 2)) if self.rule else 1
        scale, self.steps, self.last, self.left = case.loss_scaler or (float(config.loss_scale), 0, -1, 1)
        self.scaler = torch.amp.GradScaler("cpu", init_scale=scale, growth_interval=self.window)
        self._tell_scaler(scale)

    @property
    def scale(self):
        return self.scaler.get_scale()

    def _tell_scaler(self, scale):
        """The scale, and the count of steps since its last change, which k and l imply."""
        tracker = (self.steps - self.last - 1) % self.window
        self.scaler.load_state_dict({**self.scaler.state_dict(), "scale": scale, "_growth_tracker": tracker})

    def _next_scale(self, skipped):
        if skipped:
            halved = max(self.scale / 2, self.rule.get("min_loss_scale", 1))
            return halved if self.left == 1 or self.hysteresis == 1 else self.scale
        return min(2 * self.scale, LARGEST) if (self.steps - self.last) % self.window == 0 else self.scale

    def _is_scalers_own(self, following):
        return self.hysteresis == 1 and self.rule.get("min_loss_scale", 1) < following < LARGEST

    def update(self, skipped):
        """After the optimizer's step."""
        if not self.rule:
            return self.scaler.update(self.scale)
        following = float(self._next_scale(skipped))
        own = self._is_scalers_own(following)
        self.scaler.update(None if own else following)
        if skipped:
            self.left -= self.left > 1 and self.hysteresis > 1
            self.last = self.steps
        elif self.rule.get("consecutive_hysteresis", False) or (self.steps - self.last) % self.window == 0:
            self.left = self.hysteresis
        self.steps += 1
        return None if own else self._tell_scaler(following)

    def state(self):
        """σ, k, l, h of a trace and of a checkpoint."""
        return self.scale, self.steps, self.last, self.left

    def load(self, state):
        scale, self.steps, self.last, self.left = state
        self._tell_scaler(scale)
