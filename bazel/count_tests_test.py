# SPDX-License-Identifier: Apache-2.0
"""Tests of count_tests.py on events as Bazel 4.2.3 writes them, cut to the fields that are read."""

import contextlib
import importlib.util
import io
import json
import pathlib
import tempfile
import unittest

spec = importlib.util.spec_from_file_location("count_tests", pathlib.Path(__file__).with_name("count_tests.py"))
count_tests = importlib.util.module_from_spec(spec)
spec.loader.exec_module(count_tests)


def configured(label, test=True):
    return {"id": {"targetConfigured": {"label": label}}, "configured": {"testSize": "SMALL"} if test else {}}


def completed(label, **rest):
    return {"id": {"targetCompleted": {"label": label}}, **(rest or {"completed": {"success": True}})}


def summary(label, state):
    return {"id": {"testSummary": {"label": label}}, "testSummary": {"overallStatus": state}}


def count(events, status):
    passed, failures, skipped = count_tests.count([json.dumps(event) for event in events], status)
    return passed, len(failures), skipped


def printed(arguments, events):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "events")
        if events is not None:
            path.write_text("\n".join(json.dumps(event) for event in events))
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            count_tests.main([*arguments[:-1], str(path), arguments[-1]])
    return output.getvalue()


class Count(unittest.TestCase):
    def test_passed_and_every_other_state(self):
        events = []
        for label, state in [("a", "PASSED"), ("b", "PASSED"), ("c", "FAILED"), ("d", "TIMEOUT"), ("e", "FLAKY"), ("f", "NO_STATUS")]:
            events += [configured(label), completed(label), summary(label, state)]
        self.assertEqual((2, 4, 0), count(events, 3))

    def test_a_library_is_no_test(self):
        self.assertEqual((1, 0, 0), count([configured("l", test=False), completed("l"), configured("a"), summary("a", "PASSED")], 0))

    def test_a_test_that_does_not_build_is_failed(self):
        events = [configured("a"), completed("a"), summary("a", "PASSED"), configured("b"), completed("b", completed={})]
        self.assertEqual((1, 1, 0), count(events, 1))

    def test_a_test_that_was_never_completed_is_failed(self):
        self.assertEqual((0, 1, 0), count([configured("a")], 1))
        self.assertEqual((0, 1, 0), count([configured("a"), completed("a", aborted={})], 1))
        self.assertEqual((0, 1, 0), count([configured("a"), completed("a", aborted={"reason": "USER_INTERRUPTED"})], 8))

    def test_filtered_and_incompatible_tests_are_skipped(self):
        events = [configured("gpu"), completed("gpu"), configured("cuda"), completed("cuda", aborted={"reason": "SKIPPED"}), configured("a"), summary("a", "PASSED")]
        self.assertEqual((1, 0, 2), count(events, 0))

    def test_a_failure_outside_of_tests_counts_as_one(self):
        self.assertEqual((1, 1, 0), count([configured("a"), completed("a"), summary("a", "PASSED")], 1))

    def test_no_test_at_all_is_a_failure(self):
        self.assertEqual((0, 1, 0), count([], 4))
        self.assertEqual((0, 1, 1), count([configured("gpu"), completed("gpu")], 4))

    def test_a_cut_line_is_passed_over(self):
        self.assertEqual((0, [("", "BAZEL_EXIT_1")], 0), count_tests.count(['{"id": {"testSum'], 1))


class Print(unittest.TestCase):
    EVENTS = [configured("//b"), completed("//b", completed={}), summary("//a", "TIMEOUT"), summary("//c", "PASSED"), configured("//d"), completed("//d")]

    def test_a_line(self):
        self.assertEqual(printed(["3"], self.EVENTS), "1 passed, 2 failed, 1 skipped\n")
        self.assertEqual(printed(["0"], [summary("//c", "PASSED")]), "1 passed, 0 failed\n")

    def test_json_names_each_failure(self):
        self.assertEqual(json.loads(printed(["--json", "3"], self.EVENTS)), {
            "passed": 1, "failed": 2, "skipped": 1,
            "failures": [{"target": "//a", "state": "TIMEOUT"}, {"target": "//b", "state": "NOT_BUILT"}]})

    def test_a_run_without_events_is_a_failure(self):
        self.assertEqual(printed(["37"], None), "0 passed, 1 failed\n")
        self.assertEqual(json.loads(printed(["--json", "37"], None)), {
            "passed": 0, "failed": 1, "skipped": 0, "failures": [{"target": "", "state": "BAZEL_EXIT_37"}]})


if __name__ == "__main__":
    unittest.main()
