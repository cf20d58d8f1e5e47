# SPDX-License-Identifier: Apache-2.0
"""`plumbline doctor` from outside, on whatever machine this is: exit codes, the JSON's schema, and its document.

Usage: doctor_test.py PATH_OF_PLUMBLINE PATH_OF_DOCUMENT
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

PLUMBLINE, DOCUMENT = (os.path.abspath(path) for path in sys.argv[1:3])


def doctor(*arguments, program=PLUMBLINE):
    return subprocess.run([program, "doctor", *arguments], capture_output=True, text=True, timeout=60)


class Doctor(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.json = doctor("--json")
        cls.items = json.loads(cls.json.stdout)["items"]

    def test_json_keeps_its_schema_where_verify_runs(self):
        done = self.json
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        report = json.loads(done.stdout)
        self.assertEqual(list(report), ["schema", "can_verify", "items", "gpus"])
        self.assertEqual((report["schema"], report["can_verify"]), (1, True))
        for item in report["items"]:
            self.assertEqual(list(item), ["id", "state", "required", "value", "disables"])
            self.assertIn(item["state"], ("ok", "weak", "missing"))
            self.assertEqual(item["state"] == "ok", item["disables"] == "", item)
        self.assertEqual([item["id"] for item in report["items"] if item["required"]], ["kernel", "libtorch", "engines", "disk_here"])

    def test_the_document_lists_the_ids_in_their_order(self):
        rows = [line.split("|")[1] for line in pathlib.Path(DOCUMENT).read_text().splitlines() if line.startswith("| `")]
        documented = [id for row in rows for id in re.findall(r"`(\w+)`", row) if not id.startswith("gpu") or id == "gpu_driver"]
        self.assertEqual(documented, [item["id"] for item in self.items if not re.fullmatch(r"gpu\d+", item["id"])])

    def test_text_has_the_same_items(self):
        done = doctor()
        self.assertEqual(done.returncode, 0)
        lines = [line.split() for line in done.stdout.splitlines() if not line.startswith(" ")]
        items = [[item["state"], item["id"]] for item in self.items]
        self.assertEqual([line[:2] for line in lines[:-1]], items)
        self.assertEqual(done.stdout.splitlines()[-1], "verify can run.")

    def test_without_engines_verify_cannot_run(self):
        with tempfile.TemporaryDirectory() as folder:
            alone = shutil.copy(PLUMBLINE, folder)
            done = doctor("--json", program=alone)
            self.assertEqual(done.returncode, 4)
            report = json.loads(done.stdout)
            self.assertFalse(report["can_verify"])
            self.assertEqual([item["state"] for item in report["items"] if item["id"] == "engines"], ["missing"])
            self.assertTrue(doctor(program=alone).stdout.endswith("verify cannot run; missing: engines\n"))

    def test_a_cache_folder_that_does_not_exist_yet_is_judged_by_its_disk(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "not", "yet")
            items = json.loads(doctor("--json", "--cache", path).stdout)["items"]
            self.assertIn(path, [item["value"] for item in items if item["id"] == "disk_cache"][0])
            self.assertFalse(os.path.exists(path))

    def test_bad_usage_is_one_line(self):
        done = doctor("--fast")
        self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (2, "", 1), done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
