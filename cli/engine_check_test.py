# SPDX-License-Identifier: Apache-2.0
"""`plumbline engine check` on an engine that is whole, and on copies of it in which one thing is missing: the step at
which it stops, what it says, and that the command it prints shows the fault again.

Usage: engine_check_test.py PLUMBLINE EXACT_NUMPY DOCUMENT
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

PLUMBLINE, NUMPY, DOCUMENT = (pathlib.Path(path).absolute() for path in sys.argv[1:4])
FIRST = ["describe", "case", "trace", "loss", "gradient", "update", "dump", "steps", "resume", "batch"]

# Each replaces one text of the example or of the kit: (file, text, replacement, step that is missing, words about it).
WRONG = [
    ("examples/exact_numpy", 'dtypes=["fp32"], optimizers=["ModularMomentum", "ModularSGD"]',
     'dtypes=["fp32"], optimizers=["SGD"]', "describe", "optimizers have none that is known of family exact"),
    ("examples/exact_numpy", 'DESCRIPTION = kit.describe(', 'print("hello")\nDESCRIPTION = kit.describe(', "describe",
     "describe"),
    ("examples/exact_numpy", 'self.updates = self.case.updates', 'self.updates = self.case.update', "case",
     "error AttributeError: 'Case' object has no attribute 'update'"),
    ("examples/exact_numpy", '**self.state, "weight": self.W', '"weight": self.W', "case",
     "moment of embed.weight: missing; all 88 elements are needed"),
    ("plumbline_engine/trace.py", 'self._file.write(json.dumps(record, allow_nan=False) + "\\n")',
     'self._file.write(repr(record) + "\\n")', "trace", "trace.jsonl"),
    ("plumbline_engine/case_end.py", '_write(out_dir / "status.json"', '(lambda *_: 0)(out_dir / "status.json"', "case",
     "status"),
    ("examples/exact_numpy", "def F(self, x):\n        return fold(x, ", "def F(self, x):\n        return fold(x, 1 + ",
     "loss", r"step 0: loss -?\d+, reference -?\d+$"),
    ("examples/exact_numpy", "numpy.mod(x + b, 4 * b) < 2 * b", "numpy.mod(x + b, 4 * b) <= 2 * b", "gradient",
     r"gradient of .*: sum -?\d+, reference -?\d+; .*it differs in \d+ tensors"),
    ("examples/exact_numpy", "self.gradient = {name: total(value)",
     "self.gradient = {name: total(value.T.reshape(value.shape))", "gradient", "gradient of layers.0.mlp.down: "),
    ("examples/exact_numpy", "t % 29 + 14", "(t - 1) % 29 + 14", "update", "moment of embed.weight: hash differs"),
    ("plumbline_engine/export.py", "Tensor(self.dtypes[kind], values)",
     "Tensor(self.dtypes[kind], values + (kind == 'master'))", "dump",
     "master of embed.weight was dumped with other values than were traced"),
    ("examples/exact_numpy", "self.updates += 1", "self.updates = 1", "steps", "step 1: moment of embed.weight"),
    ("examples/exact_numpy", 'self.updates = int(metadata["updates"])\n        return self.updates',
     'return int(metadata["updates"])', "resume", "step 6: moment of embed.weight"),
    ("examples/exact_numpy", "if self.ranks.rank == 0:", "if False:", "resume", "FileNotFoundError"),
    ("plumbline_engine/protocol.py", "for number, (case, out) in enumerate(cases)]",
     "for number, (case, out) in enumerate(cases[:2])]", "batch", "status"),
    ("examples/exact_numpy", "numpy.repeat(x, self.model[\"heads\"] // self.model[\"kv_heads\"], axis=1)",
     "numpy.tile(x, (1, self.model[\"heads\"] // self.model[\"kv_heads\"], 1, 1))", "grouped_heads",
     "FAIL: step 0: gradient of .*; loss"),
]


class InFolder(unittest.TestCase):
    def setUp(self):
        keeper = tempfile.TemporaryDirectory()
        self.addCleanup(keeper.cleanup)
        self.folder = pathlib.Path(keeper.name)

    def check(self, engine, *more):
        done = subprocess.run([PLUMBLINE, "engine", "check", engine, *more],
                              capture_output=True,
                              text=True,
                              check=False,
                              cwd=self.folder)
        steps = re.findall(r"^(ok|missing|-) +(.{14}) (.*)$", done.stdout, re.MULTILINE)
        return done, [(state, name.strip(), text) for state, name, text in steps]

    def copy(self, file, old, new):
        """The example and the kit with one text replaced."""
        source, copy = NUMPY.resolve().parent.parent, self.folder / "copy"
        for name in ("plumbline_engine", "examples"):
            shutil.copytree(source / name, copy / name)
        text = (copy / file).read_text()
        self.assertEqual(text.count(old), 1, (file, old))
        (copy / file).write_text(text.replace(old, new))
        return copy / "examples" / "exact_numpy"


class Whole(InFolder):
    def test_every_step_that_is_claimed_is_ok(self):
        done, steps = self.check(NUMPY)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        self.assertEqual([name for _, name, _ in steps], FIRST + [
            "long run", "grouped_heads", "dropout", "accumulation", "bf16", "fp16", "ranks", "zero 1", "zero 2",
            "zero 3"
        ])
        self.assertEqual([name for state, name, _ in steps if state != "ok"],
                         ["bf16", "fp16", "zero 1", "zero 2", "zero 3"])
        self.assertIn("15 steps are ok, 5 not claimed.", done.stdout)


class Missing(InFolder):
    def check_missing(self, engine, step, words):
        done, steps = self.check(engine)
        state, name, text = steps[-1]
        self.assertEqual((done.returncode, state, name), (1, "missing", step), done.stdout + done.stderr)
        self.assertRegex(text, words)
        self.assertEqual({state for state, _, _ in steps[:-1]} - {"ok"}, set())
        self.assertRegex(
            done.stdout,
            r"\n  expected   \S.*\n  again      \S.*\n\n\d+ steps? (is|are) ok, the next one is missing.\n$")
        return re.search(r"^  again      (.*)$", done.stdout, re.MULTILINE).group(1)

    def test_programs_that_are_no_engine(self):
        silent = self.folder / "silent"
        silent.write_text("#!/bin/sh\n")
        silent.chmod(0o755)
        for program, words in ((self.folder / "nowhere", "nowhere"), (silent, "no output|nothing"),
                               ("/bin/false", "exit code 1"), ("/bin/echo", "JSON|json")):
            self.check_missing(program, "describe", words)

    def test_the_command_shows_it_again(self):
        again = self.check_missing(
            self.copy("examples/exact_numpy", "self.updates = self.case.updates", "self.updates = None"), "case",
            "TypeError")
        done = subprocess.run(again, shell=True, capture_output=True, text=True, check=False, cwd=self.folder)
        self.assertEqual(done.returncode, 5)
        self.assertIn("TypeError", done.stderr)


class Document(InFolder):
    def test_the_engine_of_the_document_stops_where_it_says(self):
        text = DOCUMENT.read_text()
        engine = self.folder / "my_engine"
        engine.write_text(re.search(r"```python\n(.*?)```", text, re.DOTALL).group(1))
        engine.chmod(0o755)
        shown = re.search(r"engine check ./my_engine\n(.*?)  again ", text, re.DOTALL).group(1)
        path = "%s:%s" % (NUMPY.resolve().parent.parent, os.environ.get("PYTHONPATH", ""))
        done = subprocess.run([PLUMBLINE, "engine", "check", engine], capture_output=True, text=True, check=False,
                              cwd=self.folder, env={**os.environ, "PATH": "/usr/bin:/bin", "PYTHONPATH": path,
                                                      "PYTHONDONTWRITEBYTECODE": "1"})
        self.assertEqual(done.stdout.partition("  again ")[0], shown, done.stderr)
        self.assertTrue(done.stdout.endswith("\n3 steps are ok, the next one is missing.\n"))


def add_test_of(number, file, old, new, step, words):
    def test(self):
        self.check_missing(self.copy(file, old, new), step, words)
    setattr(Missing, "test_%02d_stops_at_%s" % (number, step), test)


for index, entry in enumerate(WRONG):
    add_test_of(index, *entry)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]], verbosity=2)
