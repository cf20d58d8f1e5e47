# SPDX-License-Identifier: Apache-2.0
"""Tests of run_mutants.py: from records to outcomes, what is tried next, what a batch must be, the report. Starts nothing."""

import importlib.util
import argparse
import contextlib
import io
import json
import pathlib
import tempfile
import unittest

spec = importlib.util.spec_from_file_location("run_mutants", pathlib.Path(__file__).with_name("run_mutants.py"))
run_mutants = importlib.util.module_from_spec(spec)
spec.loader.exec_module(run_mutants)


def mutant(id, family="any", kind="operator", file="kernels/a.cc"):
    return run_mutants.mutant_list.Mutant(id, file, 1, kind, "expression", "a + b", "a - b", family, "a + b", 0, 0)


def defect(id="m1", verdict="PASS", caught_by=(), message=""):
    return {"id": id, "verdict": verdict, "caught_by": list(caught_by), "caught": bool(caught_by), "message": message}


def result(id, stage, outcome, by=()):
    return {"id": id, "stage": stage, "outcome": outcome, "by": list(by), "message": ""}


def table(*results):
    return {(r["id"], r["stage"]): r for r in results}


class Outcomes(unittest.TestCase):
    def test_a_failed_check_outweighs_an_engine_that_stopped(self):
        self.assertEqual(("check", ["exact", "ledger"]), run_mutants.outcome_of(defect("m1", "FAIL", ["exact", "engine", "ledger"])))
        self.assertEqual(("engine", ["engine"]), run_mutants.outcome_of(defect("m1", "ERROR", ["engine"])))

    def test_what_catches_nothing_is_told_apart(self):
        for verdict, outcome in [("PASS", "survived"), ("UNSUPPORTED", "declined"), ("ERROR", "timeout"), ("VACUOUS", "check")]:
            self.assertEqual(outcome, run_mutants.outcome_of(defect("m1", verdict))[0])

    def test_without_a_truth_or_an_end_there_is_no_outcome(self):
        self.assertEqual(run_mutants.outcome_of(defect("m1", "NOT_RUN", message="a/b: cannot be written")), ("declined", ["environment"]))
        for seen in [defect("m1", "ERROR", message="there is no truth: x"), defect("m1", "NOT_RUN", message="interrupted")]:
            with self.assertRaises(run_mutants.RunError):
                run_mutants.outcome_of(seen)


class Stages(unittest.TestCase):
    MUTANTS = [mutant("m1"), mutant("m2"), mutant("m3", "exact"), mutant("m4", "gpt2")]

    def ids(self, results, stage):
        return [m.id for m in run_mutants.to_try(self.MUTANTS, results, next(s for s in run_mutants.STAGES if s.name == stage))]

    def test_a_stage_has_those_whose_file_its_family_uses(self):
        self.assertEqual(["m1", "m2", "m3"], self.ids({}, "exact-first"))
        self.assertEqual(["m4"], self.ids({}, "gpt2-first"))

    def test_a_later_stage_has_what_survived_all_before_it(self):
        results = table(result("m1", "exact-first", "survived"), result("m2", "exact-first", "check"),
                        result("m3", "exact-first", "survived"))
        self.assertEqual([], self.ids(results, "exact-first"))
        self.assertEqual(["m1", "m4"], self.ids(results, "gpt2-first"))
        self.assertEqual(["m3"], self.ids(results, "exact"))
        results.update(table(result("m1", "gpt2-first", "survived"), result("m1", "llama-first", "survived")))
        self.assertEqual(["m1", "m3"], self.ids(results, "exact"))
        self.assertEqual([], self.ids(results, "gpt2"))

    def test_all_cases_come_after_the_first_and_include_them(self):
        for family in ("exact", "gpt2", "llama"):
            self.assertEqual([True, False], [s.cases > 0 for s in run_mutants.STAGES if s.family == family])

    def test_a_mutant_is_done_when_a_stage_kills_it_or_all_let_it_pass(self):
        results = table(result("m1", "exact-first", "survived"), result("m2", "exact-first", "timeout", ["timeout"]),
                        result("m3", "exact-first", "survived"), result("m3", "exact", "survived"),
                        result("m3", "describe", "survived"),
                        result("m4", "gpt2-first", "check", ["loss"]))
        self.assertEqual({"m2": ("timeout", ["timeout"]), "m3": ("survived", []), "m4": ("check", ["loss"])},
                         run_mutants.verdicts(self.MUTANTS, results))


