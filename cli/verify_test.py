# SPDX-License-Identifier: Apache-2.0
"""The program from outside: verdicts, exit codes, what it prints where, and what bad input and Ctrl-C do.

Usage: verify_test.py PATH_OF_PLUMBLINE PATH_OF_OPTIMIZED [CLASS ...]
Engines that misbehave are small scripts made here; the one that behaves is our own, started through a script.
"""

import json
import os
import pathlib
import re
import resource
import signal
import stat
import struct
import subprocess
import sys
import tempfile
import time
import unittest
import xml.etree.ElementTree

PLUMBLINE, OPTIMIZED = (os.path.abspath(path) for path in sys.argv[1:3])
# A few quick cases of one problem.
FILTER = "exact/sgd-v19/data2-*"
# One of them.
ONE_FILTER = "exact/sgd-v19/data2-zero2-acc1-*"
# One case of the real family: of the problem whose truth takes the least, with groups, decay and rates that move.
REAL_FILTER = "gpt2/cycled-adamw/data2-*-acc3-*"
# And one of weights that do not fit into a few KiB.
LARGE_REAL_FILTER = "gpt2/untied-sgd/data3-*"


def run(*arguments, **kwargs):
    return subprocess.run([PLUMBLINE, *map(str, arguments)], capture_output=True, text=True, timeout=300, **kwargs)


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.dir = pathlib.Path(folder.name)

    def verify(self, *arguments):
        """Runs verify with a fresh --out; returns the finished process and its record, or None."""
        out = self.dir / f"out{len(list(self.dir.iterdir()))}"
        # Failures are made smaller in shrink_test.py.
        done = run("verify", "--out", out, "--shrink", 0, *arguments)
        record = out / "record.json"
        return done, json.loads(record.read_text()) if record.exists() else None

    def assert_refused(self, done, code, *parts):
        """One clear line on stderr, nothing on stdout, the documented exit code."""
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertEqual(done.stdout, "")
        self.assertEqual(len(done.stderr.strip().splitlines()), 1, done.stderr)
        for part in parts:
            self.assertIn(part, done.stderr)

    def engine(self, name, body):
        """An engine in Python; `body` sees `real(args)`, which runs our own engine, and `args`."""
        path = self.dir / name
        path.write_text(
            "#!/usr/bin/python3 -I\n"
            "import json, os, pathlib, signal, subprocess, sys, time\n"
            f"args = sys.argv[1:]\n"
            f"real = lambda args: subprocess.run([{OPTIMIZED!r}, *args]).returncode\n"
            "def each():\n"
            "    for line in open(args[args.index('--batch') + 1]):\n"
            "        entry = json.loads(line)\n"
            "        yield json.load(open(entry['case'] + '/case.json'))['id'], entry\n"
            "def run_one(entry, change=lambda text: text, in_dumps=lambda path: None):\n"
            "    out, own = pathlib.Path(entry['out']), pathlib.Path(entry['out'] + '.own')\n"
            "    own.mkdir()\n"
            "    real(['run', '--case', entry['case'], '--out', own])\n"
            "    for trace in own.glob('rank*/trace.jsonl'): trace.write_text(change(trace.read_text()))\n"
            "    for path in own.glob('rank*/tensors-*'): in_dumps(path)\n"
            # The status comes last: it ends the case, and what is changed later may be seen or not.
            "    for path in sorted(own.iterdir(), key=lambda path: path.name == 'status.json'): path.rename(out / path.name)\n"
            "if args[0] == 'describe': DESCRIBE()\n"
            "else: RUN()\n".replace("DESCRIBE()", body.get("describe", "sys.exit(real(args))")).replace(
                "RUN()", "exec(" + repr(body.get("run", "sys.exit(real(args))")) + ")"
            )
        )
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return path


