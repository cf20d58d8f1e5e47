# SPDX-License-Identifier: Apache-2.0
"""The kit's torch module through its example, judged by the harness: in each storage type it trains what the reference
trains, and copies with one mistake that PyTorch invites do not.

Usage: torch_test.py PLUMBLINE EXACT_TORCH FOLDERS. Takes the torch of `plumbline engine install`, else that which
python3 has. Without either it says NOT_RUN, and checks that an engine without torch says so."""
import importlib.util
import json
import pathlib
import re
import runpy
import shutil
import subprocess
import sys
import tempfile
import unittest

PLUMBLINE, ENGINE = (pathlib.Path(path).absolute() for path in sys.argv[1:3])
TORCH = runpy.run_path(sys.argv[3])["cache_folder"]() / "engines/torch/packages"
LISTED = subprocess.run([PLUMBLINE, "verify", "--list"], stdout=subprocess.PIPE, text=True, check=True).stdout.split()
# A case of each storage type on one rank; the last two have groups of heads and dropout. That of bf16 is in one
# micro-batch: only a whole gradient is certain to have more digits than bf16 has.
PATTERN = "exact/%s/data1-.*-%s-.*-%s"
CASES = {storage: next(id for id in LISTED if re.fullmatch(PATTERN % (problem, parts, storage), id))
         for problem, parts, storage in (("dense-v19", "acc[2-9]", "fp32"), ("grouped-v5", "acc1", "bf16"),
                                         ("grouped-v5", "acc[2-9]", "fp16"))}


# title: (text of exact_torch.py, its replacement, storage type of the case that shows it)
WRONG = {
    "autograd makes the slope": ("return _Fold.apply(x, self.sizes", "return fold(x, self.sizes", "fp32"),
    "the kink rises": ("_phase(x, context.b) < 2 * context.b", "_phase(x, context.b) <= 2 * context.b", "fp32"),
    "no fold of the gradients": ("return fold(gradient, context.g), None", "return gradient, None", "fp32"),
    "gradients of weights in the storage type": ("x.flatten(0, -2).float().t() @ dy.flatten(0, -2).float()",
                                                 "(x.flatten(0, -2).t() @ dy.flatten(0, -2)).float()", "bf16"),
    "the last of equal logits": ("torch.where(logits == top, index, logits.shape[-1]).min(-1)",
                                 "torch.where(logits == top, index, -1).max(-1)", "fp32"),
    "a gradient fold without the loss scale": ("[\"gradient_fold_bound\"] * self.loss_scale",
                                               "[\"gradient_fold_bound\"]", "fp16"),
}


class Verify(unittest.TestCase):
    def setUp(self):
        keeper = tempfile.TemporaryDirectory()
        self.addCleanup(keeper.cleanup)
        self.folder = pathlib.Path(keeper.name)

    def starter(self, engine):
        path = self.folder / "start"
        path.write_text("#!/bin/sh\nexec '%s' --torch '%s' \"$@\"\n" % (engine, TORCH))
        path.chmod(0o755)
        return path

    def verify(self, engine, id):
        out = self.folder / ("out-" + id.replace("/", "."))
        subprocess.run([PLUMBLINE, "verify", "--engine", self.starter(engine), "--case", id, "--no-self-test",
                        "--shrink", "0", "--out", out], capture_output=True, check=False)
        return json.loads((out / "record.json").read_text())["cases"][0]

    def copy(self, old, new):
        source, copy = ENGINE.resolve().parent.parent, self.folder / "copy"
        for name in ("plumbline_engine", "examples"):
            shutil.copytree(source / name, copy / name)
        module = copy / "plumbline_engine" / "exact_torch.py"
        self.assertEqual(module.read_text().count(old), 1, old)
        module.write_text(module.read_text().replace(old, new))
        return copy / "examples" / "exact_torch"


class WithTorch(Verify):
    def test_trains_what_the_reference_trains_in_each_storage_type_with_groups_and_dropout(self):
        for id in CASES.values():
            case = self.verify(ENGINE, id)
            self.assertEqual((case["verdict"], case["message"]), ("PASS", ""), id)


class WithoutTorch(Verify):
    def test_its_cases_are_not_run(self):
        absent = self.folder / "absent" / "torch"
        absent.mkdir(parents=True)
        (absent / "__init__.py").write_text("raise ImportError('no such torch')\n")
        engine = self.folder / "engine"
        engine.write_text("#!/bin/sh\nexec '%s' --torch '%s' \"$@\"\n" % (ENGINE, absent.parent))
        engine.chmod(0o755)
        for command in (["verify", "--case", CASES["fp32"], "--engine", engine], ["engine", "check", engine]):
            done = subprocess.run([PLUMBLINE, *command], capture_output=True, text=True, check=False, cwd=self.folder)
            self.assertEqual(done.returncode, 1 if command[0] == "verify" else 4, done.stdout + done.stderr)
            self.assertIn("exact_torch: torch cannot be imported: no such torch", done.stdout + done.stderr)


def add_test_of(title, old, new, storage):
    def test(self):
        case = self.verify(self.copy(old, new), CASES[storage])
        self.assertIn(case["verdict"], ("FAIL", "ERROR"), case["message"])
    setattr(WithTorch, "test_this_fails_" + title.replace(" ", "_"), test)


for name, change in WRONG.items():
    add_test_of(name, *change)


if __name__ == "__main__":
    names = sys.argv[4:]
    if not (TORCH / "torch").is_dir() and importlib.util.find_spec("torch") is None:
        print("NOT_RUN: all tests but WithoutTorch: no torch for python3, nor in %s" % TORCH, flush=True)
        names = ["WithoutTorch"]
    unittest.main(argv=[sys.argv[0], *names], verbosity=2)
