# SPDX-License-Identifier: Apache-2.0
"""Every planted defect is caught, by a check and in a tensor that its edit names, and the clean twin passes.

Usage: self_test.py PATH_OF_PLUMBLINE PATH_OF_OPTIMIZED_DEFECTS
What an edit expects comes from the switchable program (--list-defects); what was seen comes from the record of
`verify --self-test`. How `expect` is written is in conformance/defects/apply_edits.py.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

PLUMBLINE, DEFECTS = sys.argv[1:3]
MIN_DEFECTS = {"exact": 69, "gpt2": 106, "llama": 22}
MIN_HYPOTHESES = 67  # defects whose edit names one


def listed_defects():
    """{id: (expect, family)} of the switchable program."""
    done = subprocess.run([DEFECTS, "--list-defects"], capture_output=True, text=True, check=True)
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    return {id: (expect, family) for id, _, expect, family in rows}


def disagreements(listed, recorded):
    """One line for each defect that was not caught as its edit says, or is in one of the two lists only."""
    seen = {defect["id"]: defect for defect in recorded}
    lines = [f"{id}: listed, not tried" for id in listed if id not in seen]
    lines += [f"{id}: tried, not listed" for id in seen if id not in listed]
    for id in [id for id in listed if id in seen]:
        expect, defect = listed[id][0], seen[id]
        checks = expect.partition(":")[0].split(", ")
        tensors = re.findall(r"\btensor ([\w.]*\w)", expect)
        if not defect["caught"]:
            lines.append(f"{id}: not caught; expected: {expect}")
        elif not set(checks) & set(defect["caught_by"]):
            lines.append(f"{id}: caught by {', '.join(defect['caught_by'])}; expected: {expect}; it said: {defect['message']}")
        elif tensors and defect["tensor"] not in tensors:
            lines.append(f"{id}: in tensor '{defect['tensor']}'; expected: {expect}; it said: {defect['message']}")
    return lines


class Disagreements(unittest.TestCase):
    """The comparison itself, on records made here."""

    def lines(self, expect, **seen):
        defect = {"id": "G1", "caught": True, "caught_by": ["exact", "ledger"], "tensor": "pos.weight", "message": "m"}
        return disagreements({"G1": (expect, "exact")}, [{**defect, **seen}])

    def test_one_of_the_stated_checks_is_enough(self):
        self.assertEqual([], self.lines("ledger: bytes"))
        self.assertEqual([], self.lines("loss, exact: step 0, tensor pos.weight"))

    def test_another_check_disagrees(self):
        self.assertIn("G1: caught by exact, ledger; expected: loss: step 0", self.lines("loss: step 0")[0])
        self.assertEqual(1, len(self.lines("loss: exact is not a check here")))

    def test_another_tensor_disagrees(self):
        self.assertIn("in tensor 'pos.weight'", self.lines("exact: tensor embed.weight, step 0")[0])
        self.assertEqual(1, len(self.lines("exact: tensor pos.weights")))
        self.assertEqual(1, len(self.lines("exact: tensor pos.weight", tensor="")))

    def test_one_of_several_tensors_is_enough(self):
        self.assertEqual([], self.lines("exact: tensor embed.weight or tensor pos.weight"))
        self.assertEqual(1, len(self.lines("exact: tensor embed.weight or pos.weight")))

    def test_a_survivor_disagrees(self):
        self.assertEqual(["G1: not caught; expected: exact: x"], self.lines("exact: x", caught=False, caught_by=[]))

    def test_both_lists_are_the_same(self):
        self.assertEqual(["G1: listed, not tried"], disagreements({"G1": ("exact: x", "exact")}, []))
        self.assertEqual(["G1: tried, not listed"], disagreements({}, [{"id": "G1"}]))


class ListedDefects(unittest.TestCase):
    """`--mutants`: defects of another program, which need not be caught."""

    # Has m1, which is a planted defect; m2, which is none; m3, which never ends.
    ENGINE = """#!/usr/bin/python3 -I