class Verdicts(Case):
    def test_a_passing_selection(self):
        done, record = self.verify("--filter", FILTER)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(done.stderr, "", "silence in a pipe")
        self.assertEqual(record["exit_code"], 0)
        self.assertGreaterEqual(len(record["cases"]), 2)
        for case in record["cases"]:
            self.assertEqual(case["verdict"], "PASS")
            checks = {check["name"]: check for check in case["checks"]}
            for name in ("trace", "replicas", "collectives", "ledger", "memory", "exact", "certificate", "liveness", "amplification"):
                self.assertEqual(checks[name]["outcome"], "pass", name)
                self.assertGreater(checks[name]["compared"], 0, name)
        self.assertIn(f"{len(record['cases'])} cases: {len(record['cases'])} PASS.", done.stdout)

    def test_the_witness_runs_its_own_engine(self):
        done, record = self.verify("--case", "exact/sgd-v19/torch_eager-fp32")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual([case["engine"] for case in record["cases"]], ["torch_eager"])
        self.assertIn("libtorch", record["environment"])

    def test_junit_has_each_case(self):
        out = self.dir / "results"
        self.assertEqual(run("verify", "--filter", FILTER, "--out", out).returncode, 0)
        root = xml.etree.ElementTree.parse(out / "junit.xml").getroot()
        record = json.loads((out / "record.json").read_text())
        self.assertEqual(len(root.findall(".//testcase")), len(record["cases"]))
        self.assertEqual(sorted(path.name for path in out.iterdir()), ["junit.xml", "record.json"])

    def test_json_is_the_record_and_nothing_else(self):
        done, record = self.verify("--filter", FILTER, "--json")
        self.assertEqual(json.loads(done.stdout), record)

    def test_the_whole_list_passes_and_its_defects_are_caught(self):
        done, record = self.verify()
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual({case["verdict"] for case in record["cases"]}, {"PASS"})
        engines = {case["engine"] for case in record["cases"]}
        self.assertEqual(engines, {"optimized", "optimized (twin)", "torch_eager"})
        defects = {defect["id"]: defect for defect in record["defects"]}
        self.assertEqual(set(defects), {"G1", "G9", "G14", "C2", "L5", "O3b", "Z16", "X123"})
        for name, defect in defects.items():
            self.assertTrue(defect["caught"], name)
            self.assertTrue(defect["caught_by"], name)
        self.assertEqual(defects["G14"]["caught_by"], ["ledger"])
        for name, check in (("G1", "exact"), ("C2", "relation"), ("L5", "gradient"), ("O3b", "update"), ("Z16", "memory")):
            self.assertIn(check, defects[name]["caught_by"], name)
        for name, tensor in (("L5", "embed.weight"), ("O3b", "layers.0.norm1.bias")):
            self.assertEqual(defects[name]["tensor"], tensor)
        self.check_nearest(done.stdout, record)

    def check_nearest(self, text, record):
        """The summary has a line of each real problem and storage type: of the case that came nearest to its limit."""
        shares = {}
        for case in record["cases"]:
            for check in case["checks"]:
                if check["name"] == "gradient":
                    share = float(re.search(r"nearest to its limit: .*, (\S+) of it;", check["detail"])[1])
                    shares.setdefault((case["axes"]["problem"], case["axes"]["storage"]), []).append(share)
        self.assertGreaterEqual(len(shares), 10)
        for (problem, storage), all_shares in shares.items():
            lines = re.findall(rf"(?m)^  {problem} +{storage}: .*, (\S+) of it; .* \(case .*\)$", text)
            self.assertEqual([float(line) for line in lines], [max(all_shares)], (problem, storage))

    def test_another_text_and_seed(self):
        text = self.dir / "text"
        text.write_bytes(bytes(range(256)) * 3)
        done, record = self.verify("--filter", FILTER, "--text", text, "--seed", 2**64 - 1)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(record["seed"], 2**64 - 1)
        self.assertEqual(record["text"], {"name": "text", "size_bytes": 768})

    def test_shards_merge_into_the_whole(self):
        whole, expected = self.verify("--filter", FILTER)
        paths = []
        for index in (1, 2):
            out = self.dir / f"shard{index}"
            self.assertEqual(run("verify", "--filter", FILTER, "--shard", f"{index}/2", "--out", out).returncode, 0)
            paths.append(out / "record.json")
        done = run("merge", *paths, "--out", self.dir / "merged")
        self.assertEqual(done.returncode, 0, done.stderr)
        merged = json.loads((self.dir / "merged" / "record.json").read_text())
        self.assertEqual({case["id"] for case in merged["cases"]}, {case["id"] for case in expected["cases"]})
        self.assertEqual(merged["totals"], expected["totals"])
        self.assert_refused(run("merge", paths[0], "--out", self.dir / "partial"), 2, "2")
        self.assert_refused(run("merge", paths[0], paths[0], "--out", self.dir / "twice"), 2)