class Descriptions(unittest.TestCase):
    CLEAN = {"families": ["exact", "gpt2"], "zero_stages": [0, 1], "max_data_degree": 64, "version": "1", "features": ["dropout", "save"]}

    def test_what_cases_need_is_missed_and_the_rest_is_not(self):
        self.assertEqual([], run_mutants.lacks({**self.CLEAN, "version": "", "zero_stages": [1, 0, 0, 7]}, self.CLEAN))
        self.assertEqual(["features dropout"], run_mutants.lacks({**self.CLEAN, "features": []}, self.CLEAN))
        self.assertEqual(["zero_stages 1"], run_mutants.lacks({**self.CLEAN, "zero_stages": [0, 2]}, self.CLEAN))
        self.assertEqual(["max_data_degree 64"], run_mutants.lacks({**self.CLEAN, "max_data_degree": 63}, self.CLEAN))
        self.assertEqual(["families exact", "families gpt2"], run_mutants.lacks({**self.CLEAN, "families": []}, self.CLEAN))


class Batches(unittest.TestCase):
    def results(self, cases=({"id": "clean-twin/a", "verdict": "PASS"},), defects=(defect("m1"), defect("m2", "FAIL", ["exact"])),
                interrupted=False):
        runner = run_mutants.Runner.__new__(run_mutants.Runner)
        record = {"cases": list(cases), "defects": list(defects), "interrupted": interrupted}
        return runner.results(record, [mutant("m1"), mutant("m2")], run_mutants.STAGES[0])

    def test_give_one_result_for_each_mutant(self):
        self.assertEqual([("m1", "survived"), ("m2", "check")], [(r["id"], r["outcome"]) for r in self.results()])

    def test_count_for_nothing_if_the_twin_fails_or_was_not_run(self):
        for cases in [({"id": "clean-twin/a", "verdict": "FAIL", "message": "step 0"},), ()]:
            with self.assertRaisesRegex(run_mutants.RunError, "the twin with every mutant off"):
                self.results(cases=cases)
        with self.assertRaises(run_mutants.RunError):
            self.results(interrupted=True)

    def test_hold_the_mutants_that_were_asked_for(self):
        for defects in [(defect("m1"),), (defect("m1"), defect("m3")), (defect("m1"), defect("m1"), defect("m2"))]:
            with self.assertRaisesRegex(run_mutants.RunError, "not those of the batch"):
                self.results(defects=defects)


