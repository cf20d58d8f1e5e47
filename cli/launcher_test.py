# SPDX-License-Identifier: Apache-2.0
"""The launcher's own words: what it refuses before it installs or builds anything, and what it shows while it installs.

Usage: launcher_test.py PATH_OF_LAUNCHER PATH_OF_MAIN_CC
It runs a copy of ./plumbline in a folder without sources, with stand-ins for the tools of Debian. Nothing is built.
"""

import os
import pathlib
import pty
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

LAUNCHER, MAIN = (pathlib.Path(path) for path in sys.argv[1:3])
# Prints what apt-get prints, long enough for a second to pass, and fails, so that nothing is built afterwards.
APT_GET = """#!/bin/sh
[ "$3" = update ] || [ "$4" = update ] && exit 0
echo Unpacking first-package
sleep 2.5
echo 'E: no such package'
exit 100
"""


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.dir = pathlib.Path(folder.name)
        for name in ("root/bazel", "bin", "home"):
            (self.dir / name).mkdir(parents=True)
        shutil.copy(LAUNCHER, self.dir / "root" / "plumbline")
        (self.dir / "root/bazel/libtorch_wheels.txt").write_text("torch==2.11.0\n")
        self.tool("dpkg-query", "#!/bin/sh\nexit 1\n")
        self.tool("apt-get", APT_GET)
        self.environment = {"PATH": f"{self.dir}/bin:/usr/bin:/bin", "HOME": str(self.dir / "home")}

    def tool(self, name, text):
        path = self.dir / "bin" / name
        path.write_text(text)
        path.chmod(0o755)

    def run_it(self, *arguments, **kwargs):
        return subprocess.run([self.dir / "root/plumbline", *arguments], env=self.environment, timeout=100,
                              stdin=subprocess.DEVNULL, **kwargs)

    def refusal(self, *arguments):
        done = self.run_it(*arguments, capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertEqual(list((self.dir / "home").iterdir()), [], "something was set up")
        return done.stderr.strip()


class EngineInstall(Case):
    def setUp(self):
        super().setUp()
        folder = self.dir / "root/conformance/engines/external/install"
        folder.mkdir(parents=True)
        (folder / "main.py").write_text("import sys\nif 'torhc' in sys.argv:\n    sys.exit('plumbline: not that')\n"
                                        "print(*sys.argv[1:])\n")

    def test_says_how_it_is_used_without_setting_anything_up(self):
        for arguments in ([], ["--help"], ["torch", "-h"]):
            done = self.run_it("engine", "install", *arguments, capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stdout), (0, " ".join(arguments) + "\n"), done.stderr)

    def test_refuses_before_anything_is_set_up_what_the_installer_refuses(self):
        done = self.run_it("engine", "install", "torhc", capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (1, "", "plumbline: not that\n"))
        self.assertEqual(list((self.dir / "home").iterdir()), [], "something was set up")

    def test_sets_up_what_it_needs_before_it_installs(self):
        done = self.run_it("engine", "install", "torch", capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout), (4, ""), done.stderr)
        self.assertIn("Debian packages", done.stderr)


class UnknownCommands(Case):
    def test_are_refused_with_the_nearest_one_before_anything_is_set_up(self):
        for word, nearest in (("verfy", "verify"), ("verifyy", "verify"), ("merg", "merge"), ("tset", "test"),
                              ("biuld", "build"), ("docter", "doctor"), ("hlep", "help"), ("Verify", "verify")):
            self.assertEqual(self.refusal(word, "--seed", "1"),
                             f"plumbline: unknown command {word}; did you mean {nearest}?")

    def test_without_a_near_one_are_refused_with_the_list(self):
        for word in ("xyzzy", "--nonsense", "v" * 5000):
            message = self.refusal(word)
            self.assertTrue(message.endswith("; allowed: doctor test build help verify merge run engine"), message)
            self.assertLess(len(message), 150)

    def test_are_shown_without_their_control_characters(self):
        for word in ("a\nb\x1b[31m", "verif\x1b", "verify merge"):
            self.assertTrue(self.refusal(word).isprintable())

    def test_are_none_that_the_program_has(self):
        program = set(re.findall(r'commands\["(\w+)"\] =', MAIN.read_text()))
        text = (self.dir / "root/plumbline").read_text()
        listed = set(" ".join(re.findall(r"^(?:own|program)_commands=\(([^)]*)\)", text, re.MULTILINE)).split())
        self.assertGreaterEqual(len(program), 3)
        self.assertEqual(program - listed, set())
        self.assertEqual(set(re.search(r"^program_commands=\(([^)]*)\)", text, re.MULTILINE).group(1).split()) - program, set())