class Lists(Case):
    def test_list_prints_at_least_a_hundred_ids_once(self):
        ids = run("verify", "--list").stdout.split()
        self.assertGreaterEqual(len(ids), 100)
        self.assertEqual(len(set(ids)), len(ids))

    def test_list_and_coverage_as_json_are_one_object_that_says_what_the_text_says(self):
        for selection in (["--filter", FILTER], ["--tier", "full"]):
            listed, text = (run("verify", "--list", *selection, *more) for more in (["--json"], []))
            self.assertEqual((listed.returncode, listed.stderr), (0, ""))
            self.assertEqual(json.loads(listed.stdout), {"cases": text.stdout.split()})
        covered, text = (run("verify", "--coverage", "--tier", "full", *more) for more in (["--json"], []))
        coverage = json.loads(covered.stdout)
        self.assertEqual((covered.returncode, covered.stderr, coverage["tier"]), (0, "", "full"))
        self.assertEqual([family["family"] for family in coverage["families"]], ["exact", "gpt2", "llama"])
        for family in coverage["families"]:
            self.assertIn(f"{family['family']}: {family['cases']} cases\n", text.stdout)
            for tuples in family["tuples"]:
                self.assertIn(f"{tuples['strength']} values     {tuples['covered']} of {tuples['valid']} valid", text.stdout)
            for axis in family["axes"]:
                self.assertRegex(text.stdout, rf"(?m)^  {axis['name']} +{', '.join(axis['values'])}$")
            reasons = {excluded["combination"]: excluded["reason"] for excluded in family["excluded"]}
            if family["family"] == "exact":
                self.assertEqual(reasons["problem=wide-v5 storage=fp16"],
                                 "the problem's bounds leave the integers that fp16 holds")
            else:
                self.assertNotIn("storage=fp16", reasons)
            for excluded in family["excluded"]:
                self.assertIn(f"{excluded['combination']}: {excluded['reason']}\n", text.stdout)

    def test_an_empty_list_is_an_object_too(self):
        done = run("verify", "--list", "--json", "--filter", "nothing*")
        self.assertEqual((done.returncode, json.loads(done.stdout)), (1, {"cases": []}))

    def dry_run(self, pattern):
        done = run("verify", "--dry-run", "--filter", pattern)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        entries = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertGreater(len(entries), 0)
        for entry in entries:
            self.assertEqual(list(entry), ["id", "config", "comm_per_step_and_rank", "memory_peak_bytes_per_rank"])
        return entries

    def test_dry_run_prints_a_config_and_the_predicted_collectives(self):
        for entry in self.dry_run("*/data2-zero1-acc3-*"):
            self.assertEqual(entry["config"]["mesh"]["data"], 2)
            # Tokens and loss; real families sum the gradient norm besides.
            self.assertEqual(entry["comm_per_step_and_rank"]["all_reduce"],
                             [2, 16] if entry["id"].startswith("exact/") else [3, 16 + 168])
            self.assertIn("reduce_scatter", entry["comm_per_step_and_rank"])

    def test_dry_run_predicts_memory_that_fits_the_predicted_collectives(self):
        for stage in ("0", "1", "2", "3", "3tight"):
            for family in ("exact", "gpt2", *(["llama"] if stage in "0123" else [])):
                for entry in self.dry_run(f"{family}/*/data[2348]-zero{stage}-*"):
                    with self.subTest(entry["id"]):
                        self.check_memory(entry, stage)

    def check_memory(self, entry, stage):
        memory, comm, config = entry["memory_peak_bytes_per_rank"], entry["comm_per_step_and_rank"], entry["config"]
        self.assertEqual(sorted(memory), ["activations", "communication", "gathered_weights", "gradients",
                                          "optimizer_state", "weights"])
        ranks, accumulation = config["mesh"]["data"], config["gradient_accumulation_steps"]
        # T elements, padded, in all buckets: each is reduced in fp32, once in each accumulation step from stage 2.
        reduced = comm["all_reduce"][1] - 16 if stage == "0" else comm["reduce_scatter"][1]
        padded = reduced // 4 // (accumulation if stage in ("2", "3", "3tight") else 1)
        part = padded if stage == "0" else padded // ranks
        optimizer = config["optimizer"]
        states = {"ModularSGD": 1, "ModularMomentum": 2, "AdamW": 3, "Adam": 3, "Lamb": 3, "Lion": 2}.get(optimizer["type"])
        if optimizer["type"] == "SGD":
            states = 2 if optimizer["params"]["momentum"] > 0 else 1
        self.assertEqual(memory["gradients"], 4 * padded + (0 if stage == "0" else 4 * part))
        self.assertEqual(memory["optimizer_state"], 4 * states * part)
        self.assertEqual(memory["communication"], 4 * part if stage in ("2", "3", "3tight") and accumulation > 1 else 0)
        self.assertGreater(memory["activations"], 0)
        element = 2 if config["bf16"]["enabled"] or "fp16" in config else 4
        if not entry["id"].startswith("exact/"):  # frozen weights come on top, and an unused parameter is never gathered
            self.assertGreaterEqual(memory["weights"], element * (part if stage in ("3", "3tight") else padded))
            self.assertEqual(memory["gathered_weights"] > 0, stage in ("3", "3tight"))
            self.assertLessEqual(memory["gathered_weights"], element * padded)
        elif stage == "3":  # nothing is persistent, everything stays once it is gathered
            self.assertEqual(memory["weights"], element * part)
            self.assertEqual(memory["gathered_weights"], element * padded)
        elif stage == "3tight":
            self.assertTrue(element * part < memory["weights"] < element * padded)
            self.assertTrue(0 < memory["gathered_weights"] < element * padded)
        else:
            self.assertEqual(memory["weights"], element * padded)
            self.assertEqual(memory["gathered_weights"], 0)

    def test_help_has_examples_and_exit_codes(self):
        for command in ((), ("verify",), ("merge",)):
            done = run(*command, "--help")
            self.assertEqual(done.returncode, 0)
            self.assertIn("Example", done.stdout)
            self.assertIn("Exit codes: 0 ok", done.stdout)

    def test_help_says_ranges_in_words(self):
        text = run("verify", "--help").stdout
        self.assertIn("--jobs N from 1 to 256", text)
        self.assertNotIn(" in [", text)


