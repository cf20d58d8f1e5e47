# SPDX-License-Identifier: Apache-2.0
"""Every option of every command with a value that it does not take: one line on stderr that names it, exit code 2.

Usage: usage_test.py PATH_OF_PLUMBLINE FORMATS_MD README_MD
"""

import json
import os
import pathlib
import re
import resource
import signal
import subprocess
import sys
import tempfile
import unittest

PLUMBLINE = os.path.abspath(sys.argv[1])
FORMATS, README = map(pathlib.Path, sys.argv[2:4])
COMMANDS = ("verify", "merge", "run", "doctor")
# What each option with a value says that it allows.
ALLOWED = {
    "verify": {
        "--tier": "smoke, full, nightly",
        "--case": "ID",
        "--case-file": "FILE",
        "--filter": "PATTERN",
        "--shard": "i/n with 1 <= i <= n",
        "--engine": "PROGRAM",
        "--expect-unsupported": "PATTERN",
        "--text": "FILE",
        "--seed": "N from 0 to 18446744073709551615",
        "--jobs": "N from 1 to 256",
        "--timeout": "SECONDS from 0.1 to 86400",
        "--out": "FOLDER",
        "--shrink": "SECONDS from 0 to 86400",
        "--mutants": "FILE",
        "--mutant-engine": "PROGRAM",
        "--mutant-cases": "N from 1 to 1000",
    },
    "merge": {"--out": "FOLDER"},
    "run": {"--ranks": "N from 1 to 1024", "--grace": "SECONDS from 0 to 86400"},
    "doctor": {"--cache": "FOLDER"},
}
WRONG = {
    "--tier": ("smok", "SMOKE", "smoke,full"),
    "--shard": ("0/2", "3/2", "1/2x", "a/b", "1", "1/", "/2", "-1/2", "1/0"),
    "--seed": ("-1", "18446744073709551616", "1.5", "one", "1e3", " 1"),
    "--jobs": ("0", "257", "two", "1.5", "-1"),
    "--timeout": ("0", "0.09", "86401", "nan", "inf", "10s", "-1"),
    "--shrink": ("-1", "86401", "nan", "20s"),
}
# One of family exact that is on no list.
LONE_CASE = {
    "protocol": 1, "id": "exact/x", "family": "exact", "seed": 1, "steps": 10, "timeout_s": 60,
    "model": {"layers": 1, "width": 6, "heads": 3, "kv_heads": 1, "positions": 9, "hidden": 7, "vocab": 19,
              "weight_bound": 1, "fold_bound": 2, "gradient_fold_bound": 10, "dropout": False},
    "config": {"train_batch_size": 6, "optimizer": {"type": "ModularSGD"}},
}


