# SPDX-License-Identifier: Apache-2.0
"""What `config` of a case.json says (docs/config.md), with names for what every engine needs.

The harness writes numbers in the place of "auto" and leaves no key out that applies; defaults here are for cases
written by hand. A key that this page does not know is Unsupported, so that nothing is ever ignored."""
from .errors import Unsupported

SCHEDULE_KEYS = {
    "warmup_min_lr", "warmup_max_lr", "warmup_num_steps", "warmup_type", "total_num_steps", "warmup_min_ratio",
    "cos_min_ratio", "cycle_min_lr", "cycle_max_lr", "cycle_first_step_size", "cycle_second_step_size",
    "cycle_first_stair_count", "cycle_second_stair_count", "decay_step_size", "decay_lr_rate", "cycle_momentum",
    "cycle_min_mom", "cycle_max_mom"
}
# The table "Supported" of docs/config.md; a test compares. A key of an object has its name before it.
KNOWN_KEYS = {
    *("train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps", "bf16", "bf16.enabled",
      "fp16", "fp64", "fp64.enabled", "zero_optimization", "optimizer",
      "optimizer.type", "optimizer.params", "param_groups", "scheduler", "scheduler.type", "scheduler.params",
      "gradient_clipping", "adaptive_clipping", "mesh", "mesh.data"),
    *("fp16." + key for key in ("enabled", "loss_scale", "initial_scale_power", "loss_scale_window", "hysteresis",
                                "consecutive_hysteresis", "min_loss_scale")),
    *("zero_optimization." + key
      for key in ("stage", "layer_stages", "reduce_bucket_size", "overlap_comm", "stage3_prefetch_bucket_size",
                  "stage3_param_persistence_threshold", "stage3_max_live_parameters")),
    *("optimizer.params." + key for key in ("lr", "betas", "eps", "weight_decay", "momentum", "nesterov", "adam_w_mode",
                                            "max_coeff", "min_coeff")),
    *("param_groups[]." + key for key in ("match", "lr", "weight_decay", "betas", "clip")),
    *("scheduler.params." + key for key in SCHEDULE_KEYS),
    *("adaptive_clipping." + key for key in ("type", "ratio", "eps", "deviations", "decay", "warmup_steps")),
}


def unknown_keys(value, place=""):
    """Every key of a config that KNOWN_KEYS does not have, dotted."""
    if isinstance(value, list):
        return [key for entry in value if isinstance(entry, dict) for key in unknown_keys(entry, place[:-1] + "[].")]
    found = []
    for key, inner in value.items() if isinstance(value, dict) else ():
        if place + key not in KNOWN_KEYS:
            found.append(place + key)
        else:
            found += unknown_keys(inner, place + key + ".")
    return found


class Config:
    """`raw` is the object itself; `hints` are dotted keys that the engine knows and may do nothing about."""

    def __init__(self, raw, hints=()):
        self.raw = raw
        for key in unknown_keys(raw):
            if key not in hints:
                raise Unsupported("config.%s is not known" % key)
        zero, optimizer = raw.get("zero_optimization", {}), raw["optimizer"]
        self.data_degree = raw.get("mesh", {}).get("data", 1)  # R
        self._resolve_batch()
        enabled = [dtype for dtype in ("bf16", "fp16", "fp64") if raw.get(dtype, {}).get("enabled", False)]
        self.storage = enabled[0] if enabled else "fp32"
        self.loss_scale = raw.get("fp16", {}).get("loss_scale", 0) if self.storage == "fp16" else 1
        self.has_loss_scaler = self.storage == "fp16" and self.loss_scale == 0  # a dynamic scale
        self.stage = zero.get("stage", 0)
        self.layer_stages = zero.get("layer_stages", [])
        self.reduce_bucket_size = zero.get("reduce_bucket_size", 500_000_000)
        self.optimizer, self.optimizer_params = optimizer["type"], optimizer.get("params", {})
        self.groups = raw.get("param_groups", [])
        self.scheduler = raw.get("scheduler")
        self.gradient_clipping = raw.get("gradient_clipping", 0)
        self.adaptive_clipping = raw.get("adaptive_clipping")

    def _resolve_batch(self):
        def number(key):
            value = self.raw.get(key, "auto")
            return None if value == "auto" else int(value)
        batch, micro = number("train_batch_size"), number("train_micro_batch_size_per_gpu")
        steps = number("gradient_accumulation_steps")
        if steps is None:
            steps = batch // (micro * self.data_degree) if batch and micro else 1
        micro = batch // (steps * self.data_degree) if micro is None else micro
        # B, m, A
        self.train_batch, self.micro_batch, self.accumulation = micro * steps * self.data_degree, micro, steps
        if batch not in (None, self.train_batch):
            raise ValueError("train_batch_size is %d; micro-batch %d, accumulation %d and mesh.data %d make %d"
                             % (batch, micro, steps, self.data_degree, self.train_batch))

    def stage_of(self, name):
        """The ZeRO stage of a parameter: its layer's, or that of all."""
        parts = name.split(".")
        return self.layer_stages[int(parts[1])] if self.layer_stages and parts[0] == "layers" else self.stage

    @property
    def has_moment(self):
        return self.optimizer not in ("ModularSGD", "SGD") or self.optimizer_params.get("momentum", 0) > 0

    @property
    def has_second_moment(self):
        return self.optimizer in ("AdamW", "Adam", "Lamb")

    @property
    def clips(self):
        """What rule of adaptive clipping there is: "unit", "history" or None."""
        return self.adaptive_clipping["type"] if self.adaptive_clipping else None