import os, sys, time
id, rest = (sys.argv[2], sys.argv[3:]) if sys.argv[1] == "--defect" else ("", sys.argv[1:])
if id == "m3": time.sleep(100)
os.execv(%r, ["engine"] + (["--defect", "G1"] if id == "m1" else []) + rest)
"""

    def verify(self, folder, lines, *options):
        engine, listed, out = folder / "engine", folder / "list", folder / "out"
        engine.write_text(self.ENGINE % os.path.abspath(DEFECTS))
        engine.chmod(0o755)
        listed.write_text("".join(line + "\n" for line in lines))
        done = subprocess.run([PLUMBLINE, "verify", "--mutants", listed, *options, "--out", out], capture_output=True, text=True)
        return done, json.loads((out / "record.json").read_text()) if (out / "record.json").exists() else None

    def test_each_is_tried_until_it_fails_and_a_survivor_is_told(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            lines = ["m%d\tof a test\tany: of the checks\texact" % number for number in (1, 2, 3)]
            done, record = self.verify(folder, lines, "--mutant-engine", folder / "engine", "--timeout", "10")
        self.assertEqual(1, done.returncode, done.stderr)
        seen = {defect["id"]: defect for defect in record["defects"]}
        self.assertEqual({"m1", "m2", "m3"}, set(seen))
        self.assertEqual((True, "FAIL"), (seen["m1"]["caught"], seen["m1"]["verdict"]))
        self.assertIn("exact", seen["m1"]["caught_by"])
        self.assertEqual((False, "PASS"), (seen["m2"]["caught"], seen["m2"]["verdict"]))
        self.assertEqual((False, "ERROR"), (seen["m3"]["caught"], seen["m3"]["verdict"]), "a time-out catches nothing")
        self.assertIn(" after ", seen["m3"]["message"])
        self.assertTrue(record["cases"])
        self.assertEqual({("clean-twin", "exact", "PASS")}, {(*case["id"].split("/")[:2], case["verdict"]) for case in record["cases"]})

    def test_bad_lists_are_refused_in_one_line(self):
        for lines, options, words in [(["m1\tonly two"], ["--mutant-engine", DEFECTS], "list:1: not `id TAB"),
                                      (["m1\tt\tany: x\texact"], [], "--mutants requires --mutant-engine")]:
            with tempfile.TemporaryDirectory() as name:
                done, record = self.verify(pathlib.Path(name), lines, *options)
            self.assertEqual((2, None), (done.returncode, record))
            self.assertIn(words, done.stderr)


def place_is_named(defect):
    return bool(re.search(r"\b(step|rank) [0-9]|\btensor [\w.]*\w", defect["expect"]))


def place_is_right(defect):
    """Every kind of thing that the edit names is, of several with "or", one of them."""
    expect, place = defect["expect"], defect["divergence"]
    named = {word: re.findall(r"\b%s ([0-9]+)" % word, expect) + re.findall(r"\b%s [0-9]+ or ([0-9]+)" % word, expect)
             for word in ("step", "rank")}
    tensors = re.findall(r"\btensor ([\w.]*\w)", expect)
    return bool(place) and (not named["step"] or str(place["step"]) in named["step"]) \
        and (not named["rank"] or [str(rank) for rank in place["ranks"]] in [[rank] for rank in named["rank"]]) \
        and (not tensors or place["tensor"] in tensors)


def hypothesis_is_right(defect):
    """The one that the edit names fits, and none fits better."""
    fitting = [h for h in (defect["divergence"] or {"hypotheses": []})["hypotheses"] if h["fits"]]
    return any(h["name"] == defect["hypothesis"] and h["residual"] <= fitting[0]["residual"] for h in fitting)


def stated_steps_differ(defect):
    """A line where the message and the first divergence are of one tensor's gradient, but of steps that nobody explains."""
    place = defect["divergence"]
    told = re.search(r": step (\d+): gradient of ([\w.]+)", defect["message"])
    if not told or not place or place["quantity"] != "gradient" or int(told[1]) == place["step"]:
        return ""
    if f" {told[1]} is the worst and {place['step']} the first that is wrong" in defect["message"]:
        return ""
    return f"{defect['id']}: first divergence in step {place['step']}; it said: {defect['message']}"