class BadUsage(Case):
    def test_is_refused_in_one_line_with_exit_code_2(self):
        for arguments, part in (
            (["--nonsense"], "nonsense"),
            (["--xyzzy", "--verbos"], "--verbos is unknown; did you mean --verbose?"),
            (["--filtr=exact/*"], "--filtr is unknown; did you mean --filter?"),
            (["--case", "exact/dense-v19/torch_eager-fp23"], 'did you mean "exact/dense-v19/torch_eager-fp32"?'),
            (["--case", "?"], "--list"),
            (["--shard", "0/2"], "0/2"),
            (["--shard", "3/2"], "3/2"),
            (["--shard", "1/2x"], "1/2x"),
            (["--shard", "a/b"], "a/b"),
            (["--jobs", "0"], "jobs"),
            (["--jobs", "two"], "jobs"),
            (["--timeout", "0"], "timeout"),
            (["--timeout", "nan"], "timeout"),
            (["--seed", "-1"], "seed"),
            (["--seed", "18446744073709551616"], "seed"),
            (["--self-test", "--no-self-test"], "exclude"),
        ):
            with self.subTest(arguments):
                done, record = self.verify(*arguments)
                self.assert_refused(done, 2, part)
                self.assertIsNone(record)

    def test_no_command_or_an_unknown_one(self):
        self.assert_refused(run(), 2)
        self.assert_refused(run("verfy"), 2)

    def test_an_empty_selection_fails(self):
        for arguments in (["--filter", "nothing*"], ["--filter", "nothing*", "--list"]):
            done, _ = self.verify(*arguments)
            self.assertEqual(done.returncode, 1, done.stderr)

    def test_texts_that_cannot_be_trained_on(self):
        empty = self.dir / "empty"
        empty.write_bytes(b"")
        short = self.dir / "short"
        short.write_bytes(b"123456789")  # sgd-v19 has nine positions: a tenth byte is the last label
        for path, part in ((empty, "is empty"), (short, "at least 10"), (self.dir / "missing", "No such file"),
                           (self.dir, "directory")):
            with self.subTest(path):
                done, record = self.verify("--filter", FILTER, "--text", path)
                self.assert_refused(done, 2, part)
                self.assertIsNone(record)

    def test_texts_that_the_real_family_cannot_train_on(self):
        short = self.dir / "short"
        short.write_bytes(b"1234567")  # untied-sgd has seven positions
        empty = self.dir / "empty"
        empty.write_bytes(b"")
        for path, part in ((empty, "is empty"), (short, "has 7 tokens; allowed: at least 8"), (pathlib.Path("/dev/zero"), "regular")):
            with self.subTest(path):
                done, record = self.verify("--filter", LARGE_REAL_FILTER, "--text", path)
                self.assert_refused(done, 2, part)
                self.assertIsNone(record)

    def test_refused_input_leaves_no_folder_that_was_not_there(self):
        for arguments in (["--case", "?"], ["--text", self.dir / "missing"], ["--engine", self.dir / "missing"],
                          ["--engine", "/etc/passwd"]):
            for keep in ([], ["--keep"]):
                with self.subTest(arguments + keep):
                    out = self.dir / "refused"
                    self.assert_refused(run("verify", "--out", out, *arguments, *keep), 2)
                    self.assertFalse(out.exists())
        out.mkdir()
        self.assert_refused(run("verify", "--out", out, "--text", self.dir / "missing"), 2)
        self.assertEqual(list(out.iterdir()), [])

    def test_a_disk_that_is_full_is_the_environments_fault(self):
        for kib, where in ((4, "weights.safetensors"), (16, "weights.safetensors")):
            with self.subTest(kib):
                out = self.dir / f"out{kib}"
                limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (kib << 10, kib << 10))
                done = run("verify", "--filter", LARGE_REAL_FILTER, "--out", out, preexec_fn=limit)
                self.assert_refused(done, 4, where, "cannot be written", "File too large")
                self.assertEqual(list(out.iterdir()), [], "its space is given back")

    def test_a_standard_output_that_is_full_is_no_success(self):
        with open("/dev/full", "w") as full:
            for arguments in (["--list"], ["--list", "--json"], ["--coverage", "--json"], ["--help"],
                              ["--dry-run", "--filter", REAL_FILTER], ["--filter", REAL_FILTER]):
                with self.subTest(arguments):
                    done = subprocess.run([PLUMBLINE, "verify", *arguments], stdout=full, stderr=subprocess.PIPE,
                                          text=True, timeout=300, cwd=self.dir)
                    self.assertEqual(done.returncode, 4, done.stderr)
                    self.assertEqual(done.stderr,
                                     "plumbline: standard output cannot be written: No space left on device\n")
        self.assertTrue(list(self.dir.glob("plumbline-out/*/record.json")), "the record is not lost")

    def token_file(self, tokens, name="tokens"):
        header = json.dumps({name: {"dtype": "U8", "shape": [len(tokens)], "data_offsets": [0, len(tokens)]}}).encode()
        path = self.dir / f"tokens{len(list(self.dir.iterdir()))}"
        path.write_bytes(struct.pack("<Q", len(header)) + header + bytes(tokens))
        return path

    def test_token_files(self):
        done, _ = self.verify("--filter", FILTER, "--text", self.token_file([i * i % 19 for i in range(400)]))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        done, _ = self.verify("--filter", FILTER, "--text", self.token_file([1, 2, 3] * 10 + [19] + [0] * 20))
        self.assert_refused(done, 2, "token 30 is 19", "0 to 18")
        done, _ = self.verify("--filter", FILTER, "--text", self.token_file([1] * 50, name="words"))
        self.assert_refused(done, 2, "exactly one, tokens")

    def test_a_folder_that_holds_files_is_left_alone(self):
        (self.dir / "mine").mkdir()
        (self.dir / "mine" / "precious").write_text("keep")
        self.assert_refused(run("verify", "--filter", FILTER, "--out", self.dir / "mine"), 2, "new or empty folder")
        self.assertEqual((self.dir / "mine" / "precious").read_text(), "keep")

    def test_a_folder_that_another_run_has_is_left_to_it(self):
        out = self.dir / "out"
        first = subprocess.Popen([PLUMBLINE, "verify", "--filter", FILTER, "--no-self-test", "--out", out],
                                 stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        while not (out / "work").exists():
            self.assertIsNone(first.poll())
            time.sleep(0.01)
        self.assert_refused(run("verify", "--filter", FILTER, "--out", out), 2, str(out), "new or empty folder")
        _, errors = first.communicate(timeout=100)
        self.assertEqual((first.returncode, errors), (0, ""))

    def test_a_folder_that_cannot_be_made(self):
        (self.dir / "file").write_text("")
        self.assert_refused(run("verify", "--filter", FILTER, "--out", self.dir / "file" / "out"), 4, "cannot be made")

    def test_records_that_cannot_be_merged(self):
        broken = self.dir / "record.json"
        for content in ("", "{", "[]", '{"schema": 1}', '{"schema": 99}', "\0" * 100):
            with self.subTest(content):
                broken.write_text(content)
                self.assert_refused(run("merge", broken, "--out", self.dir / "merged"), 2, "record.json")
        self.assert_refused(run("merge", self.dir / "missing.json", "--out", self.dir / "merged"), 2, "missing.json")


class ForeignEngines(Case):
    def test_our_own_engine_behind_a_script_passes(self):
        done, record = self.verify("--filter", FILTER, "--engine", self.engine("good", {}))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(record["engine"]["program"], "good")

    def test_engines_that_do_not_describe_themselves(self):
        plain = self.dir / "plain"
        plain.write_text("not a program")
        for path, part in (
            (self.dir / "missing", "missing"),
            (self.dir, "folder"),
            (plain, "executable"),
            (self.engine("silent", {"describe": "pass"}), "printed nothing"),
            (self.engine("crashes", {"describe": "os.kill(os.getpid(), signal.SIGSEGV)"}), "SIGSEGV"),
            (self.engine("garbage", {"describe": "print('hello')"}), "JSON"),
            (self.engine("fails", {"describe": "sys.exit(7)"}), "exit code 7"),
        ):
            with self.subTest(path.name):
                done, _ = self.verify("--filter", FILTER, "--engine", path)
                self.assert_refused(done, 2, part)
        done, _ = self.verify("--filter", FILTER, "--timeout", 1,
                              "--engine", self.engine("hangs", {"describe": "time.sleep(100)"}))
        self.assert_refused(done, 4, "hangs")

    def test_a_program_that_is_gone_when_it_shall_run_is_the_environments_fault(self):
        engine = self.engine("gone", {"describe": "pathlib.Path(__file__).unlink() or sys.exit(real(args))"})
        done, _ = self.verify("--filter", ONE_FILTER, "--engine", engine)
        self.assert_refused(done, 4, f"--engine {engine}: no such file")

    def test_an_engine_that_says_environment_is_not_run(self):
        engine = self.engine("absent", {"describe": "sys.exit(print('no accelerator', file=sys.stderr) or 4)"})
        for arguments in ((), ("--require",)):
            done, record = self.verify("--filter", FILTER, "--engine", engine, *arguments)
            self.assertEqual((done.returncode, done.stderr), (1, ""), "nothing passed")
            self.assertEqual({case["verdict"] for case in record["cases"]}, {"NOT_RUN"})
            lines = [line for line in done.stdout.splitlines() if line.startswith("NOT_RUN")]
            self.assertEqual(len(lines), 1, done.stdout)
            self.assertRegex(lines[0], r"^NOT_RUN +\d+ cases: .*absent: describe: .*exit code 4.*no accelerator$")

    def test_a_case_whose_device_is_not_there_is_not_run_and_the_others_count(self):
        ids = run("verify", "--list", "--filter", FILTER).stdout.split()
        engine = self.engine("engine", {"run": f"""
for id, entry in each():
    if id == {ids[0]!r}:
        pathlib.Path(entry['out'], 'status.json').write_text('{{"status": "environment", "message": "needs two devices"}}')
    else:
        run_one(entry)
"""})
        for arguments, code in (((), 0), (("--require",), 1)):
            done, record = self.verify("--filter", FILTER, "--engine", engine, *arguments)
            self.assertEqual(done.returncode, code, done.stdout + done.stderr)
            verdicts = {case["id"]: (case["verdict"], case["message"]) for case in record["cases"]}
            self.assertEqual(verdicts.pop(ids[0]), ("NOT_RUN", "needs two devices"))
            self.assertEqual(set(verdicts.values()), {("PASS", "")})
            self.assertIn("needs two devices", done.stdout)

    def check_one_bad_case(self, how, message, *arguments):
        ids = run("verify", "--list", "--filter", FILTER).stdout.split()
        engine = self.engine("engine", {"run": f"""
for id, entry in each():
    if id == {ids[1]!r}:
        {how}
    else:
        run_one(entry)
"""})
        done, record = self.verify("--filter", FILTER, "--engine", engine, *arguments)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        verdicts = {case["id"]: case for case in record["cases"]}
        self.assertEqual(verdicts[ids[1]]["verdict"], "ERROR")
        self.assertIn(message, verdicts[ids[1]]["message"])
        for other in ids[:1] + ids[2:]:
            self.assertEqual(verdicts[other]["verdict"], "PASS", other)
        self.assertIn(verdicts[ids[1]]["reproduce"], done.stdout)
        return done

    def test_a_crash_costs_its_case_only(self):
        self.check_one_bad_case("os.kill(os.getpid(), signal.SIGSEGV)", "SIGSEGV")

    def test_a_hang_costs_its_case_only(self):
        # Where it is the first of its start, as when it is run again, it would have 30 s more.
        how = "sys.exit(9) if entry == next(each())[1] else time.sleep(100)"
        self.check_one_bad_case(how, "no status after 4 s (time-out of the case 4 s)", "--timeout", 4, "--jobs", 1)

    def test_a_case_that_is_skipped_is_an_error(self):
        self.check_one_bad_case("pass", "status")

    def test_a_wrong_digest_is_a_failure_that_names_step_and_tensor(self):
        engine = self.engine("engine", {"run": """
def change(text):
    lines = text.splitlines()
    step = json.loads(lines[8])
    step['weight'][2][3] = '%016x' % (int(step['weight'][2][3], 16) ^ 1)
    lines[8] = json.dumps(step)
    return '\\n'.join(lines) + '\\n'
for id, entry in each(): run_one(entry, change)
"""})
        done, record = self.verify("--filter", FILTER, "--engine", engine)
        self.assertEqual(done.returncode, 1)
        for case in record["cases"]:
            self.assertEqual(case["verdict"], "FAIL")
            self.assertIn("step 7: weight of", case["message"])
            self.assertIn("the same when run again", case["message"])
            # The lie is in the trace alone, so the dump that the diagnosis asks for is the truth.
            place = case["divergence"]
            self.assertEqual((place["step"], place["quantity"], place["hypotheses"]), (7, "weight", []))
            self.assertEqual(place["undiagnosed"],
                             "the trace states other numbers than the engine's own dump, which is right")
        self.assertIn("first divergence: step 7, weight of", done.stdout)
        self.assertIn("./plumbline verify --seed 1 --engine", done.stdout)

    def test_a_failed_case_leaves_its_folder_behind(self):
        engine = self.engine("engine", {"run": "sys.exit(9)"})
        out = self.dir / "kept"
        self.assertEqual(run("verify", "--filter", FILTER, "--engine", engine, "--out", out, "--shrink", 0).returncode, 1)
        ids = [case["id"].replace("/", ".") for case in json.loads((out / "record.json").read_text())["cases"]]
        failures = {folder.name: folder for folder in (out / "failures").iterdir()}
        self.assertGreaterEqual(len(ids), 2)
        for case_id in ids:  # the run of the case's own id; its other runs have folders whose names go on after it
            self.assertTrue((failures[case_id] / "case" / "case.json").exists())
        for name in failures:
            self.assertTrue(any(name == case_id or name.startswith(case_id + ".") for case_id in ids), name)

    def test_a_trace_that_lies_about_nan_or_is_no_json_fails(self):
        for name, change in (("nan", "text.replace('\"loss\": ', '\"loss\": NaN, \"x\": ', 1)"),
                             ("text", "'hello\\n'"), ("empty", "''")):
            engine = self.engine(name, {"run": f"for id, entry in each(): run_one(entry, lambda text: {change})"})
            with self.subTest(name):
                done, record = self.verify("--filter", ONE_FILTER, "--engine", engine)
                self.assertEqual(done.returncode, 1)
                self.assertEqual([case["verdict"] for case in record["cases"]], ["FAIL"])

    def test_declining_is_not_passing(self):
        description = json.loads(subprocess.run([OPTIMIZED, "describe"], capture_output=True, text=True).stdout)
        description["optimizers"] = ["ModularMomentum"]
        engine = self.engine("engine", {"describe": f"print(json.dumps({description!r}))"})
        filter_all = "exact/[sm]*-v19/data2-*-acc1-*"  # a case of each optimizer
        done, record = self.verify("--filter", filter_all, "--engine", engine)
        self.assertEqual(done.returncode, 1)
        self.assertIn("ModularSGD", done.stdout)
        done, record = self.verify("--filter", filter_all, "--engine", engine, "--expect-unsupported", "exact/sgd-*")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertGreater(record["totals"]["UNSUPPORTED"], 0)
        done, record = self.verify("--filter", FILTER, "--engine", engine, "--expect-unsupported", "*")
        self.assertEqual(done.returncode, 1, "nothing passed")


class RealFamily(Case):
    """One gpt2 case, by an engine that is ours but for one lie in what it writes."""

    FILTER = REAL_FILTER
    # `scale(path, prefix, factor)` multiplies the F32 tensors of a safetensors file whose names begin so.
    TOOLS = """
import struct
def scale(path, prefix, factor):
    data = bytearray(path.read_bytes())
    size = struct.unpack('<Q', data[:8])[0]
    for name, tensor in json.loads(data[8:8 + size]).items():
        if name == '__metadata__' or not name.startswith(prefix): continue
        begin, end = (8 + size + offset for offset in tensor['data_offsets'])
        count = (end - begin) // 4
        values = struct.unpack('<%df' % count, data[begin:end])
        data[begin:end] = struct.pack('<%df' % count, *(factor * value for value in values))
    path.write_bytes(data)
# In as few starts of our engine as it takes: those of which nothing is changed together.
def run_truly(entries):
    path = pathlib.Path(entries[0]['out'] + '.list') if entries else None
    if path: path.write_text(''.join(json.dumps(entry) + '\\n' for entry in entries))
    if path: real(['run', '--batch', path])
def lie(part, in_dumps=None, in_trace=None):
    true = []
    for id, entry in each():
        of_the_half = id.endswith('/' + part) and '-nan/' not in id  # a run after a skipped step is resumed too
        if not (of_the_half and (in_dumps or in_trace)):
            true.append(entry)
            continue
        run_truly(true)
        true = []
        run_one(entry, in_trace or (lambda text: text), in_dumps or (lambda path: None))
    run_truly(true)
def line(number, change):
    def apply(text):
        lines = text.splitlines()
        step = json.loads(lines[number])
        change(step)
        lines[number] = json.dumps(step)
        return '\\n'.join(lines) + '\\n'
    return apply
def flip(step):  # each rank's slice by one, so that the changes do not cancel in the sum
    step['weight'][2][3] = '%016x' % ((int(step['weight'][2][3], 16) + 1) % 2**64)
"""

    def check(self, lie, verdict, check=None, message=""):
        engine = self.engine("engine%d" % len(list(self.dir.iterdir())), {"run": self.TOOLS + lie})
        done, record = self.verify("--filter", self.FILTER, "--engine", engine)
        self.assertGreater(len(record["cases"]), 0)
        for case in record["cases"]:
            self.assertEqual(case["verdict"], verdict, case["message"])
            failed = {entry["name"] for entry in case["checks"] if entry["outcome"] == "fail"}
            self.assertEqual(failed, {check} if check else set(), case["message"])
            self.assertIn(message, case["message"])
            # Nothing is diagnosed where nothing failed; a lie in one run's output does not come back in another's.
            self.assertEqual(case["divergence"] is None, verdict not in ("FAIL", "ERROR"))
            if verdict == "FAIL":
                self.assertTrue(case["divergence"]["undiagnosed"], case["divergence"])
                self.assertEqual(case["divergence"]["hypotheses"], [])
        self.assertEqual(done.returncode, 0 if verdict == "PASS" else 1)

    def test_the_truth_passes(self):
        self.check("lie('')", "PASS")

    def test_a_dump_that_is_not_what_the_trace_lists_fails(self):
        how = "lie('step1', in_dumps=lambda path: scale(path, 'master/norm.bias@', 1.01))"
        self.check(how, "FAIL", "dump", "norm.bias")

    def test_a_repeated_run_that_differs_in_a_bit_fails(self):
        self.check("lie('again', in_trace=line(5, flip))", "FAIL", "relation")

    def test_a_resumed_run_that_differs_in_a_bit_fails(self):
        self.check("lie('resumed', in_trace=line(3, flip))", "FAIL", "relation")

    def test_a_learning_rate_that_is_not_the_schedules_fails(self):
        how = "lie('step11', in_trace=line(1, lambda step: step['lr'].__setitem__(1, step['lr'][1] * 1.00001)))"
        self.check(how, "FAIL", "update", "lr")

    def end(self, statuses):
        """Verdict and message of the case where the runs named in `statuses` end so, or crash, and the others well."""
        engine = self.engine("engine%d" % len(list(self.dir.iterdir())), {"run": f"""
statuses = {statuses!r}
for id, entry in each():
    status = statuses.get(id.rpartition('/')[2])
    if status == 'crash': os.kill(os.getpid(), signal.SIGSEGV)
    text = json.dumps({{'status': status or 'ok', 'message': 'none of it here' if status else ''}})
    pathlib.Path(entry['out'], 'status.json').write_text(text)
"""})
        _, record = self.verify("--filter", self.FILTER, "--engine", engine)
        self.assertEqual(len(record["cases"]), 1)
        return record["cases"][0]["verdict"], record["cases"][0]["message"]

    def test_a_run_that_ended_badly_decides_and_an_error_before_what_is_not_supported_or_not_there(self):
        self.assertEqual(self.end({"step1": "environment"}), ("NOT_RUN", "run step1: none of it here"))
        self.assertEqual(self.end({"step1": "environment", "step2": "unsupported"}),
                         ("UNSUPPORTED", "run step2: none of it here"))
        verdict, message = self.end({"step1": "environment", "step2": "unsupported", "step4": "crash"})
        self.assertEqual(verdict, "ERROR")
        self.assertIn("run step4: killed by SIGSEGV", message)


class Interrupts(Case):
    def test_ctrl_c_leaves_a_valid_partial_record_and_no_process(self):
        real = ["--filter", REAL_FILTER]
        for number, (signal_number, where, arguments) in enumerate((
                (signal.SIGINT, "runs/0/rank0", []), (signal.SIGTERM, "runs/3/rank0", real),
                (signal.SIGINT, "first/runs/0", real), (signal.SIGINT, "second/runs/0", real), (signal.SIGINT, "runs/3/rank0", real))):
            with self.subTest(signal=signal_number, where=where):
                out = self.dir / f"out{number}"
                process = subprocess.Popen([PLUMBLINE, "verify", "--out", out, *arguments], stdout=subprocess.PIPE,
                                           stderr=subprocess.PIPE, text=True, start_new_session=True)
                while not (out / "work" / where).exists():
                    self.assertIsNone(process.poll())
                    time.sleep(0.05)
                process.send_signal(signal_number)
                os.killpg(process.pid, signal_number)  # as `timeout -s INT` does: it is one request
                stdout, stderr = process.communicate(timeout=20)
                self.assertEqual(process.returncode, 128 + signal_number)
                record = json.loads((out / "record.json").read_text())
                self.assertTrue(record["interrupted"])
                shown = os.path.relpath(out / "record.json")
                self.assertEqual(stderr, "\ninterrupted: ending engines; what was judged goes into "
                                         f"{shown}; again to quit at once, without it\n")
                judged = record["listed"] - record["totals"]["NOT_RUN"]
                self.assertIn(f"Interrupted: {judged} of {record['listed']} case{'s' * (record['listed'] != 1)} had been "
                              f"judged.\nRecord: {shown}\n", stdout)
                self.assertNotIn("0 of 0", stdout)
                self.assertGreater(record["totals"]["NOT_RUN"], 0)
                self.assertEqual(sum(record["totals"].values()), record["listed"])
                self.assertEqual(record["totals"]["ERROR"] + record["totals"]["FAIL"], 0)
                self.assertNotIn("SURVIVED", stdout)  # what was not tried has survived nothing
                self.assertFalse((out / "work").exists())
                left = subprocess.run(["pgrep", "-f", str(out)], capture_output=True, text=True).stdout
                self.assertEqual(left, "")

    def test_ctrl_c_ends_the_making_of_data(self):
        # A batch of many divisors: the weights of its tokens take tens of seconds, as they must differ in every layout.
        model = {"layers": 1, "width": 1, "heads": 1, "kv_heads": 1, "positions": 6, "hidden": 1, "vocab": 2,
                 "weight_bound": 1, "fold_bound": 2, "gradient_fold_bound": 4, "dropout": False}
        config = {"train_batch_size": 27720, "optimizer": {"type": "ModularMomentum"}}
        case = self.dir / "case.json"
        case.write_text(json.dumps({"protocol": 1, "id": "exact/x", "family": "exact", "model": model,
                                    "config": config, "seed": 1, "steps": 25, "timeout_s": 60}))
        out = self.dir / "out"
        process = subprocess.Popen([PLUMBLINE, "verify", "--case-file", case, "--out", out], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        while not (out / "work" / "second" / "cases" / "0").exists():
            self.assertIsNone(process.poll())
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=5)
        self.assertEqual(process.returncode, 130)
        record = json.loads((out / "record.json").read_text())
        self.assertEqual((record["interrupted"], record["totals"]["NOT_RUN"]), (True, 1))
        self.assertFalse((out / "work").exists())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=2)
