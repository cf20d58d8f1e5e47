# SPDX-License-Identifier: Apache-2.0
"""Prints `N passed, N failed` (`, N skipped` if any) from the event file of a `bazel test`, for ./plumbline test.

  count_tests.py [--json] EVENTS STATUS     STATUS is Bazel's exit code

With --json it prints one object instead: {"passed": N, "failed": N, "skipped": N, "failures": [{"target": "//a:b", "state":
"FAILED"}, ...]}, as many failures as are counted. A test that ran (or whose result came from the cache) has one summary.
Without a summary it was filtered by its tags or is incompatible with this machine (skipped), or it did not build (failed,
state NOT_BUILT). A failure that no test accounts for, such as a broken library or no test at all, counts as one with an
empty target, so that the line never reads like success when Bazel's exit code does not.
"""

import json
import sys


def count(lines, status):
    """(number passed, failures as (target, state), number skipped)."""
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
    passed = {label for label, state in summaries.items() if state == "PASSED"}
    skipped = (tests & built) - set(summaries)
    failed = (tests | set(summaries)) - passed - skipped
    failures = [(label, summaries.get(label, "NOT_BUILT")) for label in sorted(failed)]
    if status and not failures:
        failures = [("", "BAZEL_EXIT_%d" % status)]
    return len(passed), failures, len(skipped)


def main(arguments):
    as_json = arguments[0] == "--json"
    path, status = arguments[-2:]
    try:
        with open(path, encoding="utf-8") as events:
            passed, failures, skipped = count(events, int(status))
    except OSError:  # Bazel did not get as far as writing it
        passed, failures, skipped = 0, [("", "BAZEL_EXIT_%s" % status)], 0
    if as_json:
        print(json.dumps({"passed": passed, "failed": len(failures), "skipped": skipped,
                          "failures": [{"target": target, "state": state} for target, state in failures]}))
    else:
        print("%d passed, %d failed%s" % (passed, len(failures), ", %d skipped" % skipped if skipped else ""))


if __name__ == "__main__":
    main(sys.argv[1:])
