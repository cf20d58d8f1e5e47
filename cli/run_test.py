# SPDX-License-Identifier: Apache-2.0
"""`plumbline run`: ranks of any program, their output, their ends and ours. The programs here are the shell's.

Usage: run_test.py PATH_OF_PLUMBLINE
"""

import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

PLUMBLINE = os.path.abspath(sys.argv[1])
ARGUMENTS = ("run", "--ranks")


def run(ranks, script, *options, **kwargs):
    return subprocess.run([PLUMBLINE, *ARGUMENTS, str(ranks), *options, "--", "sh", "-c", script],
                          capture_output=True, text=True, timeout=100, **kwargs)


def is_alive(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


class Output(unittest.TestCase):
    def test_lines_are_whole_and_begin_with_their_rank(self):
        done = run(3, "for i in 1 2 3 4 5; do echo line $i of $RANK; echo error $i of $RANK >&2; done; printf 'no end'")
        self.assertEqual(done.returncode, 0, done.stderr)
        expected = sorted([f"{r}: line {i} of {r}" for r in range(3) for i in range(1, 6)] + [f"{r}: no end" for r in range(3)])
        self.assertEqual(sorted(done.stdout.splitlines()), expected)
        self.assertEqual(sorted(done.stderr.splitlines()), sorted(f"{r}: error {i} of {r}" for r in range(3) for i in range(1, 6)))

    def test_of_one_rank_has_no_prefix(self):
        self.assertEqual(run(1, "echo alone").stdout, "alone\n")

    def test_of_a_flood_is_complete(self):
        done = run(2, "i=0; while [ $i -lt 20000 ]; do echo $RANK $i; i=$((i + 1)); done")
        lines = done.stdout.splitlines()
        for rank in "01":
            self.assertEqual([line for line in lines if line.startswith(rank)], [f"{rank}: {rank} {i}" for i in range(20000)])

    def test_that_nobody_reads_ends_the_ranks(self):
        process = subprocess.Popen([PLUMBLINE, *ARGUMENTS, "2", "--", "sh", "-c", "while :; do echo x; done"],
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        process.stdout.read(100)
        process.stdout.close()
        self.assertEqual(process.wait(60), -signal.SIGPIPE)


class Environment(unittest.TestCase):
    def test_is_that_of_torchrun(self):
        done = run(3, "echo $RANK $LOCAL_RANK $WORLD_SIZE $MASTER_ADDR $MASTER_PORT", env={**os.environ, "RANK": "77", "MASTER_PORT": "1"})
        words = sorted(line.split() for line in done.stdout.splitlines())
        self.assertEqual([line[:5] for line in words], [[f"{r}:", str(r), str(r), "3", "127.0.0.1"] for r in range(3)])
        ports = {line[5] for line in words}
        self.assertEqual(len(ports), 1)
        self.assertGreater(int(ports.pop()), 1)

    def test_has_no_standard_input(self):
        self.assertEqual(run(1, "cat", input="something").stdout, "")

    def test_is_that_of_the_caller_else(self):
        self.assertEqual(run(1, "echo $WORD; pwd", env={**os.environ, "WORD": "kept"}, cwd="/").stdout, "kept\n/\n")


class Ends(unittest.TestCase):
    def test_well_if_all_ranks_do(self):
        done = run(4, ":")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))

    def test_with_the_code_of_the_rank_that_failed_which_is_named(self):
        done = run(3, "[ $RANK = 1 ] && exit 7; sleep 600", "--grace", "0")
        self.assertEqual((done.returncode, done.stderr), (7, "plumbline: rank 1 ended with exit code 7\n"))

    def test_with_the_signal_of_the_rank_that_was_killed(self):
        done = run(3, "[ $RANK = 2 ] && kill -9 $$; sleep 600", "--grace=0")
        self.assertEqual((done.returncode, done.stderr), (137, "plumbline: rank 2 killed by SIGKILL\n"))

    def test_with_the_first_failure_of_several_and_says_all(self):
        done = run(2, "[ $RANK = 0 ] && exit 3; trap 'exit 4' TERM; while :; do sleep 0.01; done", "--grace", "0")
        self.assertEqual((done.returncode, done.stderr), (3, "plumbline: rank 0 ended with exit code 3\n"))
        with tempfile.TemporaryDirectory() as folder:
            done = run(2, "[ $RANK = 0 ] && { echo $$ > pid; exit 3; }; while [ ! -s pid ] || kill -0 $(cat pid) 2>&-; do :; done; exit 4",
                       "--grace", "60", cwd=folder)
        self.assertEqual(done.returncode, 3)
        self.assertEqual(done.stderr.splitlines(), [f"plumbline: rank {r} ended with exit code {r + 3}" for r in range(2)])

    def test_ranks_that_ignore_sigterm_and_their_children(self):
        with tempfile.TemporaryDirectory() as folder:
            done = run(2, "trap '' TERM; [ $RANK = 0 ] && { while [ ! -s child ]; do :; done; exit 5; }; sleep 600 & echo $! > child; wait",
                       "--grace", "0.1", cwd=folder)
            child = int(pathlib.Path(folder, "child").read_text())
        self.assertEqual(done.returncode, 5)
        self.assertFalse(is_alive(child))


