# SPDX-License-Identifier: Apache-2.0
"""Prints `N passed, N failed` (`, N skipped` if any) from the event file of a `bazel test`, for ./plumbline test.

  count_tests.py EVENTS STATUS     STATUS is Bazel's exit code

A test that ran (or whose result came from the cache) has one summary. Without a summary it was filtered by its tags or is
incompatible with this machine (skipped), or it did not build (failed). A failure that no test accounts for, such as a
broken library or no test at all, counts as one, so that the line never reads like success when Bazel's exit code does not.
"""

import json
import sys


def count(lines, status):
    """(passed, failed, skipped)."""
    tests, summaries, built = set(), {}, set()
    for line in lines:
        try:
            event = json.loads(line)
        except ValueError:  # the last line of an interrupted run
            continue
        (kind, key), = event.get("id", {"": ""}).items()
        if kind == "targetConfigured" and "testSize" in event.get("configured", {}):
            tests.add(key["label"])
        elif kind == "testSummary":
            summaries[key["label"]] = event["testSummary"]["overallStatus"]
        elif kind == "targetCompleted":
            incompatible = event.get("aborted", {}).get("reason") == "SKIPPED"
            if incompatible or event.get("completed", {}).get("success"):
                built.add(key["label"])
    passed = sum(1 for state in summaries.values() if state == "PASSED")
    skipped = len((tests & built) - set(summaries))
    failed = len(tests | set(summaries)) - passed - skipped
    return passed, failed or (1 if status else 0), skipped


def main(path, status):
    try:
        with open(path, encoding="utf-8") as events:
            passed, failed, skipped = count(events, int(status))
    except OSError:  # Bazel did not get as far as writing it
        passed, failed, skipped = 0, 1, 0
    print("%d passed, %d failed%s" % (passed, failed, ", %d skipped" % skipped if skipped else ""))


if __name__ == "__main__":
    main(*sys.argv[1:])
