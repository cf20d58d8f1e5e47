# SPDX-License-Identifier: Apache-2.0
"""The kit's command line and the end of cases: whatever a case does costs that case alone, is named, and on several
ranks a status stands for all of them. Engines are programs here, as the harness starts them.

Usage: protocol_test.py CONTRACT_BYTES TEXT MISBEHAVING EXACT_NUMPY
"""
import concurrent.futures
import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import time
import unittest

CONTRACT, TEXT, MISBEHAVING, NUMPY = (pathlib.Path(path).absolute() for path in sys.argv[1:5])
HERE = pathlib.Path(__file__).absolute().parent
sys.path[:0] = [str(HERE), str(HERE / "testing")]
import numpy  # noqa: E402
import example_cases  # noqa: E402
import plumbline_engine as kit  # noqa: E402

LONE = {**example_cases.EXACT, "config": {**example_cases.EXACT["config"], "mesh": {"data": 1}, "train_batch_size": 6}}


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class InFolder(unittest.TestCase):
    def setUp(self):
        keeper = tempfile.TemporaryDirectory()
        self.addCleanup(keeper.cleanup)
        self.folder = pathlib.Path(keeper.name)

    def case(self, spec, name, **changes):
        path = self.folder / (name + ".json")
        path.write_text(json.dumps({**spec, "id": "exact/" + name, **changes}))
        subprocess.run([CONTRACT, "case", path, TEXT, self.folder / name], check=True)
        (self.folder / (name + "-out")).mkdir()
        return {"case": str(self.folder / name), "out": str(self.folder / (name + "-out"))}

    def start(self, engine, arguments, world):
        port, ranks = free_port(), []
        for rank in range(world):
            place = {
                "RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": world, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port
            }
            ranks.append(
                subprocess.Popen([engine, *arguments],
                                 stdout=subprocess.DEVNULL,
                                 stderr=subprocess.PIPE,
                                 text=True,
                                 env={**os.environ, **{key: str(value) for key, value in place.items()}}))
        return ranks

    def run_batch(self, engine, cases, world=1):
        """(exit code, last line of errors) of each rank, and seconds."""
        (self.folder / "list").write_text("".join(json.dumps(case) + "\n" for case in cases))
        began = time.monotonic()
        ranks = self.start(engine, ["run", "--batch", str(self.folder / "list")], world)
        ends = []
        try:
            for rank in ranks:
                errors = rank.communicate(timeout=60)[1].splitlines()
                ends.append((rank.returncode, errors[-1] if errors else ""))
        finally:
            for rank in ranks:
                rank.kill()
                rank.wait()
        return ends, time.monotonic() - began

    def status(self, name):
        path = self.folder / (name + "-out") / "status.json"
        if not path.exists():
            return None
        status = json.loads(path.read_text())
        return status["status"], status["message"]


class Lists(InFolder):
    NAMES = ["fine-9", "raise-0", "leave-0", "forget-0", "turn-0", "unsupported-0", "missing-0", "fine-8"]

    def expected(self, who):
        return {
            "fine-9": ("ok", ""), "fine-8": ("ok", ""), "raise-0": ("error", who + "ArithmeticError: no such number"),
            "leave-0": ("error", who + "SystemExit: I am done"),
            "forget-0": ("error", who +
                         "ValueError: export(): moment of pos.weight: missing; all 60 elements are needed, each once"),
            "turn-0": ("error", who +
                       "ValueError: export(): master of layers.0.mlp.up has shape [7, 12]; the protocol's is [12, 7]"),
            "unsupported-0": ("unsupported", who + "steps above 1"), "missing-0": ("environment", who + "no device")
        }

    def test_each_case_of_a_list_costs_itself_alone(self):
        ends, _ = self.run_batch(MISBEHAVING, [self.case(LONE, name) for name in self.NAMES])
        self.assertEqual(ends[0][0], 0)
        self.assertEqual({name: self.status(name) for name in self.NAMES}, self.expected(""))

    def test_a_status_stands_for_all_ranks_and_names_the_one(self):
        names = [name for name in self.NAMES if name != "raise-0"]  # where the other rank waits for it
        ends, _ = self.run_batch(MISBEHAVING,
                                 [self.case(example_cases.EXACT, name.replace("-0", "-1")) for name in names], 2)
        self.assertEqual([code for code, _ in ends], [0, 0])
        expected = self.expected("rank 1: ")
        self.assertEqual({name: self.status(name.replace("-0", "-1")) for name in names},
                         {name: expected[name] for name in names})
        left = sorted(path.name for path in (self.folder / "fine-9-out").iterdir())
        self.assertEqual(left, ["rank0", "rank1", "status.json"])

    def test_a_folder_that_is_no_case_is_an_error_of_its_own(self):
        wrong = self.case(LONE, "wrong-0")
        (pathlib.Path(wrong["case"]) / "weights.safetensors").write_bytes(b"12345678")
        self.run_batch(MISBEHAVING, [wrong, self.case(LONE, "fine-0")])
        self.assertEqual((self.status("wrong-0")[0], self.status("fine-0")[0]), ("error", "ok"))
        self.assertIn("weights.safetensors: the header's length", self.status("wrong-0")[1])

    def test_a_case_of_another_world_is_no_case_of_these_ranks(self):
        self.run_batch(MISBEHAVING, [self.case(example_cases.EXACT, "fine-0")])
        self.assertIn("mesh.data is 2, and WORLD_SIZE 1", self.status("fine-0")[1])

    def test_what_the_description_rules_out_is_unsupported(self):
        model = example_cases.EXACT["model"]
        for name, changes, words in (
                ("bf16-0", {"config": {**LONE["config"], "bf16": {"enabled": True}}}, "dtypes: bf16"),
                ("sgd-0", {"config": {**LONE["config"], "optimizer": {"type": "ModularSGD"}},
                           "model": {**model, "dropout": False}}, "optimizers: ModularSGD"),
                ("dump-0", {"dump_steps": [1]}, "feature dump is needed")):
            self.run_batch(MISBEHAVING, [self.case(LONE, name, **changes)])
            self.assertEqual(self.status(name)[0], "unsupported")
            self.assertIn(words, self.status(name)[1])

    def test_a_load_must_say_where_it_goes_on(self):
        self.run_batch(MISBEHAVING, [self.case(LONE, "resume-0", resume=True)])
        self.assertIn("load() returned 'soon'; it must be the number of the next step, from 1 to 2",
                      self.status("resume-0")[1])