class Interrupt(unittest.TestCase):
    def end_by(self, number):
        with tempfile.TemporaryDirectory() as folder:
            process = subprocess.Popen([PLUMBLINE, *ARGUMENTS, "2", "--", "sh", "-c", "echo $$ > pid$RANK; echo ready; sleep 600"],
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder)
            for _ in range(2):
                process.stdout.readline()
            process.send_signal(number)
            _, errors = process.communicate(timeout=60)
            pids = [int(pathlib.Path(folder, f"pid{rank}").read_text()) for rank in range(2)]
        self.assertFalse(any(map(is_alive, pids)))
        return process.returncode, errors

    def test_ends_the_ranks_and_says_so(self):
        self.assertEqual(self.end_by(signal.SIGINT), (130, "\ninterrupted: ending the ranks; again to quit at once\n"))
        self.assertEqual(self.end_by(signal.SIGTERM)[0], 143)

    def test_by_a_signal_that_cannot_be_caught_leaves_no_rank(self):
        with tempfile.TemporaryDirectory() as folder:
            process = subprocess.Popen([PLUMBLINE, *ARGUMENTS, "2", "--", "sh", "-c", "echo $$ > pid$RANK; echo ready; exec sleep 600"],
                                       stdout=subprocess.PIPE, text=True, cwd=folder)
            for _ in range(2):
                process.stdout.readline()
            process.kill()
            process.communicate(timeout=60)
            pids = [int(pathlib.Path(folder, f"pid{rank}").read_text()) for rank in range(2)]
        deadline = time.monotonic() + 30
        while any(map(is_alive, pids)) and time.monotonic() < deadline:
            pass
        self.assertFalse(any(map(is_alive, pids)))


class Usage(unittest.TestCase):
    def refusal(self, *words):
        done = subprocess.run([PLUMBLINE, "run", *words], capture_output=True, text=True, timeout=100)
        self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        return done.stderr.strip()

    def test_says_what_is_missing(self):
        self.assertIn("--ranks is missing", self.refusal("--", "true"))
        self.assertIn("no program is named", self.refusal("--ranks", "2"))
        self.assertIn("no program is named", self.refusal("--ranks", "2", "--"))

    def test_refuses_numbers_out_of_range(self):
        for value in ("0", "1025", "-1", "two", "1.5"):
            self.assertEqual(self.refusal(f"--ranks={value}", "--", "true"), f'plumbline: --ranks is "{value}"; allowed: N from 1 to 1024')
        for value in ("-1", "nan", "5s"):
            self.assertIn(f'--grace is "{value}"', self.refusal("--ranks", "1", f"--grace={value}", "--", "true"))

    def test_names_a_program_that_is_not_there(self):
        self.assertIn("no-such-program: no such file", self.refusal("--ranks", "2", "--", "no-such-program"))
        self.assertIn("not executable", self.refusal("--ranks", "2", "--", "/etc/passwd"))

    def test_leaves_the_options_of_the_program_alone(self):
        done = subprocess.run([PLUMBLINE, *ARGUMENTS, "1", "--", "printf", "%s,", "--ranks", "--help", "verify", "--"],
                              capture_output=True, text=True, timeout=100)
        self.assertEqual((done.returncode, done.stdout), (0, "--ranks,--help,verify,--,\n"), done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
