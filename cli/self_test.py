# SPDX-License-Identifier: Apache-2.0
"""Every planted defect is caught and the clean twin passes. Usage: self_test.py PATH_OF_PLUMBLINE"""

import json
import pathlib
import subprocess
import sys
import tempfile

with tempfile.TemporaryDirectory() as folder:
    out = pathlib.Path(folder) / "out"
    done = subprocess.run([sys.argv[1], "verify", "--self-test", "--out", str(out)], capture_output=True, text=True)
    print(done.stdout, done.stderr)
    record = json.loads((out / "record.json").read_text())
survivors = [defect["id"] for defect in record["defects"] if not defect["caught"]]
assert done.returncode == 0, f"exit code {done.returncode}"
assert len(record["defects"]) >= 49 and not survivors, f"{len(record['defects'])} defects, survivors: {survivors}"
assert record["cases"] and all(case["engine"] == "optimized (twin)" for case in record["cases"])