class Places(unittest.TestCase):
    """The counting itself, on records made here."""

    PLACE = {"step": 2, "ranks": [1], "tensor": "pos.weight", "hypotheses": []}

    def test_all_that_is_named_must_be_right(self):
        for expect, right in (("exact: step 2", True), ("exact: step 20", False), ("exact: step 1 or 2, rank 1", True),
                              ("exact: step 2, rank 0", False), ("exact: tensor a or tensor pos.weight", True),
                              ("exact: step 2, tensor a", False)):
            defect = {"expect": expect, "divergence": self.PLACE}
            self.assertTrue(place_is_named(defect))
            self.assertEqual(right, place_is_right(defect), expect)
        self.assertFalse(place_is_named({"expect": "ledger: calls, bytes"}))
        self.assertFalse(place_is_right({"expect": "exact: step 2", "divergence": None}))

    def test_steps_that_differ_are_explained(self):
        place = {**self.PLACE, "quantity": "gradient"}
        for step, more, fine in ((2, "", True), (7, "", False), (7, "; of the single steps 7 is the worst and 2 the first that is wrong", True),
                                 (7, "; of the single steps 7 is the worst and 3 the first that is wrong", False)):
            defect = {"id": "G1", "message": f"case: step {step}: gradient of pos.weight: norm is off{more}", "divergence": place}
            self.assertEqual(fine, not stated_steps_differ(defect), defect)

    def test_a_hypothesis_must_fit_best(self):
        one, other = {"name": "a", "fits": True, "residual": 0.01}, {"name": "b", "fits": True, "residual": 0.02}
        for name, hypotheses, right in (("a", [one, other], True), ("b", [one, other], False), ("b", [{**other, "residual": 0.01}, one], True),
                                        ("a", [{**one, "fits": False}], False), ("a", [], False)):
            defect = {"hypothesis": name, "divergence": {**self.PLACE, "hypotheses": hypotheses}}
            self.assertEqual(right, hypothesis_is_right(defect), defect)
        self.assertFalse(hypothesis_is_right({"hypothesis": "a", "divergence": None}))


class SelfTest(unittest.TestCase):
    def test_every_defect_is_caught_as_its_edit_says(self):
        listed = listed_defects()
        with tempfile.TemporaryDirectory() as folder:
            out = pathlib.Path(folder) / "out"
            done = subprocess.run([PLUMBLINE, "verify", "--self-test", "--out", out], capture_output=True, text=True)
            print(done.stdout, done.stderr)
            record = json.loads((out / "record.json").read_text())
        self.assertEqual([], disagreements(listed, record["defects"]))
        for family, least in MIN_DEFECTS.items():
            self.assertGreaterEqual(sum(of == family for _, of in listed.values()), least, family)
        self.assertEqual(0, done.returncode)
        self.check_diagnoses(record, done.stdout)
        self.assertTrue(record["cases"])
        self.assertEqual({"optimized (twin)"}, {case["engine"] for case in record["cases"]})
        self.assertEqual(set(MIN_DEFECTS), {case["id"].split("/")[1] for case in record["cases"]})

    def check_diagnoses(self, record, printed):
        self.assertEqual([], [line for defect in record["defects"] if (line := stated_steps_differ(defect))])
        named = [defect for defect in record["defects"] if place_is_named(defect)]
        with_hypothesis = [defect for defect in record["defects"] if defect["hypothesis"]]
        right, found = sum(map(place_is_right, named)), sum(map(hypothesis_is_right, with_hypothesis))
        self.assertIn(f"place right in {right} of {len(named)} whose edit names", printed)
        self.assertIn(f"hypothesis right in {found} of {len(with_hypothesis)} whose edit names one", printed)
        self.assertGreaterEqual(right, 0.9 * len(named))
        self.assertGreaterEqual(found, 0.7 * len(with_hypothesis))
        self.assertGreaterEqual(len(with_hypothesis), MIN_HYPOTHESES)
        self.assertEqual([], [case["id"] for case in record["cases"] if case["divergence"]])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=2)
