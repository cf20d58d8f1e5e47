# SPDX-License-Identifier: Apache-2.0
"""Tests of apply_edits.py: what is refused, with which words, and what the copies look like. Compiles nothing (testing/ does)."""

import importlib.util
import pathlib
import re
import tempfile
import unittest

spec = importlib.util.spec_from_file_location("apply_edits", pathlib.Path(__file__).with_name("apply_edits.py"))
apply_edits = importlib.util.module_from_spec(spec)
spec.loader.exec_module(apply_edits)

HEAD = "id: T1\ntitle: a title\nexpect: exact: a verdict\n"


def block(original, replacement, kind="statement", file="engine/sum.cc"):
    indent = lambda text: "".join("    %s\n" % line for line in text.split("\n"))
    return "\nfile: %s\nkind: %s\noriginal:\n%sreplacement:\n%s" % (file, kind, indent(original), indent(replacement))


def defect(text, path="T1.edit"):
    return apply_edits.parse(text, path)


class Parse(unittest.TestCase):
    def test_keeps_text_exactly_and_drops_trailing_blank_lines(self):
        parsed = defect(HEAD + block("a;\n\n  b;", "c;") + "\n\n")
        self.assertEqual("a;\n\n  b;", parsed.edits[0].original)
        self.assertEqual("c;", parsed.edits[0].replacement)

    def test_remembers_the_line_of_the_replacement(self):
        text = HEAD + block("a;", "c;")
        self.assertEqual("    c;", text.split("\n")[defect(text).edits[0].replacement_line - 1])

    def test_a_family_is_exact_unless_it_is_named(self):
        self.assertEqual("exact", defect(HEAD + block("a;", "b;")).family)
        self.assertEqual("gpt2", defect(HEAD + "family: gpt2\n" + block("a;", "b;")).family)

    def test_a_hypothesis_is_optional_and_reaches_the_table(self):
        self.assertEqual("", defect(HEAD + block("a;", "b;")).hypothesis)
        named = defect(HEAD + "hypothesis: sign_flipped\n" + block("a;", "b;"))
        self.assertEqual("sign_flipped", named.hypothesis)
        self.assertIn('"exact", "sign_flipped", &switched_on<"T1">', apply_edits.table([named]))

    def test_hypotheses_are_those_of_the_diagnosis(self):
        source = (pathlib.Path(__file__).parents[1] / "diagnosis/hypothesis.cc").read_text()
        self.assertEqual(apply_edits.HYPOTHESES, tuple(re.findall(r'^\s+\{"([a-z_]+)"', source, re.MULTILINE)))

    def test_several_checks_may_be_expected(self):
        text = HEAD.replace("exact: a verdict", "gradient, loss: tensor a.weight")
        self.assertEqual("gradient, loss: tensor a.weight", defect(text + block("a;", "b;")).expect)

    def test_replacement_may_be_empty_for_a_statement(self):
        self.assertEqual("", defect(HEAD + "\nfile: x.cc\nkind: statement\noriginal:\n    a;\nreplacement:\n").edits[0].replacement)

    def test_refuses(self):
        good = block("a;", "b;")
        for what, text, words in [
            ("unknown field", HEAD + "severity: high\n" + good, "unknown field 'severity'"),
            ("no field", HEAD + "nonsense\n" + good, "not a field: 'nonsense'"),
            ("missing head", "id: T1\ntitle: a\n" + good, "field 'expect' is missing"),
            ("missing block field", HEAD + "\nfile: x.cc\nkind: statement\noriginal:\n    a;\n", "field 'replacement'"),
            ("field given twice", HEAD + "title: b\n" + good, "field 'title' is given twice"),
            ("bad hypothesis", HEAD + "hypothesis: bad_luck\n" + good, "hypothesis 'bad_luck' is not known"),
            ("empty field", "id:\n" + good, "field 'id' is empty"),
            ("no edit", HEAD, "no edit"),
            ("kind before file", HEAD + "kind: statement\n", "comes before the first 'file'"),
            ("bad kind", HEAD + block("a;", "b;", kind="line"), "kind 'line' is neither"),
            ("bad id", HEAD.replace("T1", "t-1") + good, "id 't-1' is not"),
            ("id and file name differ", HEAD.replace("T1", "T2") + good, "must be called T2.edit"),
            ("quote in title", HEAD.replace("a title", 'a "title"') + good, "holds a tab, quote or backslash"),
            ("text on the field's line", HEAD + "\nfile: x.cc\nkind: statement\noriginal: a;\n", "starts on the next line"),
            ("no check is expected", HEAD.replace("exact: ", "") + good, "begins with 'a verdict', not with checks and a colon"),
            ("an unknown check is expected", HEAD.replace("exact:", "exact, luck:") + good, "begins with 'luck'"),
            ("unknown family", HEAD + "family: bert\n" + good, "none of exact, gpt2, gpt2/bias"),
            ("empty original", HEAD + "\nfile: x.cc\nkind: statement\noriginal:\nreplacement:\n    a;\n", "original text is empty"),
            ("nothing changed", HEAD + block("a;", "a;"), "are the same text"),
            ("expression of two lines", HEAD + block("a", "b +\nc", kind="expression"), "is one line"),
        ]:
            with self.subTest(what):
                with self.assertRaises(apply_edits.EditError) as raised:
                    defect(text)
                self.assertIn(words, str(raised.exception))
                self.assertIn("T1.edit", str(raised.exception))


