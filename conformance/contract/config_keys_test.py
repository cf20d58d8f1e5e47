# SPDX-License-Identifier: Apache-2.0
"""Every key that the parser of configs names is in docs/config.md with its status, and the other way round.

Usage: config_keys_test.py CONFIG_MD PARSER_CC...
It reads the parser's texts: lists of keys in arrays, and in calls of AllowOnly and std::to_array. A list that it does not
know fails it, so a new object of a config cannot be forgotten. What the keys do is config_document_test.cc's.
"""

import pathlib
import re
import sys
import unittest

DOCUMENT = pathlib.Path(sys.argv[1])
PARSER = "".join(pathlib.Path(path).read_text() for path in sys.argv[2:])

# Array -> path of the object whose keys it holds, and whether they are supported.
ARRAYS = {
    "kBuiltKeys": ("", True),
    "kUnbuiltKeys": ("", False),
    "kZeroKeys": ("zero_optimization.", True),
    "kUnbuiltZeroKeys": ("zero_optimization.", False),
    "kUnbuiltMeshKeys": ("mesh.", False),
    "kUnbuiltBf16Keys": ("bf16.", False),
    "kUnbuiltFp16Keys": ("fp16.", False),
    "kUnbuiltOptimizerKeys": ("optimizer.", False),
    "kUnbuiltParamKeys": ("optimizer.params.", False),
    "kUnbuiltScheduleKeys": ("scheduler.params.", False),
}
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
FUNCTION = re.compile(r"^[\w:<>&]+(?: [\w:<>&]+)* (\w+)\([^;{]*\) \{$", re.MULTILINE)
WORD = re.compile(r'"([^"]*)"')


def parser_keys(text):
    """Path of each key -> whether it is supported. KeyError for a list that is not known above."""
    keys = {}
    for name, body in ARRAY.findall(text):
        path, supported = ARRAYS[name]
        keys.update({path + key: supported for key in WORD.findall(body)})
    functions = [(match.start(), match.group(1)) for match in FUNCTION.finditer(text)]
    for match in LIST.finditer(text):
        function = [name for start, name in functions if start < match.start()][-1]
        path = LISTS[function, match.group(1) or match.group(3)]
        keys.update({path + key: True for key in WORD.findall(match.group(2) or match.group(4) or "")})
    return keys


def document_keys(text):
    """The same of the tables under "Supported" and "Known and unsupported". ValueError for a key that is there twice."""
    keys = {}
    for section in ("Supported", "Known and unsupported"):
        body = re.search(rf"^## {section}\n(.*?)^## ", text, re.DOTALL | re.MULTILINE).group(1)
        column = [name.strip() for name in re.search(r"^\| key .*$", body, re.MULTILINE).group().split("|")].index("used by")
        for row in re.findall(r"^\| `.*$", body, re.MULTILINE):
            cells = [cell.strip() for cell in row.split("|")]
            key, used_by = cells[1].strip("`"), cells[column]
            if key in keys:
                raise ValueError(f"{key} is there twice")
            if (used_by == "unsupported") != (section != "Supported"):
                raise ValueError(f"{key} is {used_by} under {section}")
            keys[key] = section == "Supported"
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
        # Each call is read as a list, but for the one that is given its keys.
        calls = len(re.findall(r"\bAllowOnly\(|\bCheckKeys\(", text))
        with_arrays = len(re.findall(r"CheckKeys\(\w+, k\w+, k\w+\)", text))
        self.assertEqual(len(LIST.findall(text)) + with_arrays, calls)


class Differences(unittest.TestCase):
    """Each kind of difference between the two is seen."""

    def setUp(self):
        self.parser, self.document = PARSER, DOCUMENT.read_text()

    def check(self, parser, document, difference):
        self.assertTrue(parser != self.parser or document != self.document, "nothing was changed")
        self.assertEqual(set(parser_keys(parser).items()) ^ set(document_keys(document).items()), set(difference))

    def test_a_key_that_only_the_parser_has(self):
        self.check(self.parser.replace('"stage",', '"stage", "stage4_extra",'), self.document,
                   [("zero_optimization.stage4_extra", True)])
        self.check(self.parser.replace('"amp",', '"amp", "fp8",'), self.document, [("fp8", False)])
        self.check(self.parser.replace('{"match", "lr"', '{"match", "eps", "lr"'), self.document,
                   [("param_groups[].eps", True)])
        self.check(self.parser.replace('({"data"})', '({"data", "replica"})'), self.document, [("mesh.replica", True)])

    def test_a_key_that_only_the_document_has(self):
        row = "| `mesh.replica` | an integer | `1` | exact | |\n"
        self.check(self.parser, self.document.replace("| `mesh.data`", row + "| `mesh.data`"), [("mesh.replica", True)])

    def test_a_key_that_is_built_but_not_said_to_be(self):
        moved = self.parser.replace('"train_batch_size",', '"train_batch_size", "amp",').replace('= {"amp",', "= {")
        self.check(moved, self.document, [("amp", True), ("amp", False)])

    def test_a_list_that_nobody_knows(self):
        with self.assertRaises(KeyError):
            parser_keys(self.parser + 'constexpr std::string_view kMoreKeys[] = {"more"};')
        with self.assertRaises(KeyError):
            parser_keys(self.parser + 'void ParseMore(const JsonValue& more) {\n  more.AllowOnly({"key"});\n}\n')

    def test_a_row_that_is_there_twice_or_contradicts_its_table(self):
        with self.assertRaises(ValueError):
            document_keys(self.document.replace("| `mesh.data`", "| `bf16` | an object | `{}` | exact | |\n| `mesh.data`"))
        with self.assertRaises(ValueError):
            document_keys(self.document.replace("| `amp` | object | unsupported", "| `amp` | object | gpt2"))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