def run(*arguments, **kwargs):
    return subprocess.run([PLUMBLINE, *map(str, arguments)], capture_output=True, text=True, timeout=100, **kwargs)


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.dir = pathlib.Path(folder.name)

    def refusal(self, *arguments, code=2, **kwargs):
        """The one line on stderr; nothing was printed or made."""
        done = run(*arguments, cwd=self.dir, **kwargs)
        self.assertEqual((done.returncode, done.stdout), (code, ""), done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertTrue(done.stderr.startswith("plumbline: "), done.stderr)
        self.assertFalse((self.dir / "plumbline-out").exists())
        return done.stderr.removeprefix("plumbline: ").strip()


class Values(Case):
    def test_the_table_has_every_option(self):
        for command in COMMANDS:
            shown = re.findall(r"^  (?:-\w,)?(--[\w-]+) [^ ]", run(command, "--help").stdout, re.MULTILINE)
            self.assertEqual(set(shown), set(ALLOWED[command]), command)

    def test_that_are_missing_or_empty_are_refused_and_the_next_option_is_none(self):
        for command, options in ALLOWED.items():
            for option, allowed in options.items():
                for words, place in (([option], ""), ([option + "="], ""), ([option + "=", "--json"], ""), ([option, ""], ""),
                                     ([option, "--json"], " before --json"), (["--json", option], "")):
                    with self.subTest(command=command, words=words):
                        self.assertEqual(self.refusal(command, *words), f"{option} has no value{place}; allowed: {allowed}")

    def test_that_are_wrong_or_out_of_range_are_refused_whatever_is_asked_for(self):
        for option, values in WRONG.items():
            for value in values:
                for mode in ([], ["--list"], ["--dry-run"], ["--coverage"]):
                    with self.subTest(option=option, value=value, mode=mode):
                        self.assertEqual(self.refusal("verify", *mode, f"{option}={value}"),
                                         f'{option} is "{value}"; allowed: {ALLOWED["verify"][option]}')
        self.assertEqual(self.refusal("verify", "--mutants=x", "--mutant-engine=x", "--mutant-cases=1001"),
                         '--mutant-cases is "1001"; allowed: N from 1 to 1000')

    def test_that_are_given_twice_are_refused(self):
        self.assertEqual(self.refusal("verify", "--seed", 1, "--seed", 2), "--seed is given 2 times; allowed: once")
        self.assertEqual(self.refusal("merge", "a", "--out", 1, "--out", 2), "--out is given 2 times; allowed: once")
        self.assertEqual(run("doctor", "--cache", "/nowhere", "--cache", self.dir).returncode, 0, "the launcher names one too")

    def test_a_flag_takes_none(self):
        for command in ("verify", "merge", "doctor"):
            self.assertEqual(self.refusal(command, *(["x"] if command == "merge" else []), "--json=maybe"), "--json takes no value")


class Names(Case):
    def test_that_are_unknown_are_refused_with_the_nearest(self):
        for command, options in ALLOWED.items():
            for option in options:
                wrong = option[:-1] + "_" if option != "--out" else "--oute"
                line = self.refusal(command, *(["x"] if command == "merge" else []), wrong)
                self.assertIn(f"{wrong} is unknown; did you mean --", line)
        self.assertEqual(self.refusal("verify", "--xyzzy"), "--xyzzy is unknown; `plumbline verify --help` shows what is allowed")
        self.assertEqual(self.refusal("verify", "exact/sgd"),
                         'verify takes no "exact/sgd"; `plumbline verify --help` shows what is allowed')

    def test_of_commands(self):
        self.assertEqual(self.refusal(), "no command; allowed: verify, merge, run, doctor, engine")
        self.assertEqual(self.refusal("verfy"), "verfy is unknown; did you mean verify?")
        self.assertEqual(self.refusal("xyzzy"), "unknown command xyzzy; allowed: verify, merge, run, doctor, engine")
        self.assertEqual(self.refusal("merge"), "no records are named; `plumbline merge --help` shows what is allowed")
        self.assertEqual(self.refusal("engine"), "no action is named; `plumbline engine --help` shows what is allowed")
        self.assertEqual(self.refusal("engine", "check"), "no engine is named; `plumbline engine --help` shows what is allowed")
        self.assertEqual(self.refusal("engine", "chek", "x"), 'engine does not know "chek"; allowed: check, and install of the launcher ./plumbline')


class Combinations(Case):
    def test_that_contradict_each_other_are_refused(self):
        for one, other in (("--self-test", "--no-self-test"), ("--list", "--dry-run"), ("--list", "--coverage"),
                           ("--dry-run", "--coverage")):
            self.assertEqual(self.refusal("verify", one, other), f"{one} and {other} exclude each other")
        for options in (["--filter", "*"], ["--shard", "1/2"]):
            self.assertEqual(f"--case and {options[0]} exclude each other", self.refusal("verify", "--case", "x", *options))
        for options in (["--seed", "1"], ["--tier", "full"], ["--self-test"]):
            self.assertEqual(f"--case-file and {options[0]} exclude each other", self.refusal("verify", "--case-file", "x", *options))
        self.assertIn("--mutants requires --mutant-engine", self.refusal("verify", "--mutants", "x"))
        self.assertIn("--mutant-engine requires --mutants", self.refusal("verify", "--mutant-engine", "x"))


class Files(Case):
    def test_that_cannot_be_read_are_named_with_their_option(self):
        missing, text = self.dir / "missing", self.dir / "text"
        text.write_text("{")
        for option, more in (("--text", []), ("--case-file", []), ("--mutants", ["--mutant-engine", PLUMBLINE])):
            for path, reason in ((missing, "No such file or directory"), (self.dir, "Is a directory")):
                with self.subTest(option=option, path=path):
                    self.assertEqual(self.refusal("verify", option, path, *more), f"{option} {path}: cannot be read: {reason}")
        self.assertIn(f"--case-file {text}: ", self.refusal("verify", "--case-file", text))
        self.assertIn(f"--mutants {text}:1: ", self.refusal("verify", "--mutants", text, "--mutant-engine", PLUMBLINE))
        for path in (missing, self.dir, text):
            self.assertTrue(self.refusal("verify", "--engine", path).startswith(f"--engine {path}: "))
        self.assertIn(f"{missing}: ", self.refusal("merge", missing))

    def test_a_text_that_a_case_file_cannot_train_on_is_named_with_its_option(self):
        case, short, missing = self.dir / "case.json", self.dir / "short", self.dir / "missing"
        case.write_text(json.dumps(LONE_CASE))
        short.write_bytes(b"1234567")
        self.assertEqual(self.refusal("verify", "--case-file", case, "--text", short),
                         f"--text {short}: has 7 tokens; allowed: at least 10, one sample and its last label")
        self.assertEqual(self.refusal("verify", "--case-file", case, "--text", missing),
                         f"--text {missing}: cannot be read: No such file or directory")

    def test_the_case_files_of_the_document_are_taken(self):
        blocks = re.findall(r"^```\n(// .*?)^```$", FORMATS.read_text(), re.MULTILINE | re.DOTALL)
        self.assertEqual(len(blocks), 1)
        case = self.dir / "case.json"
        for block in blocks:
            case.write_text(block)
            done = run("verify", "--case-file", case, "--dry-run")
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertEqual(json.loads(done.stdout)["id"], "gpt2/mine/data2-zero2")

    def test_an_id_that_is_no_name_is_named_with_what_is_allowed(self):
        case = self.dir / "case.json"
        for id, shown in (("sgd", '"sgd"'), ("gpt2/x", '"gpt2/x"'), ("exact/a b", '"exact/a b"'), ("exact/\n", '"exact/\\n"'),
                          ("exact/" + "x" * 300, '"exact/' + "x" * 54 + '"...')):
            case.write_text(json.dumps(LONE_CASE | {"id": id}))
            self.assertEqual(self.refusal("verify", "--case-file", case),
                             f"--case-file {case}: id is {shown}; allowed: exact/ and then letters, digits, _ . - and /, "
                             "at most 200 bytes in all")

    def test_what_is_no_record_is_named_in_one_line(self):
        path = self.dir / "file"
        for content, what in (("# Title\n", "no JSON from line 1, column 1 on"), ("", "it is empty"),
                              ('{"schema": 2,\n', "no JSON from line 2, column 1 on"), ("[]", "it is []"),
                              (json.dumps(LONE_CASE), 'it has no "schema"')):
            path.write_text(content)
            self.assertEqual(self.refusal("merge", path),
                             f"{path}: not a record (record.json of `verify` or `merge`): {what}")

    def test_a_text_that_no_case_can_train_on_is_refused_at_once(self):
        short = self.dir / "short"
        short.write_bytes(b"1234567")
        self.assertRegex(self.refusal("verify", "--text", short),
                         rf"^--text {short}: has 7 tokens; allowed: at least \d+, one sample and its last label$")

    def test_an_output_folder_that_cannot_be_written_is_named(self):
        (self.dir / "file").write_text("")
        for command in (["verify", "--filter", "exact/sgd-v19/data2-zero2-*"], ["merge", self.record()]):
            line = self.refusal(*command, "--out", self.dir / "file" / "out", code=4)
            self.assertIn(f"--out {self.dir}/file/out: cannot be made: Not a directory", line)
            self.assertEqual(self.refusal(*command, "--out", self.dir / "file"),
                             f"--out {self.dir}/file is a file; allowed: a new or empty folder")

    def record(self):
        out = self.dir / "done"
        if not out.exists():
            self.assertEqual(run("verify", "--case", "exact/sgd-v19/torch_eager-fp32", "--out", out).returncode, 0)
        return out / "record.json"

    def test_a_disk_that_is_full_at_the_end_loses_no_report(self):
        record = self.record()
        limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024))
        done = run("merge", record, "--out", self.dir / "merged", preexec_fn=limit)
        self.assertEqual(done.returncode, 4, done.stderr)
        self.assertEqual(done.stderr, f"plumbline: {self.dir}/merged/record.json: cannot be written: File too large\n")
        self.assertIn("1 case: 1 PASS.", done.stdout)
        self.assertEqual(list((self.dir / "merged").iterdir()), [])


