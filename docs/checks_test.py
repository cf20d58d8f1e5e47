# SPDX-License-Identifier: Apache-2.0
"""docs/checks.md has a line for each check that the code makes, and the code makes each that it has a line for.

Usage: checks_test.py CHECKS_MD SOURCE...
It reads names where results of checks are made. A new way of making them would escape it, so names that other lists of
the code know (what leads to a cause, what the guards plant into) must be among those it found.
"""

import pathlib
import re
import sys
import unittest

DOCUMENT = pathlib.Path(sys.argv[1]).read_text()
SOURCES = {path.name: path.read_text() for path in map(pathlib.Path, sys.argv[2:])}
MADE = re.compile(r'\{"([a-z]+)",\s*(?:reports::)?(?:CheckOutcome::k\w+|outcome)\b'  # {"exact", CheckOutcome::kPass, ...}
                  r'|check\.name = "([a-z]+)"'
                  r'|constexpr const char\* kName = "([a-z]+)"'
                  r'|[Ff]indings_?(?: findings)?\("([a-z]+)", '  # the collector of the update check
                  r'|AddName\(record\.caught_by, "([a-z]+)"\)')
LISTS = {"judge.cc": r'for \(const char\* name :\s+\{(.*?)\}\)', "guard.cc": r'Demand\(("[a-z]+")'}


def made():
    return {next(filter(None, groups)) for text in SOURCES.values() for groups in MADE.findall(text)}


def rows():
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in DOCUMENT.splitlines() if line.startswith("| `")]


class Checks(unittest.TestCase):
    def test_are_those_of_the_code_and_of_the_document_each_once(self):
        names = [row[0].strip("`") for row in rows()]
        self.assertEqual(len(names), len(set(names)))
        self.assertEqual(set(names), made())

    def test_say_what_they_compare_and_what_they_cannot_see(self):
        for row in rows():
            self.assertEqual(len(row), 4, row)
            self.assertTrue(all(row), row)

    def test_of_other_lists_of_the_code_are_among_them(self):
        for file, pattern in LISTS.items():
            found = {name for part in re.findall(pattern, SOURCES[file], re.DOTALL) for name in re.findall(r'"([a-z]+)"', part)}
            self.assertGreater(len(found), 8, file)
            self.assertLessEqual(found, made(), file)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
