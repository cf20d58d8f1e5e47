# SPDX-License-Identifier: Apache-2.0
"""Every key that the parser of configs names is in docs/config.md with its status, and the other way round.

Usage: config_keys_test.py CONFIG_MD PARSER_CC...
It reads the parser's texts: lists of keys in arrays, in tables, and in calls of AllowOnly and std::to_array. A list that it
does not know fails it, so a new object of a config cannot be forgotten. What the keys do is for
config_document_test.cc and known_keys_test.cc.
"""

import pathlib
import re
import sys
import unittest

DOCUMENT = pathlib.Path(sys.argv[1])
PARSER = "".join(pathlib.Path(path).read_text() for path in sys.argv[2:])

# Array -> path of the object whose keys it holds; all of them are supported.
ARRAYS = {
    "kBuiltKeys": "",
    "kZeroKeys": "zero_optimization.",
}
# Table of {object, name, ...} -> what becomes of its keys; and the section of the document that has them.
TABLES = {"kFixedKeys": "fixed", "kHintKeys": "hint", "kUnbuiltKeys": "unsupported"}
SECTIONS = {"Supported": "supported", "Fixed": "fixed", "Hints": "hint", "Known and unsupported": "unsupported"}
# (function, keys' owner in it) -> path. The owner is the variable on which AllowOnly or CheckKeys is called.
LISTS = {
    ("ParseAdamW", "params"): "optimizer.params.",
    ("ParseSgd", "params"): "optimizer.params.",
    ("ParseAdam", "params"): "optimizer.params.",
    ("ParseLion", "params"): "optimizer.params.",
    ("ParseLamb", "params"): "optimizer.params.",
    ("ParseOptimizer", "optimizer"): "optimizer.",
    ("ParseOptimizer", "params"): "optimizer.params.",
    ("ParseGroups", "entry"): "param_groups[].",
    ("ParseAdaptiveClipping", "clipping"): "adaptive_clipping.",
    ("ParseSchedule", "scheduler"): "scheduler.",
    ("ParseWarmupLr", "params"): "scheduler.params.",
    ("ParseWarmupDecayLr", "params"): "scheduler.params.",
    ("ParseWarmupCosineLr", "params"): "scheduler.params.",
    ("ParseOneCycle", "params"): "scheduler.params.",
    ("ParseRunConfig", "mesh"): "mesh.",
    ("ParseStorage", "bf16"): "bf16.",
    ("ParseStorage", "fp64"): "fp64.",
    ("ParseFp16", "fp16"): "fp16.",
}
ARRAY = re.compile(r"constexpr std::string_view (k\w*Keys)\[\] = \{(.*?)\};", re.DOTALL)
LIST = re.compile(r"(\w+)(?:\.|->)AllowOnly\(\{(.*?)\}\)|"
                  r"CheckKeys\(\s*\*?(\w+),\s+std::to_array<std::string_view>\(\s*\{(.*?)\}\)", re.DOTALL)
TABLE = re.compile(r"constexpr \w+ (k\w*Keys)\[\] = \{\n(.*?)\n\};", re.DOTALL)
ENTRY = re.compile(r'^    \{"([^"]*)", "([^"]+)"', re.MULTILINE)
FUNCTION = re.compile(r"^[\w:<>&]+(?: [\w:<>&]+)* (\w+)\([^;{]*\) \{$", re.MULTILINE)
WORD = re.compile(r'"([^"]*)"')


def parser_keys(text):
    """Path of each key -> its status. KeyError for a list or table that is not known above, ValueError for a key that is
    in two of them."""
    keys = {}

    def add(path, status):
        if keys.setdefault(path, status) != status:
            raise ValueError(f"{path} is {keys[path]} and {status}")

    for name, body in ARRAY.findall(text):
        for key in WORD.findall(body):
            add(ARRAYS[name] + key, "supported")
    for name, body in TABLE.findall(text):
        for path, key in ENTRY.findall(body):
            add(f"{path}.{key}" if path else key, TABLES[name])
    functions = [(match.start(), match.group(1)) for match in FUNCTION.finditer(text)]
    for match in LIST.finditer(text):
        function = [name for start, name in functions if start < match.start()][-1]
        path = LISTS[function, match.group(1) or match.group(3)]
        for key in WORD.findall(match.group(2) or match.group(4) or ""):
            add(path + key, "supported")
    return keys


def document_keys(text):
    """The same of the document's tables. ValueError for a key that is there twice or under another title than its status."""
    keys = {}
    for section, status in SECTIONS.items():
        body = re.search(rf"^## {section}\n(.*?)^## ", text, re.DOTALL | re.MULTILINE).group(1)
        columns = [name.strip() for name in re.search(r"^\| key .*$", body, re.MULTILINE).group().split("|")]
        for row in re.findall(r"^\| `.*$", body, re.MULTILINE):
            cells = [cell.strip() for cell in row.split("|")]
            key = cells[1].strip("`")
            if key in keys:
                raise ValueError(f"{key} is there twice")
            if "used by" in columns:
                used_by = cells[columns.index("used by")]
                if (used_by == "unsupported") != (status == "unsupported"):
                    raise ValueError(f"{key} is {used_by} under {section}")
            keys[key] = status
    return keys


