# SPDX-License-Identifier: Apache-2.0
"""`plumbline verify --engine` on the deepspeed adapter: it trains family exact under ZeRO 3 with accumulation bit for
bit, and copies with one mistake that DeepSpeed invites do not.

Usage: deepspeed_test.py PLUMBLINE DEEPSPEED. Without DeepSpeed in its folder it says NOT_RUN, and checks that verify
says so too."""
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

PLUMBLINE, ENGINE = (pathlib.Path(path).absolute() for path in sys.argv[1:3])
sys.path.insert(0, str(ENGINE.parent.parent))
from plumbline_torch import packages  # noqa: E402

LISTED = subprocess.run([PLUMBLINE, "verify", "--list"], stdout=subprocess.PIPE, text=True, check=True).stdout.split()
CASE = next(id for id in LISTED if re.fullmatch(r"exact/[^/]*/data2-zero3[a-z]*-acc[2-9]-.*-fp32", id))
# title: (text of the adapter, its replacement)
WRONG = {
    "the average over ranks where the sum is due": ("gradient * self.factor", "gradient"),
    "divided by the accumulation steps": ("scale_wrt_gas=False", "scale_wrt_gas=True"),
    "clipped where nothing says so": ('raw.setdefault("gradient_clipping", 0)', "pass"),
    "a shard at another rank's place": ("Slice(self.parts[name].begin, array(tensor))",
                                        "Slice(0, array(tensor))"),
}


class Verify(unittest.TestCase):
    def setUp(self):
        keeper = tempfile.TemporaryDirectory()
        self.addCleanup(keeper.cleanup)
        self.folder = pathlib.Path(keeper.name)

    def verify(self, program):
        out = self.folder / "out"
        done = subprocess.run([PLUMBLINE, "verify", "--engine", program, "--case", CASE, "--no-self-test", "--shrink",
                               "0", "--out", out], capture_output=True, text=True, check=False, cwd=self.folder)
        record = json.loads((out / "record.json").read_text()) if (out / "record.json").exists() else {"cases": []}
        self.assertEqual(len(record["cases"]), 1, done.stdout + done.stderr)
        return record["cases"][0]

    def copy(self, old, new):
        source, copy = ENGINE.resolve().parent.parent, self.folder / "copy"
        for name in ("plumbline_engine", "plumbline_torch"):
            shutil.copytree(source / name, copy / name)
        (copy / "adapters").mkdir()
        program = pathlib.Path(shutil.copy(ENGINE.resolve(), copy / "adapters"))
        self.assertEqual(program.read_text().count(old), 1, old)
        program.write_text(program.read_text().replace(old, new))
        return program


class WithDeepSpeed(Verify):
    def test_trains_the_exact_family_in_shards(self):
        case = self.verify(ENGINE)
        self.assertEqual((case["verdict"], case["message"]), ("PASS", ""))


class WithoutDeepSpeed(Verify):
    def test_its_cases_are_not_run(self):
        absent = self.folder / "absent"
        absent.write_text("#!/bin/sh\nexec '%s' --packages /nowhere \"$@\"\n" % ENGINE)
        absent.chmod(0o755)
        case = self.verify(absent)
        self.assertEqual(case["verdict"], "NOT_RUN")
        self.assertIn("no DeepSpeed in /nowhere; ./plumbline engine install deepspeed installs it", case["message"])


def add_test_of(title, old, new):
    def test(self):
        case = self.verify(self.copy(old, new))
        self.assertIn(case["verdict"], ("FAIL", "ERROR"), case["message"])
    setattr(WithDeepSpeed, "test_this_fails_" + re.sub(r"\W+", "_", title), test)


for name, change in WRONG.items():
    add_test_of(name, *change)


if __name__ == "__main__":
    names = sys.argv[3:]
    if not (packages.default_folder("deepspeed") / "deepspeed").is_dir():
        print("NOT_RUN: all tests but WithoutDeepSpeed: none in %s" % packages.default_folder("deepspeed"), flush=True)
        names = ["WithoutDeepSpeed"]
    unittest.main(argv=[sys.argv[0], *names], verbosity=2)
