# SPDX-License-Identifier: Apache-2.0
"""A case folder (docs/formats.md, CASE_DIR): read, and checked for what an engine would else stumble over later.

  case = read_case(folder)
  case.weights["embed.weight"], case.state["moment"]["embed.weight"], case.updates
  batch = case.batch(step, rank)        batch.tokens[accumulation step] is [m, T]
"""
import json
import pathlib
import typing

import numpy

from .config import Config
from .errors import Unsupported
from .masks import keep_mask
from .parameters import FAMILIES, parameters
from .tensor_file import read_tensor_file

KEYS = {
    "protocol", "id", "family", "model", "config", "seed", "first_step", "steps", "timeout_s", "dump_steps",
    "save_steps", "resume", "perturbation", "phase_marks"
}


class Batch(typing.NamedTuple):
    """One step's data, as one rank sees it. Arrays are [A, m, T] and, of `samples` and `lengths`, [A, m]."""
    seed: int
    step: int
    tokens: numpy.ndarray
    labels: numpy.ndarray
    loss_weights: numpy.ndarray  # u
    samples: numpy.ndarray       # numbers in the global batch, which masks are drawn by
    lengths: numpy.ndarray       # T where a case has none

    def keep_mask(self, part, site, layer, shape, rate=0.5):
        """[m, *shape] of accumulation step `part`; masks.py."""
        return keep_mask(self.seed, site, self.step, layer, self.samples[part], shape, rate)


class Case:
    def __init__(self, folder, hints=()):
        self.folder = pathlib.Path(folder)
        spec = json.loads((self.folder / "case.json").read_text())
        if spec["protocol"] != 1:
            raise Unsupported("protocol %r" % spec["protocol"])
        for key in sorted(set(spec) - KEYS):
            raise Unsupported("%s in case.json is not known" % key)
        self.id, self.family, self.model, self.seed = spec["id"], spec["family"], spec["model"], spec["seed"]
        if self.family not in FAMILIES:
            raise Unsupported("family %s" % self.family)
        self.config = Config(spec["config"], hints)
        self.first_step, self.steps, self.timeout_s = spec.get("first_step", 0), spec["steps"], spec["timeout_s"]
        self.dump_steps, self.save_steps = set(spec.get("dump_steps", [])), set(spec.get("save_steps", []))
        self.resume, self.perturbation = spec.get("resume", False), spec.get("perturbation")
        self.phase_marks = spec.get("phase_marks", False)
        self.parameters = parameters(self.family, self.model)
        self._read_weights()
        self._read_state()
        self._read_batches()

    @property
    def is_exact(self):
        return self.family == "exact"

    @property
    def has_dropout(self):
        return bool(self.model.get("dropout", False))

    def _take(self, tensors, name, dtype, shape, file):
        tensor = tensors.get(name)
        if tensor is None or tensor.dtype != dtype or tensor.values.shape != tuple(shape):
            raise ValueError("%s: %s must be %s of shape %s; it is %s" % (
                file, name, dtype, list(shape),
                "missing" if tensor is None else "%s of shape %s" % (tensor.dtype, list(tensor.values.shape))))
        return tensor.values

    def _read_weights(self):
        file = "weights.safetensors"
        tensors, _ = read_tensor_file(self.folder / file)
        self.weights = {p.name: self._take(tensors, p.name, "F32", p.shape, file) for p in self.parameters}

    def _read_state(self):
        file = "state.safetensors"
        tensors, metadata = read_tensor_file(self.folder / file)
        dtype = "I64" if self.is_exact else "F32"
        has = {"master": self.is_exact, "moment": self.config.has_moment,
               "second_moment": self.config.has_second_moment}
        self.state = {kind: {p.name: self._take(tensors, "%s/%s" % (kind, p.name), dtype, p.shape, file)
                             for p in self.parameters if not p.frozen} for kind in has if has[kind]}
        if int(metadata["step"]) != self.first_step:
            raise ValueError("%s: step is %s; first_step is %d" % (file, metadata["step"], self.first_step))
        self.updates = int(metadata.get("updates", metadata["step"]))  # t of the next update is this plus 1
        self.norm_history = ((int(metadata["norm_count"]), float(metadata["norm_mean"]),
                              float(metadata["norm_variance"])) if self.config.clips == "history" else None)
        self.loss_scaler = ((float(metadata["loss_scale"]), int(metadata["loss_scale_steps"]),
                             int(metadata["loss_scale_last_overflow"]), int(metadata["loss_scale_hysteresis"]))
                            if self.config.has_loss_scaler else None)

    def _read_batches(self):
        file = "batches.safetensors"
        tensors, _ = read_tensor_file(self.folder / file)
        shape = (self.steps, self.config.train_batch, self.model["positions"])
        self._batches = [self._take(tensors, name, "I32", shape, file) for name in ("tokens", "labels", "loss_weights")]
        self._lengths = numpy.full(shape[:2], shape[2], numpy.int32)
        if self.model.get("unequal_lengths", False):
            self._lengths = self._take(tensors, "lengths", "I32", shape[:2], file)

    def batch(self, step, rank):
        """The samples of a rank: micro-batch a has (a·R + rank)·m ... (a·R + rank)·m + m − 1."""
        config = self.config

        def part(values):
            parts = values.reshape(config.accumulation, config.data_degree, config.micro_batch, *values.shape[1:])
            return parts[:, rank]

        tokens, labels, weights, lengths = (part(values[step - self.first_step])
                                            for values in (*self._batches, self._lengths))
        return Batch(self.seed, step, tokens, labels, weights, part(numpy.arange(config.train_batch)), lengths)

    def tokens_of(self, step):
        """N: the tokens of the global batch whose loss weight is not 0. An engine may count them so, or over its
        ranks."""
        return int(numpy.count_nonzero(self._batches[2][step - self.first_step]))


def read_case(folder, hints=()):
    """Unsupported for what nobody here knows; ValueError or KeyError for a folder that is malformed."""
    return Case(folder, hints)