class Apply(unittest.TestCase):
    SOURCE = "int Sum() {\n  x += 1;\n  y = x + 2;\n  return y;\n}\n"

    def apply(self, *texts, source=SOURCE, file="engine/sum.cc"):
        return apply_edits.apply(source, file, [defect(text, "T%d.edit" % (i + 1)) for i, text in enumerate(texts)])

    def test_statement_keeps_both_texts_and_the_line_numbers(self):
        out = self.apply(HEAD + block("x += 1;", "x = 1;"))
        self.assertEqual(
            '#include "conformance/defects/switch.h"\n#line 1 "engine/sum.cc"\nint Sum() {\n'
            '  if (::plumbline::defects::Enabled<"T1">()) {\n#line 10 "T1.edit"\nx = 1;\n} else {\n'
            '#line 2 "engine/sum.cc"\nx += 1;\n}\n#line 2 "engine/sum.cc"\n\n  y = x + 2;\n  return y;\n}\n', out)

    def test_expression_adds_no_line(self):
        out = self.apply(HEAD + block("x + 2", "x", kind="expression"))
        self.assertIn('y = (::plumbline::defects::Enabled<"T1">() ? (x) : (x + 2));\n', out)
        self.assertEqual(self.SOURCE.count("\n") + 2, out.count("\n"))

    def test_file_without_edits_is_unchanged_but_for_its_name(self):
        self.assertEqual('#line 1 "engine/other.cc"\n' + self.SOURCE, self.apply(HEAD + block("x += 1;", ""), file="engine/other.cc"))

    def test_two_defects_and_two_places_in_one_file(self):
        out = self.apply(HEAD + block("x += 1;", "") + block("return y;", "return 0;"),
                         HEAD.replace("T1", "T2") + block("x + 2", "x", kind="expression"))
        self.assertEqual(2, out.count('Enabled<"T1">'))
        self.assertEqual(1, out.count('Enabled<"T2">'))

    def test_adjacent_edits_do_not_overlap(self):
        out = self.apply(HEAD + block("x += 1;", "") + block("\n  y = x + 2;", ""))
        self.assertEqual(2, out.count('Enabled<"T1">'))

    def test_refuses(self):
        for what, texts, words in [
            ("no match", [HEAD + block("x -= 1;", "")], "edit T1: its original text occurs 0 times in engine/sum.cc"),
            ("space differs", [HEAD + block("x  += 1;", "")], "occurs 0 times"),
            ("two matches", [HEAD + block("x", "y", kind="expression")], "occurs 2 times in engine/sum.cc"),
            ("same place", [HEAD + block("x += 1;", ""), HEAD.replace("T1", "T2") + block("x += 1;", "x = 2;")], "edit T2 overlaps edit T1"),
            ("partly the same place", [HEAD + block("x += 1;\n  y = x", ""), HEAD.replace("T1", "T2") + block("y = x + 2;", "")],
             "overlaps"),
            ("inside", [HEAD + block("y = x + 2;", "") + block("x + 2", "x", kind="expression")], "edit T1 overlaps edit T1"),
        ]:
            with self.subTest(what):
                with self.assertRaises(apply_edits.EditError) as raised:
                    self.apply(*texts)
                self.assertIn(words, str(raised.exception))

    def test_counts_overlapping_occurrences(self):
        with self.assertRaises(apply_edits.EditError) as raised:
            self.apply(HEAD + block("aa", "b", kind="expression"), source="aaa")
        self.assertIn("occurs 2 times", str(raised.exception))