class UnknownOptions(Case):
    def test_of_test_are_refused_with_the_nearest_one_and_others_go_to_bazel(self):
        for word, nearest in (("--sanitise=address", "--sanitize"), ("--sanitze", "--sanitize"), ("--jsn", "--json"),
                              ("--nocache", "--no-cache"), ("--hepl", "--help")):
            self.assertEqual(self.refusal("test", word), f"plumbline: {word.partition('=')[0]} is unknown; did you mean {nearest}?")
        self.assertEqual(self.refusal("test", "--sanitize"), "plumbline: --sanitize is ''; allowed: address, undefined, thread")
        self.assertEqual(self.refusal("test", "--sanitize=adress"),
                         "plumbline: --sanitize is 'adress'; allowed: address, undefined, thread")
        self.assertEqual(self.refusal("--verison"), "plumbline: unknown command --verison; did you mean --version?")


class Installing(Case):
    """As root; anybody else is shown the line to type."""

    IS_ROOT = os.geteuid() == 0
    LAST = "plumbline: apt-get failed (no network?): E: no such package" if IS_ROOT else "sudo apt-get install -y"

    def test_shows_what_apt_get_is_at_on_a_terminal(self):
        leader, follower = pty.openpty()
        done = self.run_it("verify", stdout=subprocess.DEVNULL, stderr=follower)
        os.close(follower)
        text = b""
        while chunk := self.read(leader):
            text += chunk
        os.close(leader)
        self.assertEqual(done.returncode, 4, text)
        self.assertEqual(b"\r\x1b[Kplumbline: Unpacking first-package" in text, self.IS_ROOT, text)
        self.assertIn(self.LAST.encode(), text.splitlines()[-1])

    def read(self, fd):
        try:
            return os.read(fd, 4096)
        except OSError:  # the other end is closed
            return b""

    def test_prints_two_lines_in_a_pipe(self):
        done = self.run_it("verify", capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout), (4, ""))
        lines = done.stderr.splitlines()
        self.assertEqual(len(lines), 2, done.stderr)
        self.assertIn("Debian packages", lines[0])
        self.assertIn(self.LAST, lines[1])


class Testing(Case):
    def bazel_options(self, words=(), **environment):
        """What a `test` hands to Bazel on a machine that has everything."""
        libtorch, handed = self.dir / "libtorch", self.dir / "words"
        (libtorch / "lib").mkdir(parents=True, exist_ok=True)
        (libtorch / "include").mkdir(exist_ok=True)
        (libtorch / "lib/libtorch_cpu.so").touch()
        # dpkg-query -W -f FORMAT NAME...
        self.tool("dpkg-query", '#!/bin/sh\nshift 2\nprintf "installed %s\\n" "$@"\n')
        self.tool("bazel", f'#!/bin/sh\nprintf "%s\\n" "$@" >{handed}\n')
        launcher = self.dir / "root/plumbline"
        launcher.write_text(launcher.read_text().replace("/usr/bin/bazel", str(self.dir / "bin/bazel")))
        self.environment |= {"LIBTORCH_DIR": str(libtorch)} | environment
        self.run_it("test", *words, "//some:test", capture_output=True)
        return handed.read_text().splitlines()

    def test_tells_tests_of_the_cache_only_where_the_user_has_named_one(self):
        self.assertNotIn("--test_env=XDG_CACHE_HOME", self.bazel_options())
        self.assertNotIn("--test_env=XDG_CACHE_HOME", self.bazel_options(XDG_CACHE_HOME="relative"))
        options = self.bazel_options(XDG_CACHE_HOME=str(self.dir / "cache"))
        self.assertIn("--test_env=XDG_CACHE_HOME", options)
        self.assertLess(options.index("--test_env=XDG_CACHE_HOME"), options.index("--"))

    def test_hands_on_options_of_bazel(self):
        words = ["--jobs=2", "--test_filter=X", "-k", "--runs_per_test=3", "--config=clang"]
        options = self.bazel_options(words=words)
        self.assertEqual([word for word in words if word in options], words)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
