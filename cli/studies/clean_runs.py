#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs `verify` on seed after seed and says, one JSON object a line, whether a right engine was accused.

  clean_runs.py ./plumbline 22 41            seeds 22 to 41, all cases, no planted defects
  clean_runs.py ./plumbline 1 500 --filter 'gpt2/*'
  clean_runs.py FOLDER/cli/plumbline 1 500 --jobs 2 --parallel 16     with 32 processors

The nearest that anything came to a limit is kept beside the verdicts, so that a limit that is too tight shows before it
accuses. Lines come in the order in which seeds end. The last line has the totals. Exit code 1 if a case of any seed is not PASS. Ctrl-C ends it after a whole line.
"""

import argparse
import concurrent.futures
import json
import pathlib
import re
import subprocess
import sys
import tempfile

# "... 0.458 of it; ..." of the gradient's detail; "relative distance ... 0.0019 (...), limit 0.019" of a trajectory's.
GRADIENT = re.compile(r"nearest to its limit: .*, (\S+) of it;")
TRAJECTORY = re.compile(r"truth (\S+) \(.*\), limit (\S+?);")


def shares(check):
    """How far a check that passed went towards its limit."""
    if check["outcome"] != "pass" or check["name"] not in ("gradient", "trajectory"):
        return []
    found = (GRADIENT if check["name"] == "gradient" else TRAJECTORY).search(check["detail"])
    if not found:
        raise RuntimeError(f"the detail of {check['name']} has other words: {check['detail']}")
    numbers = [float(number) for number in found.groups()]
    return [numbers[0] / numbers[1] if len(numbers) == 2 else numbers[0]]


def summary(seed, record):
    nearest = {}
    accused = []
    for case in record["cases"]:
        if case["verdict"] != "PASS":
            accused.append({"id": case["id"], "verdict": case["verdict"], "message": case["message"]})
        for check in case["checks"]:
            for share in shares(check):
                if share > nearest.get(check["name"], {"share": -1})["share"]:
                    nearest[check["name"]] = {"share": round(share, 4), "id": case["id"]}
    return {"seed": seed, "cases": len(record["cases"]), "accused": accused, "nearest": nearest}


def run(arguments, seed):
    with tempfile.TemporaryDirectory() as folder:
        command = [arguments.plumbline, "verify", "--no-self-test", "--seed", str(seed), "--json"]
        command += ["--out", str(pathlib.Path(folder) / "out"), "--jobs", str(arguments.jobs)]
        if arguments.filter:
            command += ["--filter", arguments.filter]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode not in (0, 1):
            raise RuntimeError(f"seed {seed}: exit code {done.returncode}: {done.stderr.strip()[-300:]}")
        return summary(seed, json.loads(done.stdout))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("plumbline", help="the program or the launcher")
    parser.add_argument("first", type=int)
    parser.add_argument("last", type=int)
    parser.add_argument("--filter", help="as of verify")
    parser.add_argument("--jobs", type=int, default=2, help="as of verify")
    parser.add_argument("--parallel", type=int, default=1, help="seeds at once")
    arguments = parser.parse_args()
    if not 0 <= arguments.first <= arguments.last:
        parser.error(f"seeds are {arguments.first} to {arguments.last}; allowed: 0 <= first <= last")
    if arguments.parallel < 1:
        parser.error(f"--parallel is {arguments.parallel}; allowed: at least 1")
    seeds = cases = accused = 0
    pool = concurrent.futures.ThreadPoolExecutor(arguments.parallel)
    runs = [pool.submit(run, arguments, seed) for seed in range(arguments.first, arguments.last + 1)]
    try:
        for done in concurrent.futures.as_completed(runs):
            line = done.result()
            print(json.dumps(line), flush=True)
            seeds += 1
            cases += line["cases"]
            accused += len(line["accused"])
    except KeyboardInterrupt:
        pass
    except RuntimeError as error:
        print(f"clean_runs: {error}", file=sys.stderr)
        accused += 1
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
    print(json.dumps({"seeds": seeds, "cases": cases, "accused": accused}), flush=True)
    sys.exit(1 if accused or cases == 0 else 0)


if __name__ == "__main__":
    main()