class Files(unittest.TestCase):
    def test_results_are_appended_and_the_last_counts(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "results"
            self.assertEqual({}, run_mutants.read_results(path))
            run_mutants.append(path, [result("m1", "exact", "survived")])
            run_mutants.append(path, [result("m1", "exact", "check"), result("m2", "exact", "survived")])
            self.assertEqual(["check", "survived"], [r["outcome"] for r in run_mutants.read_results(path).values()])

    def test_notes_are_one_of_three_words_and_a_reason(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "notes"
            path.write_text("# A comment.\n\nm1\tequivalent\tx * 1\n")
            self.assertEqual({"m1": ("equivalent", "x * 1")}, run_mutants.read_notes(path))
            for line in ["m2 equivalent x", "m2\tharmless\tx", "m2\thole\t"]:
                path.write_text("m1\tguard\tx\n" + line + "\n")
                with self.assertRaisesRegex(run_mutants.RunError, "notes:2: "):
                    run_mutants.read_notes(path)


class Differences(unittest.TestCase):
    def differences(self, left, right):
        with tempfile.TemporaryDirectory() as folder:
            roots = [pathlib.Path(folder) / side for side in ("left", "right")]
            for root, files in zip(roots, (left, right)):
                for name, text in files.items():
                    (root / name).parent.mkdir(parents=True, exist_ok=True)
                    (root / name).write_bytes(text if isinstance(text, bytes) else text.encode())
            number, different = run_mutants.differences(*roots)
            return number, [str(path) for path in different]

    def test_bytes_count_and_the_time_of_waiting_does_not(self):
        trace = '{"step": 0, "loss": 1.5, "comm_wait_us": %d}\n'
        files = {"0/rank0/trace.jsonl": trace % 1, "0/tensors": "ab"}
        self.assertEqual((2, []), self.differences(files, {**files, "0/rank0/trace.jsonl": trace % 2}))
        self.assertEqual((2, ["0/tensors"]), self.differences(files, {**files, "0/tensors": "aB"}))
        other = {**files, "0/rank0/trace.jsonl": (trace % 1).replace("1.5", "1.50001")}
        self.assertEqual((2, ["0/rank0/trace.jsonl"]), self.differences(files, other))

    @staticmethod
    def dump(dtype, values):
        header = json.dumps({"a": {"dtype": dtype, "shape": [1], "data_offsets": [0, len(values)]}}).encode()
        return len(header).to_bytes(8, "little") + header + values

    def test_a_nan_is_a_nan_whatever_its_sign_and_nothing_else_is(self):
        for dtype, quiet, negative, infinity, other in [("F32", "0000c07f", "0000c0ff", "0000807f", "000080ff"),
                                                        ("BF16", "c07f", "c0ff", "807f", "80ff"),
                                                        ("F64", "000000000000f87f", "000000000000f8ff", "000000000000f07f", "000000000000f0ff")]:
            file = lambda text: {"tensors-0.safetensors": self.dump(dtype, bytes.fromhex(text))}
            self.assertEqual((1, []), self.differences(file(quiet), file(negative)), dtype)
            for one, two in [(quiet, infinity), (infinity, other), (infinity, negative)]:
                self.assertEqual(1, len(self.differences(file(one), file(two))[1]), dtype)

    def test_digests_are_left_out_where_the_dump_holds_a_nan_only(self):
        trace = '{"loss": 1, "gradient": "%s"}\n'
        for bits, different in [("0000c07f", []), ("00000000", ["trace.jsonl"])]:
            dump = {"tensors-0.safetensors": self.dump("F32", bytes.fromhex(bits))}
            self.assertEqual((2, different), self.differences({**dump, "trace.jsonl": trace % "a"}, {**dump, "trace.jsonl": trace % "b"}))

    def test_a_file_of_one_side_is_a_difference(self):
        self.assertEqual((1, ["b"]), self.differences({"a": "", "b": ""}, {"a": ""}))
        self.assertEqual((1, ["b"]), self.differences({"a": ""}, {"a": "", "b": ""}))


class Programs(unittest.TestCase):
    """`pack` copies what `run` demands of a folder of programs."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        for name in run_mutants.PROGRAMS:
            self.write(self.root / "bazel-bin" / name)
        self.write(self.root / run_mutants.TEXT)
        self.args = argparse.Namespace(workspace=self.root, programs=self.root / "packed")

    def write(self, path):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(path.name)

    def test_what_is_packed_is_enough_and_may_be_packed_again(self):
        for _ in range(2):
            with contextlib.redirect_stdout(io.StringIO()):
                run_mutants.pack(self.args)
        self.assertEqual(self.args.programs.resolve(), run_mutants.programs_of(self.args))

    def test_each_missing_program_is_named(self):
        with contextlib.redirect_stdout(io.StringIO()):
            run_mutants.pack(self.args)
        for name in run_mutants.PROGRAMS + (run_mutants.TEXT,):
            (self.args.programs / name).rename(self.root / "aside")
            with self.assertRaisesRegex(run_mutants.RunError, name):
                run_mutants.programs_of(self.args)
            (self.root / "aside").rename(self.args.programs / name)

    def test_nothing_is_packed_of_what_is_not_built(self):
        (self.root / "bazel-bin" / run_mutants.ENGINE).unlink()
        with contextlib.redirect_stdout(io.StringIO()), self.assertRaisesRegex(run_mutants.RunError, "not built"):
            run_mutants.pack(self.args)


class Reports(unittest.TestCase):
    MUTANTS = [mutant("m1"), mutant("m2", kind="index"), mutant("m3"), mutant("m4"), mutant("m5")]
    RESULTS = table(result("m1", "exact-first", "check", ["exact"]),
                    *[result(id, stage.name, "survived") for id in ("m2", "m3", "m4") for stage in run_mutants.STAGES])

    def text(self, **notes):
        return run_mutants.report(self.MUTANTS, self.RESULTS, notes, 2)

    def test_rates_are_of_what_was_tried(self):
        text = self.text()
        self.assertIn("7 mutants, 2 stale, 4 tried\nkilled: 1 of 4 (25.0 %)\n", text)
        self.assertRegex(text, r"\nindex +0 of 1 \(0.0 %\)\n")

    def test_an_unexplained_survivor_counts_against_the_oracle(self):
        self.assertIn("not shown equivalent: 1 of 4", self.text())
        self.assertIn("survivors without a note: 3\n", self.text())

    def test_an_unexplained_survivor_is_listed_with_its_place_and_change_ready_for_a_note(self):
        text = self.text(m3=("hole", "z"), m4=("guard", "y"))
        self.assertIn("survivors without a note: 1\nkernels/a.cc:1  m2  index, seen in family ", text)
        self.assertIn("    - a + b\n    + a - b\n", text)
        self.assertTrue(text.split("added to the notes:\n")[1].startswith("m2\t?\t\n"), text)
        self.assertNotIn("m3\t?", text)

    def test_notes_that_are_about_no_survivor_are_named(self):
        self.assertIn("killed, not tried or stale): m1 m5\n", self.text(m1=("hole", "x"), m2=("hole", "x"), m5=("hole", "x")))

    def test_only_equivalent_ones_leave_the_second_rate_and_guards_the_third(self):
        text = self.text(m2=("equivalent", "x"), m3=("guard", "y"), m4=("hole", "z"))
        self.assertIn("not shown equivalent: 1 of 3", text)
        self.assertIn("nor a guard against invalid input: 1 of 2", text)
        self.assertIn("    hole: z\n", text)

    def test_a_note_about_a_mutant_that_is_killed_excuses_nothing(self):
        self.assertIn("not shown equivalent: 1 of 4", self.text(m1=("equivalent", "x")))


if __name__ == "__main__":
    unittest.main(verbosity=2)