class Counts(Case):
    def test_of_cases_in_the_readme_are_those_of_the_lists(self):
        text = " ".join(re.search(r"\*\*How many cases\.\*\*(.*?)\n\n", README.read_text(), re.DOTALL)[1].split())
        listed = lambda *arguments: run("verify", "--list", *arguments).stdout.split()
        smoke = listed()
        coverage = json.loads(run("verify", "--coverage", "--json").stdout)
        layouts = sum(family["cases"] for family in coverage["families"])
        witness, relations = (sum(part in id for id in smoke) for part in ("/torch_eager-", "/metamorphic-"))
        self.assertEqual(layouts + witness + relations, len(smoke))
        total, twins = map(int, re.search(r"Smoke has (\d+): .* and (\d+) of the twin", text).groups())
        self.assertEqual(total, len(smoke) + twins)
        self.assertIn(f"the {len(smoke)} of `--list` ({layouts} layouts in the covering arrays of `--coverage`, {witness} of the "
                      f"witness, {relations} relations)", text)
        self.assertIn(f"no cases of the witness: {len(listed('--engine', 'x'))}.", text)
        self.assertIn(f"`--tier full` lists {len(listed('--tier', 'full'))}, `nightly` {len(listed('--tier', 'nightly'))}.", text)
        self.assertIn(f"\n{total} cases: {total} PASS.", README.read_text())


