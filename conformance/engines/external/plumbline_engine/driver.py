# SPDX-License-Identifier: Apache-2.0
"""Drives an engine's callbacks through one case on this rank: reads the case, calls, writes the trace.

An engine is a class with the methods below; one object is made for each case, so that nothing is left of the case
before."""
import time

from .case import read_case
from .description import declined
from .errors import Unsupported
from .export import Exports
from .trace import TraceWriter


class Engine:
    """Derive from it. From the start there are `case`, `ranks`, `group` (what connect() of main() returned) and
    `number`, which counts the cases of this process and is the same on all ranks."""

    hints = ()  # dotted config keys of docs/config.md, Hints, that this engine knows

    def __init__(self, case, ranks, group, number):
        self.case, self.ranks, self.group, self.number = case, ranks, group, number

    def build(self):
        """Makes model and optimizer from case.weights and case.state. Raise Unsupported for what the case wants in
        vain."""
        raise NotImplementedError

    def step(self, batch):
        """Trains one step on this rank's samples and returns a StepResult. self.phase("forward") marks a phase."""
        raise NotImplementedError

    def export(self):
        """What this rank holds after the step; export.py."""
        raise NotImplementedError

    def save(self, folder):
        """Writes a checkpoint into the folder, which is there; all ranks are given the same. The format is your own."""
        raise Unsupported("save")

    def load(self, folder):
        """Takes all state from a checkpoint, and nothing from the case's weights; returns the number of the next
        step."""
        raise Unsupported("resume")

    def close(self):
        """Called at the end of the case, also after an error."""


def _first_step(engine, case):
    if not case.resume:
        return case.first_step
    step = engine.load(case.folder / "checkpoint")
    if not isinstance(step, int) or not case.first_step < step < case.first_step + case.steps:
        raise ValueError("load() returned %r; it must be the number of the next step, from %d to %d"
                         % (step, case.first_step + 1, case.first_step + case.steps - 1))
    return step


def _train(engine, case, out_dir, trace):
    for step in range(_first_step(engine, case), case.first_step + case.steps):
        engine.phase = lambda phase, step=step: trace.phase(step, phase)
        result = engine.step(case.batch(step, engine.ranks.rank))
        trace.step(step, result, engine.export())
        if step in case.save_steps:
            folder = out_dir / ("checkpoint-%06d" % step)
            folder.mkdir(exist_ok=True)  # another rank may have made it
            engine.save(folder)


def run_case(engine_class, description, case_dir, out_dir, ranks, group=None, number=0):
    case = read_case(case_dir, engine_class.hints)
    why = declined(description, case)
    if why:
        raise Unsupported(why)
    if case.config.data_degree != ranks.world:
        raise ValueError("mesh.data is %d, and WORLD_SIZE %d: start one process a rank" %
                         (case.config.data_degree, ranks.world))
    engine = engine_class(case, ranks, group, number)
    try:
        engine.build()
        with TraceWriter(out_dir, description["name"], ranks.rank, ranks.world, case, Exports(case)) as trace:
            _train(engine, case, out_dir, trace)
            trace.end()
    except BaseException as error:
        error.plumbline_when = time.time()  # before close(), which ends connections, of which other ranks fail
        raise
    finally:
        engine.close()
