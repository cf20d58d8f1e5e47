# SPDX-License-Identifier: Apache-2.0
"""A rank's trace and dumps (docs/formats.md, OUT_DIR): trace.jsonl, flushed once a step, since it is the heartbeat."""
import json
import math
import pathlib
import typing

from .tensor_file import write_tensor_file

PHASES = ("forward", "backward", "reduce", "step")


class StepResult(typing.NamedTuple):
    """What an engine's step() returns beside the tensors that export() gives. The last five are for features of
    their names."""
    loss: float                   # of the global batch before the update; equal on all ranks
    tokens: int                   # N
    lr: typing.Optional[list] = None               # real families: of the default group, then of param_groups
    gradient_norm: typing.Optional[float] = None   # real families: before clipping
    skipped: typing.Optional[bool] = None          # real families
    norm_history: typing.Optional[tuple] = None    # clipping by history: n, mean, variance after the step
    loss_scaler: typing.Optional[tuple] = None     # dynamic scale: scale, steps, last overflow, hysteresis after it
    comm: typing.Optional[dict] = None             # {kind: [calls, bytes]}
    comm_sequence: typing.Optional[int] = None
    memory_peak_bytes: typing.Optional[dict] = None
    comm_wait_us: typing.Optional[int] = None


def _number(value):
    value = float(value)
    return value if math.isfinite(value) else None  # null


def _fields(case, result):
    if case.is_exact:
        if float(result.loss) != int(result.loss):
            raise ValueError("step(): loss is %r; of family exact it is an integer" % result.loss)
        fields = {"loss": int(result.loss), "tokens": int(result.tokens)}
    else:
        missing = [key for key in ("lr", "gradient_norm", "skipped") if getattr(result, key) is None]
        if missing:
            raise ValueError("step(): StepResult has no %s, which family %s needs" % (missing[0], case.family))
        if len(result.lr) != 1 + len(case.config.groups):
            raise ValueError("step(): lr has %d rates; there are the default group and %d more"
                             % (len(result.lr), len(case.config.groups)))
        fields = {"loss": _number(result.loss), "tokens": int(result.tokens), "lr": [float(rate) for rate in result.lr],
                  "gradient_norm": _number(result.gradient_norm), "skipped": bool(result.skipped)}
        if case.config.clips == "history":
            n, mean, variance = result.norm_history
            fields["norm_history"] = [int(n), float(mean), float(variance)]
        if case.config.has_loss_scaler:
            scale, *counts = result.loss_scaler
            fields["loss_scaler"] = [float(scale), *(int(count) for count in counts)]
    if result.comm is not None:
        fields["comm"], fields["comm_sequence"] = result.comm, "%016x" % result.comm_sequence
    if result.memory_peak_bytes is not None:
        fields["memory_peak_bytes"] = result.memory_peak_bytes
    if result.comm_wait_us is not None:
        fields["comm_wait_us"] = int(result.comm_wait_us)
    return fields


class TraceWriter:
    """Makes OUT_DIR/rankR and begins the trace with its header; a context manager, which closes the file."""

    def __init__(self, out_dir, engine, rank, world, case, exports):
        self._folder = pathlib.Path(out_dir) / ("rank%d" % rank)
        self._case, self._exports, self._steps = case, exports, 0
        self._folder.mkdir()
        self._file = open(self._folder / "trace.jsonl", "w", encoding="utf-8")
        self._line(record="header", protocol=1, engine=engine, rank=rank, world=world, config=case.config.raw)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._file.close()

    def _line(self, **record):
        self._file.write(json.dumps(record, allow_nan=False) + "\n")
        self._file.flush()

    def phase(self, step, phase):
        if phase not in PHASES:
            raise ValueError("phase is %r; allowed: %s" % (phase, ", ".join(PHASES)))
        if self._case.phase_marks:
            self._line(record="phase", step=step, phase=phase)

    def step(self, step, result, exported):
        """The dump, where the case wants one, is complete before the line that says so."""
        held = self._exports.held(exported)
        if step in self._case.dump_steps:
            write_tensor_file(self._folder / ("tensors-%06d.safetensors" % step), self._exports.dump(held))
        self._line(record="step", step=step, **_fields(self._case, result), **self._exports.entries(held))
        self._steps += 1

    def end(self):
        self._line(record="end", steps=self._steps)