class Ranks(InFolder):
    def test_a_rank_that_fails_while_others_wait_ends_with_its_reason(self):
        for guilty in (0, 1):
            name = "raise-%d" % guilty
            case = self.case(example_cases.EXACT, name)
            ranks = self.start(MISBEHAVING, ["run", "--case", case["case"], "--out", case["out"]], 2)
            began = time.monotonic()
            errors = ranks[guilty].communicate(timeout=30)[1].splitlines()
            self.assertLess(time.monotonic() - began, 20)  # the other would wait for 60
            for rank in ranks:
                rank.kill()
                rank.communicate()
            self.assertEqual((ranks[guilty].returncode, errors[-1]),
                             (5, "ended, since other ranks do not: ArithmeticError: no such number; rank %d is not over" %
                              (1 - guilty)))
            self.assertIsNone(self.status(name))

    def test_ranks_that_are_no_ranks_are_refused(self):
        for variable, value in (("RANK", "2"), ("RANK", "-1"), ("WORLD_SIZE", "two"), ("MASTER_PORT", "65536")):
            done = subprocess.run([MISBEHAVING, "run", "--batch", "/dev/null"],
                                  capture_output=True,
                                  text=True,
                                  check=False,
                                  env={**os.environ, "RANK": "1", "WORLD_SIZE": "2", variable: value})
            self.assertEqual(done.returncode, 5)
            self.assertIn("%s is '%s'; allowed: an integer from " % (variable, value), done.stderr.splitlines()[-1])

    def test_words_that_nobody_knows_are_bad_usage(self):
        for words in ([], ["describe", "more"], ["run"], ["run", "--case", "x"], ["run", "--batch"], ["walk"]):
            done = subprocess.run([MISBEHAVING, *words], capture_output=True, text=True, check=False)
            self.assertEqual((done.returncode, done.stdout), (2, ""), words)
            self.assertIn("usage: ", done.stderr)


class SingleCases(InFolder):
    def test_the_exit_code_is_that_of_the_status(self):
        for name, code in (("fine-9", 0), ("unsupported-0", 3), ("missing-0", 4), ("raise-0", 5)):
            case = self.case(LONE, name)
            done = subprocess.run([MISBEHAVING, "run", "--case", case["case"], "--out", case["out"]],
                                  capture_output=True,
                                  check=False)
            self.assertEqual((done.returncode, self.status(name)[1].count("\n")), (code, 0))


class Stars(unittest.TestCase):
    def setUp(self):
        port = free_port()
        self.stars = [kit.Star(kit.Ranks(rank, rank, 3, "127.0.0.1", port)) for rank in range(3)]
        self.addCleanup(lambda: [star.close() for star in self.stars])

    def on_all(self, call):
        with concurrent.futures.ThreadPoolExecutor(3) as pool:
            return list(pool.map(call, self.stars))

    def test_a_connection_of_a_case_that_rank_0_left_behind_is_not_one_of_the_next(self):
        for star in self.stars[1:]:
            star.open(0, 5)  # and rank 0 has failed before it
        self.on_all(lambda star: star.open(1, 5))
        sums = self.on_all(lambda star: star.all_reduce(numpy.arange(4.0) * (1 + self.stars.index(star))).tolist())
        self.assertEqual(sums, [[0.0, 6.0, 12.0, 18.0]] * 3)

    def test_waits_no_longer_than_it_was_told(self):
        self.on_all(lambda star: star.open(0, 0.2))
        with self.assertRaises(TimeoutError):
            self.stars[1].all_reduce(numpy.ones(1))


class Example(InFolder):
    def traces(self, name, world):
        return [
            json.loads(line) for rank in range(world)
            for line in (self.folder / (name + "-out") / ("rank%d" % rank) / "trace.jsonl").read_text().splitlines()
        ]

    def test_two_ranks_train_what_one_trains_and_a_failed_case_leaves_nothing_in_their_connections(self):
        one = {**example_cases.EXACT, "config": {**example_cases.EXACT["config"], "mesh": {"data": 1},
                                                 "gradient_accumulation_steps": 6}}
        self.run_batch(NUMPY, [self.case(one, "one")])
        broken = self.case(example_cases.EXACT, "broken")
        (pathlib.Path(broken["case"]) / "batches.safetensors").unlink()
        ends, _ = self.run_batch(
            NUMPY, [broken, self.case(example_cases.EXACT, "two"),
                    self.case(example_cases.EXACT, "again")], 2)
        self.assertEqual(([code for code, _ in ends], self.status("broken")[0]), ([0, 0], "error"))
        steps = [record for record in self.traces("one", 1) if record["record"] == "step"]
        for name in ("two", "again"):
            self.assertEqual(self.status(name), ("ok", ""))
            self.assertEqual([record for record in self.traces(name, 2) if record["record"] == "step"], steps * 2)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[5:]], verbosity=2)