class Pipes(Case):
    def test_a_reader_that_goes_away_ends_it_without_a_word_and_without_litter(self):
        for arguments in (["--list"], ["--filter", "exact/sgd-v19/torch_eager-fp32", "--out", self.dir / "out"]):
            with self.subTest(arguments):
                read, write = os.pipe()
                os.close(read)
                done = subprocess.run([PLUMBLINE, "verify", *map(str, arguments)], stdout=write, stderr=subprocess.PIPE, timeout=100)
                os.close(write)
                self.assertEqual((done.returncode, done.stderr), (-signal.SIGPIPE, b""))
        self.assertEqual(sorted(path.name for path in (self.dir / "out").iterdir()), ["junit.xml", "record.json"])


class Help(Case):
    def test_fits_a_terminal_and_has_examples(self):
        for command in ((), *((name,) for name in COMMANDS)):
            done = run(*command, "--help")
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertIn("Examples:\n  ./plumbline ", done.stdout)
            self.assertIn("Exit codes: 0 ", done.stdout)
            self.assertEqual([line for line in done.stdout.splitlines() if len(line) > 80], [])

    def test_says_what_a_hung_engine_costs(self):
        text = " ".join(run("verify", "--help").stdout.split())
        self.assertIn("Seconds that a case may take (default: 60). The first case after each start of an engine gets 30 more to "
                      "load it; one that hangs is then ended within 0.5 s, and the engine is started again for the others", text)

    def test_examples_parse(self):
        self.record_files()
        for command in ("verify", "merge", "doctor"):  # those of `run` name the user's programs
            for line in re.findall(r"^  \./plumbline (.*)$", run(command, "--help").stdout, re.MULTILINE):
                words = [word.strip("'") for word in line.split()]
                if words[0] == "verify":  # the option that runs nothing shows that the others are understood
                    words.append("--list")
                with self.subTest(line):
                    done = run(*words, cwd=self.dir)
                    self.assertEqual((done.returncode, done.stderr), (0, ""), line)

    def record_files(self):
        for index in (1, 2):
            done = run("verify", "--filter", "exact/sgd-v19/metamorphic-*", "--shard", f"{index}/2", "--out",
                       self.dir / f"shard{index}")
            self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
