# SPDX-License-Identifier: Apache-2.0
"""Failing cases made smaller, from outside: engines with a planted defect end at what the defect needs, the printed line
fails again, and case files that are wrong are refused.

Usage: shrink_test.py PATH_OF_PLUMBLINE PATH_OF_OPTIMIZED_DEFECTS
How the search itself goes is tested in conformance/cases/shrink_test.cc.
"""

import json
import os
import pathlib
import shlex
import signal
import stat
import subprocess
import sys
import tempfile
import time
import unittest

PLUMBLINE, DEFECTS = (os.path.abspath(path) for path in sys.argv[1:3])
# Enough on a busy machine: the search ends by itself.
ENOUGH_SECONDS = 400
LEDGER_CASE = "exact/grouped-v5/data3-zero1-acc4-bucket_below-bf16"


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.dir = pathlib.Path(folder.name)

    def run_line(self, *arguments):
        return subprocess.run(
            [PLUMBLINE, *map(str, arguments)], capture_output=True, text=True, timeout=900, cwd=self.dir
        )

    def verify(self, *arguments):
        """Runs verify with a fresh --out; returns the finished process and its record, or None."""
        out = self.dir / f"out{len(list(self.dir.iterdir()))}"
        done = self.run_line("verify", "--out", out, *arguments)
        record = out / "record.json"
        return done, json.loads(record.read_text()) if record.exists() else None

    def defective(self, *defects):
        """Our engine with these defects, as a program of somebody else's."""
        path = self.dir / ("engine-" + "-".join(defects))
        flags = " ".join("--defect " + defect for defect in defects)
        path.write_text(f'#!/bin/sh\nexec {shlex.quote(DEFECTS)} {flags} "$@"\n')
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return path

    def assert_refused(self, done, *parts):
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertEqual(done.stdout, "")
        self.assertEqual(len(done.stderr.strip().splitlines()), 1, done.stderr)
        for part in parts:
            self.assertIn(part, done.stderr)