class Keys(unittest.TestCase):
    def test_of_parser_and_document_are_the_same_with_the_same_status(self):
        parsed, documented = parser_keys(PARSER), document_keys(DOCUMENT.read_text())
        self.assertEqual(sorted(parsed.keys() - documented.keys()), [], "missing in the document")
        self.assertEqual(sorted(documented.keys() - parsed.keys()), [], "unknown to the parser")
        self.assertEqual(parsed, documented)

    def test_are_read_from_every_list_of_the_parser(self):
        text = PARSER
        self.assertEqual({name for name, _ in ARRAY.findall(text)}, set(ARRAYS))
        self.assertEqual({name for name, _ in TABLE.findall(text)}, set(TABLES))
        for name, body in TABLE.findall(text):
            self.assertEqual(len(ENTRY.findall(body)), len(body.splitlines()), name)
        # Each call is read as a list, but for those that are given an array, or the names of a table.
        calls = len(re.findall(r"\bAllowOnly\(|\bCheckKeys\(", text))
        with_names = len(re.findall(r'CheckKeys\(\w+, (?:k\w+, "|FixedNames\()', text))
        self.assertEqual(len(LIST.findall(text)) + with_names, calls)


class Differences(unittest.TestCase):
    """Each kind of difference between the two is seen."""

    def setUp(self):
        self.parser, self.document = PARSER, DOCUMENT.read_text()

    def check(self, parser, document, difference):
        self.assertTrue(parser != self.parser or document != self.document, "nothing was changed")
        self.assertEqual(set(parser_keys(parser).items()) ^ set(document_keys(document).items()), set(difference))

    def test_a_key_that_only_the_parser_has(self):
        self.check(self.parser.replace('"stage",', '"stage", "stage4_extra",'), self.document,
                   [("zero_optimization.stage4_extra", "supported")])
        self.check(self.parser.replace('    {"", "timers"},', '    {"", "timers"},\n    {"", "fp8"},'), self.document,
                   [("fp8", "unsupported")])
        self.check(self.parser.replace('    {"", "amp", D', '    {"mesh", "amp", Only, "1"},\n    {"", "amp", D'),
                   self.document, [("mesh.amp", "fixed")])
        self.check(self.parser.replace('    {"", "dump_state"', '    {"bf16", "tile", Flag},\n    {"", "dump_state"'),
                   self.document, [("bf16.tile", "hint")])
        self.check(self.parser.replace('{"match", "lr"', '{"match", "eps", "lr"'), self.document,
                   [("param_groups[].eps", "supported")])
        self.check(self.parser.replace('({"data"})', '({"data", "replica"})'), self.document, [("mesh.replica", "supported")])

    def test_a_key_that_only_the_document_has(self):
        row = "| `mesh.replica` | an integer | `1` | exact | |\n"
        self.check(self.parser, self.document.replace("| `mesh.data`", row + "| `mesh.data`"), [("mesh.replica", "supported")])

    def test_a_key_that_has_another_status(self):
        moved = self.parser.replace('"train_batch_size",', '"train_batch_size", "timers",').replace('    {"", "timers"},\n', "")
        self.check(moved, self.document, [("timers", "supported"), ("timers", "unsupported")])
        moved = self.parser.replace('    {"", "dump_state", Flag},\n', "").replace(
            '    {"", "amp", D', '    {"", "dump_state", AnyFlag},\n    {"", "amp", D')
        self.check(moved, self.document, [("dump_state", "fixed"), ("dump_state", "hint")])

    def test_a_key_with_two(self):
        with self.assertRaises(ValueError):
            parser_keys(self.parser.replace('    {"", "amp", D', '    {"", "timers", AnyFlag},\n    {"", "amp", D'))

    def test_a_list_that_nobody_knows(self):
        with self.assertRaises(KeyError):
            parser_keys(self.parser + 'constexpr std::string_view kMoreKeys[] = {"more"};')
        with self.assertRaises(KeyError):
            parser_keys(self.parser + 'constexpr FixedKey kMoreKeys[] = {\n    {"", "more", AnyFlag},\n};')
        with self.assertRaises(KeyError):
            parser_keys(self.parser + 'void ParseMore(const JsonValue& more) {\n  more.AllowOnly({"key"});\n}\n')

    def test_a_row_that_is_there_twice_or_contradicts_its_table(self):
        with self.assertRaises(ValueError):
            document_keys(self.document.replace("| `mesh.data`", "| `bf16` | an object | `{}` | exact | |\n| `mesh.data`"))
        with self.assertRaises(ValueError):
            document_keys(self.document.replace("| `timers` | object | unsupported", "| `timers` | object | gpt2"))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
