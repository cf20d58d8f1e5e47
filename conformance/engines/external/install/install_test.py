# SPDX-License-Identifier: Apache-2.0
"""`plumbline engine install` but for the network: what a SPEC means, which folder has it, what is refused and how, that
folders are there complete or not at all. A real install takes minutes, and is told in docs/results/external.md.

Usage: install_test.py MAIN"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

MAIN = pathlib.Path(sys.argv[1]).absolute()
sys.path.insert(0, str(MAIN.parent.parent))
from install import folders, index, launchers, main, specs  # noqa: E402

PINS = {"torch": "2.11.0", "deepspeed": "0.19.8"}


class Specs(unittest.TestCase):
    def test_say_versions_and_the_folder(self):
        for words, folder, is_pinned in (
                (["torch"], "torch-2.11.0", True),
                (["torch==2.15.0"], "torch-2.15.0", False),
                (["Torch==2.16.0rc1"], "torch-2.16.0rc1", False),
                (["deepspeed"], "deepspeed-0.19.8-torch-2.11.0", True),
                (["deepspeed==0.18.0"], "deepspeed-0.18.0-torch-2.11.0", False),
                (["torch==2.15.0", "deepspeed"], "deepspeed-0.19.8-torch-2.15.0", False),
                (["deepspeed", "torch"], "deepspeed-0.19.8-torch-2.11.0", True)):
            request = specs.request(words, PINS)
            self.assertEqual((request.folder, request.is_pinned), (folder, is_pinned), words)

    def test_that_cannot_be_meant_are_refused_in_one_line(self):
        for words, message in (
                ([], "no SPEC"), (["torhc"], "did you mean torch?"), (["numpy"], "allowed: torch, deepspeed"),
                (["torch>=2"], "SPEC is 'torch>=2'"), (["torch==latest"], "SPEC is"), (["torch=="], "SPEC is"),
                (["torch==../x"], "SPEC is"), (["torch==2.11.0", "torch"], "torch is given twice"),
                (["--upgrade"], "'--upgrade' is no engine"), (["torch==1\n2"], "SPEC is")):
            with self.assertRaises(specs.Usage) as caught:
                specs.request(words, PINS)
            self.assertIn(message, str(caught.exception))

    def test_the_nearest_version_shares_most_in_front(self):
        for version, others, nearest in (
                ("2.11.9", ["2.10.0", "2.11.0", "2.12.0"], "2.11.0"), ("2.99.0", ["2.9.0", "2.15.0"], "2.15.0"),
                ("3.0", ["2.14.0", "2.15.0"], "2.14.0"), ("1.0", [], None),
                ("0.19.10", ["0.19.8", "0.18.10"], "0.19.8")):
            self.assertEqual(specs.nearest(version, others), nearest, version)


class Pins(unittest.TestCase):
    def test_are_of_one_version_and_one_hash_each(self):
        torch, deepspeed, sources = main.read_pins()
        for pins in (torch, deepspeed, sources):
            for name, line in pins.items():
                self.assertRegex(line, r"^%s==[0-9.]+ --hash=sha256:[0-9a-f]{64}$" % re.escape(name))
        self.assertIn("torch", torch)
        self.assertEqual({"deepspeed", "setuptools"}, set(sources))


class Pip(unittest.TestCase):
    def test_what_it_says_becomes_one_line(self):
        for errors, kind, message in (
                ("ERROR: Could not find a version that satisfies the requirement torch==9 "
                 "(from versions: 2.14.0, 2.15.0)\n"
                 "ERROR: No matching distribution found for torch==9", index.NoSuchVersion, "the nearest is 2.14.0"),
                ("WARNING: Retrying after connection broken by 'NewConnectionError(x)': /simple\n"
                 "ERROR: Could not find a version that satisfies the requirement torch==9 (from versions: none)",
                 index.Missing, "no connection: NewConnectionError(x)"),
                ("/usr/bin/python3: No module named pip", index.Missing, "apt-get install python3-pip"),
                ("ERROR: THESE PACKAGES DO NOT MATCH THE HASHES", index.Missing, "DO NOT MATCH THE HASHES"),
                ("", index.Missing, "pip failed")):
            reason = index._reason("torch", "9", errors)
            self.assertIsInstance(reason, kind)
            self.assertIn(message, str(reason))
            self.assertEqual(len(str(reason).splitlines()), 1)


class Folders(unittest.TestCase):
    def setUp(self):
        keeper = tempfile.TemporaryDirectory()
        self.addCleanup(keeper.cleanup)
        self.engines = pathlib.Path(keeper.name) / "engines"

    def names(self):
        return sorted(path.name for path in self.engines.iterdir() if path.name != "install.lock")

    def make(self, name, error=None):
        with folders.locked(self.engines, print), folders.new_folder(self.engines, name) as (folder, scratch):
            (folder / "packages").mkdir()
            (scratch / "wheel").write_text("")
            self.assertNotIn(name, self.names())
            if error:
                raise error

    def test_are_complete_or_not_there(self):
        for error in (OSError("full"), KeyboardInterrupt(), SystemExit(143)):
            with self.assertRaises(type(error)):
                self.make("torch-1", error)
            self.assertEqual(self.names(), [])
        self.make("torch-1")
        self.assertEqual(self.names(), ["torch-1"])

    def test_of_an_install_that_was_killed_are_removed_by_the_next(self):
        (self.engines / ".new-x/folder/packages").mkdir(parents=True)
        self.make("torch-1")
        self.assertEqual(self.names(), ["torch-1"])

    def test_the_default_is_the_pinned_one_or_the_first(self):
        self.engines.mkdir()
        for name, is_pinned, default in (("torch-2", False, "torch-2"), ("torch-3", False, "torch-2"),
                                         ("torch-1", True, "torch-1"), ("torch-3", False, "torch-1")):
            (self.engines / name).mkdir(exist_ok=True)
            folders.make_default(self.engines, "torch", name, is_pinned)
            self.assertEqual((self.engines / "torch").resolve().name, default)

    def test_have_programs_that_give_the_adapter_the_packages(self):
        folder = self.engines / "it's here"
        folder.mkdir(parents=True)
        for has_deepspeed in (False, True):
            names = launchers.write(folder, has_deepspeed)
            self.assertEqual("deepspeed" in names, has_deepspeed)
        self.assertIn("ddp", names)
        for name in names:
            done = subprocess.run([folder / name, "describe"], capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 4, done.stderr)
            self.assertIn("in %s;" % (folder / "packages"), done.stderr)


class Program(unittest.TestCase):
    def run_it(self, *arguments):
        with tempfile.TemporaryDirectory() as cache:
            done = subprocess.run([MAIN, *arguments], env={**os.environ, "XDG_CACHE_HOME": cache}, capture_output=True,
                                  text=True, check=False)
            left = [str(path.relative_to(cache)) for path in pathlib.Path(cache).rglob("*") if path.is_file()]
        return done.returncode, done.stdout, done.stderr, left, cache

    def test_refuses_bad_usage_and_touches_nothing(self):
        for arguments in (["torhc"], ["torch", "torch"], ["--fast", "torch"], ["--dry-run"]):
            code, out, err, left, _ = self.run_it(*arguments)
            self.assertEqual((code, out, len(err.splitlines()), left), (2, "", 1, []), err)

    def test_says_what_it_needs_of_plumbline(self):
        code, out, err, left, cache = self.run_it("torch")
        self.assertEqual((code, out, left), (4, "", ["plumbline/engines/install.lock"]), err)
        self.assertRegex(err, r"^plumbline: engine install: no LibTorch in %s/plumbline/libtorch-[0-9.]+; "
                         r"./plumbline build fetches it\n$" % cache)

    def test_only_names_the_folder_where_asked_to(self):
        code, out, _, left, cache = self.run_it("--dry-run", "deepspeed==0.19.8", "torch==2.15.0")
        self.assertEqual((code, out, left), (0, cache + "/plumbline/engines/deepspeed-0.19.8-torch-2.15.0\n", []))

    def test_helps(self):
        code, out, _, _, _ = self.run_it("--help")
        self.assertEqual(code, 0)
        for words in ("usage: ./plumbline engine install", "examples:", "torch==2.15.0", "Exit codes: 0"):
            self.assertIn(words, out)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]], verbosity=2)
