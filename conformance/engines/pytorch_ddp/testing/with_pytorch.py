# SPDX-License-Identifier: Apache-2.0
"""Runs a test file of the adapter: all of it, or its class WithoutPyTorch where the adapter says that it has no PyTorch."""
import subprocess
import sys
import unittest


def main(starter, names):
    probe = subprocess.run([starter, "describe"], capture_output=True, text=True, check=False)
    if probe.returncode == 4:
        print("NOT_RUN: all tests but WithoutPyTorch: %s" % probe.stderr.strip(), flush=True)
        names = ["WithoutPyTorch"]
    unittest.main(argv=[sys.argv[0], *names], verbosity=2)
