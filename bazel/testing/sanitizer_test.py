# SPDX-License-Identifier: Apache-2.0
"""A build reports the planted defect of its own sanitizer, and the plain build none: else a green run would say nothing.

Usage: sanitizer_test.py PATH_OF_PLANTED_DEFECT none|address|undefined|thread
"""

import os
import subprocess
import sys
import unittest

PROGRAM, SANITIZER = os.path.abspath(sys.argv[1]), sys.argv[2]
REPORTS = {  # sanitizer -> (defect, words of its report)
    "none": (None, None),
    "address": ("heap", "AddressSanitizer: heap-buffer-overflow"),
    "undefined": ("integer", "runtime error: signed integer overflow"),
    "thread": ("race", "ThreadSanitizer: data race"),
}


class Sanitizer(unittest.TestCase):
    def test_reports_its_own_defect_and_no_other(self):
        own, words = REPORTS[SANITIZER]
        for defect in ("heap", "integer", "race"):
            with self.subTest(defect):
                done = subprocess.run([PROGRAM, defect], capture_output=True, text=True, timeout=50)
                if defect == own:
                    self.assertNotEqual(done.returncode, 0)
                    self.assertIn(words, done.stderr)
                else:
                    self.assertEqual((done.returncode, done.stderr), (0, ""))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