class Shrinking(Case):
    def shrink(self, defect, case):
        """The record of the shrunk case, and its file; the printed line was run and failed for the same reason."""
        engine = self.defective(defect)
        done, record = self.verify("--case", case, "--engine", engine, "--shrink", ENOUGH_SECONDS)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        shrunk = record["cases"][0]["shrunk"]
        self.assertTrue(shrunk["finished"], shrunk)
        self.assertEqual(shrunk["note"], "")
        self.assertGreater(shrunk["tried"], 3)
        for line in ("fails like it: " + shrunk["reduced"], shrunk["message"], shrunk["reproduce"]):
            self.assertIn(line, done.stdout)
        words = shlex.split(shrunk["reproduce"])
        self.assertEqual(words[:3], ["./plumbline", "verify", "--case-file"])
        again, record_again = self.verify(*words[2:])
        self.assertEqual(again.returncode, 1, again.stdout + again.stderr)
        (entry,) = record_again["cases"]
        self.assertEqual(entry["verdict"], record["cases"][0]["verdict"])
        self.assertTrue(entry["message"].startswith(shrunk["message"]), entry["message"])
        self.assertEqual(entry["reproduce"], shrunk["reproduce"])
        return shrunk, self.dir / words[3]

    def test_a_defect_of_one_stage_with_several_ranks_needs_two_ranks_one_layer_and_one_step(self):
        shrunk, path = self.shrink("G14", LEDGER_CASE)
        case = json.loads(path.read_text())
        self.assertEqual(case["config"]["mesh"]["data"], 2)
        self.assertEqual(case["config"]["zero_optimization"]["stage"], 1)
        self.assertEqual(case["config"]["gradient_accumulation_steps"], 1)
        self.assertFalse(case["config"]["bf16"]["enabled"])
        self.assertFalse(case["model"]["dropout"])
        self.assertEqual((case["steps"], case["model"]["layers"], case["model"]["heads"], case["model"]["width"]), (1, 1, 1, 1))
        self.assertIn("data 3 → 2", shrunk["reduced"])
        self.assertIn("steps 50 → 1", shrunk["reduced"])

        # The engine without the defect does not fail in it, and one step is too short to show that it is right.
        done, record = self.verify("--case-file", path)
        (entry,) = record["cases"]
        self.assertEqual(entry["verdict"], "VACUOUS")
        checks = {check["name"]: check for check in entry["checks"]}
        self.assertEqual((checks["ledger"]["outcome"], checks["exact"]["outcome"]), ("pass", "pass"))
        self.assertIn("ends before step", checks["amplification"]["detail"])

        # A file may have comments, and what it says is run: three ranks.
        case["config"]["mesh"]["data"] = 3
        case["config"]["train_batch_size"] = 3
        other = self.dir / "other.json"
        other.write_text("// three\n" + json.dumps(case))
        done, record = self.verify("--case-file", other, "--engine", self.defective("G14"))
        self.assertEqual((record["cases"][0]["verdict"], record["cases"][0]["ranks"]), ("FAIL", 3))
        listed = self.run_line("verify", "--case-file", other, "--list")
        self.assertEqual((listed.returncode, listed.stdout), (0, case["id"] + "\n"))

    def test_a_defect_of_accumulation_needs_two_micro_batches_and_one_rank(self):
        _, path = self.shrink("G1", "exact/dense-v19/data2-zero0-acc3-bucket_all-fp32")
        case = json.loads(path.read_text())
        self.assertEqual(case["config"]["gradient_accumulation_steps"], 2)
        self.assertEqual(case["config"]["mesh"]["data"], 1)
        self.assertEqual((case["steps"], case["model"]["layers"]), (1, 1))

    def test_a_defect_of_a_real_optimizer_needs_one_rank_one_step_and_little_of_the_recipe(self):
        shrunk, path = self.shrink("O2", "gpt2/tied-adamw/data2-zero1-acc3-bucket_at-serial-bf16")
        case = json.loads(path.read_text())
        config, model = case["config"], case["model"]
        self.assertEqual((case["steps"], model["layers"], model["heads"], model["dropout"]), (1, 1, 1, 0))
        self.assertEqual((config["mesh"]["data"], config["gradient_accumulation_steps"]), (1, 1))
        self.assertEqual(config["optimizer"]["params"]["weight_decay"], 0)  # clipping may stay: it brings gradients near epsilon
        self.assertFalse(config["bf16"]["enabled"])
        self.assertFalse({"scheduler", "param_groups"} & set(config))
        self.assertIn("master of", shrunk["message"])

    def test_without_seconds_nothing_is_tried(self):
        done, record = self.verify("--case", LEDGER_CASE, "--engine", self.defective("G14"), "--shrink", 0)
        self.assertEqual(done.returncode, 1)
        self.assertIsNone(record["cases"][0]["shrunk"])
        self.assertNotIn("fails like it", done.stdout)

    def test_when_time_is_up_what_failed_so_far_is_told(self):
        begin = time.monotonic()
        done, record = self.verify("--case", LEDGER_CASE, "--engine", self.defective("G14"), "--shrink", 0.001)
        shrunk = record["cases"][0]["shrunk"]
        self.assertFalse(shrunk["finished"])
        self.assertEqual((shrunk["reduced"], shrunk["reproduce"]), ("", ""))
        self.assertIn("then time was up", done.stdout)
        self.assertLess(time.monotonic() - begin, 200)

    def test_one_case_of_each_reason_is_tried(self):
        done, record = self.verify(
            "--filter", "exact/[dg]*/data[34]-zero1-*", "--engine", self.defective("G14"), "--shrink", 0.001
        )
        failed = [case for case in record["cases"] if case["verdict"] == "FAIL"]
        self.assertGreater(len(failed), 1, done.stdout)
        self.assertEqual([case["shrunk"] is not None for case in failed], [True] + [False] * (len(failed) - 1))

    def test_what_passes_is_not_tried(self):
        done, record = self.verify("--case", LEDGER_CASE, "--shrink", ENOUGH_SECONDS)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIsNone(record["cases"][0]["shrunk"])


    def test_after_ctrl_c_what_is_known_is_told_without_a_line(self):
        out = self.dir / "out"
        process = subprocess.Popen(
            [PLUMBLINE, "verify", "--out", out, "--case", LEDGER_CASE, "--engine", self.defective("G14"), "--shrink", str(ENOUGH_SECONDS)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        while not (out / "work" / "shrink" / "case").exists():
            self.assertIsNone(process.poll())
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        stdout, _ = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 130)
        record = json.loads((out / "record.json").read_text())
        self.assertTrue(record["interrupted"])
        self.assertEqual(record["totals"]["FAIL"], 1)
        shrunk = record["cases"][0]["shrunk"]
        self.assertEqual((shrunk["finished"], shrunk["note"], shrunk["reproduce"]), (False, "interrupted", ""))
        self.assertIn("interrupted", stdout)
        self.assertFalse((out / "work").exists())


class CaseFiles(Case):
    def test_bad_files_are_refused_in_one_line(self):
        path = self.dir / "bad.json"
        self.assert_refused(self.run_line("verify", "--case-file", path), "bad.json")
        for content in ("", "{", "[]", '{"protocol": 1}', "\0" * 100, '{"protocol": 2}'):
            path.write_text(content)
            self.assert_refused(self.run_line("verify", "--case-file", path), "bad.json")

    def test_a_text_that_is_too_short_for_the_file_is_named(self):
        path = self.dir / "long.json"
        layout = {"train_batch_size": 4, "optimizer": {"type": "SGD", "params": {"lr": 0.1}}, "mesh": {"data": 2}}
        model = {"layers": 1, "width": 8, "heads": 2, "positions": 100, "hidden": 8, "vocab": 11}
        path.write_text(json.dumps({"protocol": 1, "id": "gpt2/long", "family": "gpt2", "model": model, "config": layout,
                                    "seed": 1, "steps": 4, "timeout_s": 60}))
        text = self.dir / "short.txt"
        text.write_text("too short a text")
        self.assert_refused(self.run_line("verify", "--case-file", path, "--text", text), "allowed: at least 101")

    def test_what_the_file_says_cannot_be_said_twice(self):
        path = self.dir / "any.json"
        for option in (("--seed", 3), ("--case", "x"), ("--filter", "x"), ("--tier", "full"), ("--shard", "1/2"), ("--self-test",)):
            self.assert_refused(self.run_line("verify", "--case-file", path, *option), option[0])

    def test_seconds_are_checked(self):
        for seconds in ("-1", "nan", "inf", "x"):
            self.assert_refused(self.run_line("verify", "--shrink", seconds), "--shrink")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
