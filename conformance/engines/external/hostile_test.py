# SPDX-License-Identifier: Apache-2.0
"""Whatever an engine of several processes does in a case costs that case alone, and is named with step, tensor and
rank: end to end, through `plumbline verify`, with an engine that else trains right.

Usage: hostile_test.py PLUMBLINE HOSTILE
"""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

PLUMBLINE, HOSTILE = (pathlib.Path(path).absolute() for path in sys.argv[1:3])
FILTER = "exact/*/*data2-zero0-*-fp32"
LISTED = subprocess.run([PLUMBLINE, "verify", "--list", "--filter", FILTER], stdout=subprocess.PIPE, text=True,
                        check=True).stdout.split()
PLAIN = next(id for id in LISTED if "metamorphic" not in id)
# Its neighbour in the list of the same start, whose cases come after it: they must not suffer.
NEIGHBOUR = next(id for id in LISTED if "metamorphic-permuted" in id)

# how: (guilty rank, verdict, what is said of it)
WAYS = {
    "crash": (1, "ERROR", r"rank 1 killed by SIGSEGV"),
    "leave": (1, "ERROR", r"rank 1 (is not over|ended with exit code 0)"),
    "raise": (1, "ERROR", r"rank 1: ArithmeticError: no such number"),
    "forget": (1, "ERROR", r"rank 1: ValueError: export\(\): moment of pos\.weight: missing"),
    "turn": (0, "ERROR", r"ValueError: export\(\): master of layers\.0\.mlp\.up has shape"),
    "fraction": (1, "ERROR", r"rank 1: ValueError: export\(\): gradient of embed\.weight"),
    "drop": (1, "FAIL", r"step 7: moment of embed\.weight is not whole on rank 1"),
    "beyond": (1, "FAIL", r"embed\.weight"),
    "digest_nan": (1, "FAIL", r"trace"),
    "digest_word": (0, "FAIL", r"trace"),
    "twice": (1, "FAIL", r"rank1/trace\.jsonl:10: step is 7"),
    "garbage": (1, "FAIL", r"trace"),
    "cut": (1, "FAIL", r"trace"),
    "endless": (0, "FAIL", r"end"),
    "gone": (1, "FAIL", r"trace"),
}


class Hostile(unittest.TestCase):
    def setUp(self):
        keeper = tempfile.TemporaryDirectory()
        self.addCleanup(keeper.cleanup)
        self.folder = pathlib.Path(keeper.name)

    def verify(self, how, rank, *arguments):
        """{id: case} of the two cases, of which one goes wrong."""
        (self.folder / "plan").write_text(json.dumps({PLAIN: [how, rank]}))
        engine = self.folder / "engine"
        engine.write_text("#!/bin/sh\nexec '%s' '%s' \"$@\"\n" % (HOSTILE, self.folder / "plan"))
        engine.chmod(0o755)
        out = self.folder / "out"
        done = subprocess.run([PLUMBLINE, "verify", "--engine", engine, "--filter", FILTER, "--no-self-test", "--shrink", "0",
                               "--jobs", "1", "--expect-unsupported", "*", "--out", out, *arguments],
                              capture_output=True, text=True, check=False, cwd=self.folder)
        self.assertIn(done.returncode, (0, 1), done.stderr)
        cases = {case["id"]: case for case in json.loads((out / "record.json").read_text())["cases"]}
        self.assertGreater(len(cases), 1)
        return cases

    def test_output_of_any_kind_costs_nothing(self):
        for case in self.verify("chatter", 1).values():
            self.assertEqual((case["verdict"], case["message"]), ("PASS", ""), case["id"])

    def test_a_rank_that_hangs_is_ended_and_the_time_out_is_named(self):
        cases = self.verify("hang", 1, "--timeout", "5")
        self.assertEqual(cases[PLAIN]["verdict"], "ERROR")
        self.assertRegex(cases[PLAIN]["message"], "rank 1 is not over|no status after")
        self.assertEqual(cases[NEIGHBOUR]["verdict"], "PASS", cases[NEIGHBOUR]["message"])


def add_test_of(how, rank, verdict, words):
    def test(self):
        cases = self.verify(how, rank)
        self.assertEqual(cases[PLAIN]["verdict"], verdict, cases[PLAIN]["message"])
        self.assertRegex(cases[PLAIN]["message"], words)
        self.assertEqual(cases[NEIGHBOUR]["verdict"], "PASS", cases[NEIGHBOUR]["message"])
    setattr(Hostile, "test_%s_costs_its_case_only" % how, test)


for name, expected in WAYS.items():
    add_test_of(name, *expected)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=2)