class Files(unittest.TestCase):
    """What needs a folder: ids over several files, and the check against BUILD files."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.root = pathlib.Path(self.folder.name)

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return str(path)

    def check_fails(self, build, words, edit_file="engine/sum.cc"):
        self.write("engine/BUILD", 'load("//x:y.bzl", "engine_library")\n' + build)
        self.write("engine/sum.cc", "")
        self.write("engine/sum.h", "")
        edit = self.write("T1.edit", HEAD + block("a", "b", file=edit_file))
        if not words:
            return apply_edits.check(self.root, apply_edits.read([edit]))
        with self.assertRaises(apply_edits.EditError) as raised:
            apply_edits.check(self.root, apply_edits.read([edit]))
        self.assertIn(words, str(raised.exception))

    def test_ids_are_ordered_as_numbers_and_unique(self):
        paths = [self.write("%s.edit" % i, HEAD.replace("T1", i) + block("a", "b")) for i in ["G10", "G2", "A3"]]
        self.assertEqual(["A3", "G2", "G10"], [d.id for d in apply_edits.read(paths)])
        paths.append(self.write("again/G2.edit", HEAD.replace("T1", "G2") + block("a", "b")))
        with self.assertRaises(apply_edits.EditError) as raised:
            apply_edits.read(paths)
        self.assertIn("id G2 is also in", str(raised.exception))

    def test_check_accepts_a_listed_source(self):
        self.check_fails('[engine_library(name = n, srcs = ["sum.cc"]) for n in ["sum"]]', None)

    def test_check_refuses_a_file_that_is_not_listed(self):
        self.check_fails('engine_library(name = "sum", srcs = ["other.cc"])', "engine/sum.cc is not a .cc in the srcs of an engine_library")
        self.check_fails('cc_library(name = "sum", srcs = ["sum.cc"])', "engine/sum.cc is not a .cc in the srcs of an engine_library")

    def test_check_refuses_a_header_and_a_file_that_does_not_exist(self):
        self.check_fails('engine_library(name = "sum", srcs = ["sum.h"])', "engine/sum.h is not a .cc", edit_file="engine/sum.h")
        self.check_fails('engine_library(name = "sum", srcs = ["gone.cc"])', "no file engine/gone.cc", edit_file="engine/gone.cc")

    def test_check_refuses_a_twin_that_would_link_plain_code(self):
        both = 'engine_library(name = "sum", srcs = ["sum.cc"])\nengine_library(name = "user", %s)'
        self.check_fails(both % 'deps = [":sum"]', "list it in engine_deps")
        self.check_fails(both % 'deps = ["//engine:sum"]', "list it in engine_deps")
        self.check_fails(both % 'engine_deps = ["//contract:trace"]', "is not an engine_library")
        self.check_fails(both % 'engine_deps = ["//engine:sum"], deps = ["//contract:trace"]', None)

    def test_main_prints_the_error_and_fails(self):
        edit = self.write("T1.edit", HEAD + block("a", "b"))
        self.assertEqual(1, apply_edits.main(["check", str(self.root), edit]))


if __name__ == "__main__":
    unittest.main()
