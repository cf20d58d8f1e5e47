# SPDX-License-Identifier: Apache-2.0
"""`plumbline verify --engine` on the adapter: it passes a case of several ranks and micro-batches, and each of its wrong copies
fails it with the words that belong to what is wrong.

Usage: verify_test.py STARTER ENGINE PLUMBLINE. Without PyTorch it says NOT_RUN, and checks that verify says so too.
"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

STARTER, ENGINE, PLUMBLINE = (pathlib.Path(path).absolute() for path in sys.argv[1:4])
sys.path.insert(0, str(ENGINE.parent / "testing"))
import with_pytorch  # noqa: E402
import wrong_copies  # noqa: E402

LISTED = subprocess.run([PLUMBLINE, "verify", "--list"], stdout=subprocess.PIPE, text=True, check=True).stdout.split()
# SGD, whose steps do not hide a constant factor; the first that the adapter takes.
CASE = next(id for id in LISTED if re.fullmatch(r"gpt2/(untied-sgd|frozen-momentum)/data[2-9]-zero0-acc[2-9]-.*-fp32", id))


# Relations between its own runs, on two or three ranks: one of each kind that the adapter takes.
RELATIONS = "gpt2/*/metamorphic-*-data[23]-zero0-*"


class Verify(unittest.TestCase):
    def setUp(self):
        keeper = tempfile.TemporaryDirectory()
        self.addCleanup(keeper.cleanup)
        self.folder = pathlib.Path(keeper.name)

    def verify(self, starter, selection=("--case", CASE)):
        out = self.folder / "out"
        done = subprocess.run([PLUMBLINE, "verify", "--engine", starter, *selection, "--no-self-test", "--shrink", "0", "--out", out],
                              capture_output=True, text=True, check=False, cwd=self.folder)
        record = json.loads((out / "record.json").read_text()) if (out / "record.json").exists() else {"cases": []}
        self.assertGreater(len(record["cases"]), 0, done.stdout + done.stderr)
        return done.returncode, record["cases"]

    def verify_one(self, starter):
        code, cases = self.verify(starter)
        self.assertEqual(len(cases), 1)
        return code, cases[0]


class WithPyTorch(Verify):
    def test_the_adapter_passes(self):
        code, case = self.verify_one(STARTER)
        self.assertEqual((code, case["verdict"], case["message"]), (0, "PASS", ""))
        self.assertEqual({check["name"] for check in case["checks"] if check["outcome"] == "pass" and check["compared"] > 0}
                         & {"gradient", "update", "loss", "replicas"}, {"gradient", "update", "loss", "replicas"})


    def test_its_own_runs_agree_where_a_relation_says_so(self):
        code, cases = self.verify(STARTER, ("--filter", RELATIONS))
        self.assertEqual((code, [case["message"] for case in cases if case["verdict"] != "PASS"]), (0, []))
        self.assertGreaterEqual({case["axes"]["relation"] for case in cases}, {"split", "scaled", "accumulated"})
        for case in cases:
            compared = {check["name"]: check["compared"] for check in case["checks"] if check["outcome"] == "pass"}
            self.assertGreater(compared.get("metamorphic", 0), 0, case["id"])


class WithoutPyTorch(Verify):
    def test_its_cases_are_not_run(self):
        absent = self.folder / "absent"
        absent.write_text("#!/bin/sh\nexec '%s' --torch /nowhere \"$@\"\n" % STARTER)
        absent.chmod(0o755)
        code, case = self.verify_one(absent)
        self.assertEqual((code, case["verdict"]), (1, "NOT_RUN"))
        self.assertIn("no PyTorch in /nowhere", case["message"])


def add_test_of(title, old, new, words):
    def test(self):
        code, case = self.verify_one(wrong_copies.changed_copy(STARTER, ENGINE, self.folder / "copy", old, new))
        self.assertEqual((code, case["verdict"]), (1, "FAIL"), case["message"])
        self.assertRegex(case["message"], words)
    setattr(WithPyTorch, "test_this_fails_" + title.split(":")[0].replace(" ", "_"), test)


for name, (before, after, message) in wrong_copies.WRONG.items():
    add_test_of(name, before, after, message)


if __name__ == "__main__":
    with_pytorch.main(STARTER, sys.argv[4:])
