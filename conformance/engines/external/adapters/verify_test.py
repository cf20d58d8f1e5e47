# SPDX-License-Identifier: Apache-2.0
"""`plumbline verify --engine` on adapters: they pass a case of each thing that they do differently, and each of their
wrong copies fails one with the words that belong to what is wrong.

Usage: verify_test.py PLUMBLINE PROGRAM... Without PyTorch it says NOT_RUN, and checks that verify says so too.
"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

PLUMBLINE, *PROGRAMS = (pathlib.Path(path).absolute() for path in sys.argv[1:])
PROGRAMS = {path.name: path for path in PROGRAMS}
SOME = min(PROGRAMS)
sys.path.insert(0, str(PROGRAMS[SOME].parent / "testing"))
import copies  # noqa: E402
import with_torch  # noqa: E402

LISTED = subprocess.run([PLUMBLINE, "verify", "--list"], stdout=subprocess.PIPE, text=True, check=True).stdout.split()


def first(pattern):
    return next(id for id in LISTED if re.fullmatch(pattern, id))


# The first is what wrong copies are tried on. Of ddp one with SGD, whose steps do not hide a constant factor.
CASES = {"torch_python": [first(r"gpt2/tied-adamw/data1-.*-acc[2-9]-.*-fp32")],
         "ddp": [first(r"gpt2/(untied-sgd|frozen-momentum)/data2-zero0-acc[2-9]-.*-fp32"),
                 first(r"exact/.*/data2-zero1-acc[2-9]-.*-fp32")],
         # Reduced in each micro-batch, and once for all of them, and in bf16 over shards of which one is empty.
         "fsdp2": [first(r"exact/.*/data2-zero2-acc[2-9]-.*"), first(r"exact/.*/data2-zero3.*-acc[2-9]-.*-serial-fp32"),
                   first(r"gpt2/untied-sgd/data[34]-.*-bf16")]}


class Verify(unittest.TestCase):
    def setUp(self):
        keeper = tempfile.TemporaryDirectory()
        self.addCleanup(keeper.cleanup)
        self.folder = pathlib.Path(keeper.name)

    def verify(self, program, id):
        out = self.folder / "out"
        command = [PLUMBLINE, "verify", "--engine", program, "--case", id, "--no-self-test", "--shrink", "0", "--out", out]
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=self.folder)
        path = out / "record.json"
        record = json.loads(path.read_text()) if path.exists() else {"cases": []}
        self.assertEqual(len(record["cases"]), 1, done.stdout + done.stderr)
        return done.returncode, record["cases"][0]


class WithTorch(Verify):
    pass


class WithoutTorch(Verify):
    def test_its_cases_are_not_run(self):
        absent = self.folder / "absent"
        absent.write_text("#!/bin/sh\nexec '%s' --packages /nowhere \"$@\"\n" % PROGRAMS[SOME])
        absent.chmod(0o755)
        code, case = self.verify(absent, CASES[SOME][0])
        self.assertEqual((code, case["verdict"]), (1, "NOT_RUN"))
        self.assertIn("no PyTorch in /nowhere", case["message"])


def add(title, test):
    setattr(WithTorch, "test_" + re.sub(r"\W+", "_", title), test)


def add_test_of(program, id):
    def test(self):
        code, case = self.verify(PROGRAMS[program], id)
        self.assertEqual((code, case["verdict"], case["message"]), (0, "PASS", ""))
    add("%s passes %s" % (program, id), test)


def add_test_of_copy(title, program, file, old, new, words):
    def test(self):
        wrong = copies.changed_copy(PROGRAMS[program], file, self.folder / "copy", old, new)
        code, case = self.verify(wrong, CASES[program][0])
        self.assertEqual(code, 1)
        self.assertIn(case["verdict"], ("FAIL", "ERROR"), case["message"])  # the kit stops some of them
        self.assertRegex(case["message"], words)
    add("this fails: " + title, test)


for name in PROGRAMS:
    for one in CASES[name]:
        add_test_of(name, one)
for name, change in copies.WRONG.items():
    if change[0] in PROGRAMS:
        add_test_of_copy(name, *change)


if __name__ == "__main__":
    with_torch.main(PROGRAMS[SOME])
