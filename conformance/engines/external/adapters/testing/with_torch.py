# SPDX-License-Identifier: Apache-2.0
"""Runs a test file of adapters: all of it, or its class WithoutTorch where the program says that it has no PyTorch."""
import subprocess
import sys
import unittest


def main(program, names=()):
    probe = subprocess.run([program, "describe"], capture_output=True, text=True, check=False)
    if probe.returncode == 4:
        print("NOT_RUN: all tests but WithoutTorch: %s" % probe.stderr.strip(), flush=True)
        names = ["WithoutTorch"]
    unittest.main(argv=[sys.argv[0], *names], verbosity=2)
