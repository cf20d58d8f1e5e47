# SPDX-License-Identifier: Apache-2.0
"""Tests of mutant_list.py: where entries are found again, what copies look like, what is refused. Compiles nothing."""

import contextlib
import importlib.util
import io
import pathlib
import tempfile
import unittest

spec = importlib.util.spec_from_file_location("mutant_list", pathlib.Path(__file__).with_name("mutant_list.py"))
mutant_list = importlib.util.module_from_spec(spec)
spec.loader.exec_module(mutant_list)

FILE = "kernels/sum.cc"
SOURCE = """#include "kernels/sum.h"
int Sum(int x) {
  x += 1;
  if (x > 2) x = a[x + 1]; else x = 0;
  x += 1;
  return x;
}
"""


def mutant(original, replacement, source=SOURCE, at=0, form="expression", file=FILE):
    """An entry for the `at`-th occurrence of a text in the source."""
    begin = -1
    for _ in range(at + 1):
        begin = source.index(original, begin + 1)
    anchor, column, nth = mutant_list.anchor_at(source, begin)
    return mutant_list.Mutant(mutant_list.id_of(file, anchor, column, nth, original, replacement), file,
                              source.count("\n", 0, begin) + 1, "operator", form, original, replacement, "any", anchor, column, nth)


def enabled(entry):
    return '::plumbline::defects::Enabled<"%s">()' % entry.id


def applied(*mutants, source=SOURCE, file=FILE):
    text, stale = mutant_list.apply(source, file, list(mutants))
    return text, stale


class Locate(unittest.TestCase):
    def places(self, source, *mutants):
        return [begin for begin, _, _ in mutant_list.locate(source, mutants)[0]]

    def test_lines_of_the_same_text_are_told_apart(self):
        self.assertEqual([SOURCE.index("x += 1"), SOURCE.rindex("x += 1")],
                         self.places(SOURCE, mutant("x += 1", "x -= 1"), mutant("x += 1", "x -= 1", at=1)))

    def test_a_change_elsewhere_in_the_file_leaves_an_entry_where_it_was(self):
        changed = SOURCE.replace("int Sum", "// Sums.\nint Sum").replace("  return", "    return")
        self.assertEqual([changed.index("x > 2")], self.places(changed, mutant("x > 2", "x >= 2")))
        self.assertEqual([changed.index("return x;")], self.places(changed, mutant("return x;", "", form="statement")))

    def test_an_entry_whose_line_is_gone_or_other_is_stale(self):
        for changed in [SOURCE.replace("x > 2", "x > 3"), SOURCE.replace("x += 1;", "x += 2;"), ""]:
            entry = mutant("x > 2", "x >= 2") if "x > 3" in changed else mutant("x += 1", "x -= 1", at=1)
            self.assertEqual(([], [entry]), mutant_list.locate(changed, [entry]))

    def test_the_second_of_two_equal_lines_is_stale_when_one_is_left(self):
        entry = mutant("x += 1", "x -= 1", at=1)
        self.assertEqual([entry], mutant_list.locate(SOURCE.replace("  x += 1;\n", "", 1), [entry])[1])


class Apply(unittest.TestCase):
    def test_an_expression_becomes_a_choice(self):
        entry = mutant("x > 2", "x >= 2")
        self.assertIn("if ((%s ? (x >= 2) : (x > 2))) x" % enabled(entry), applied(entry)[0])

    def test_a_statement_is_skipped_and_an_else_stays_with_its_if(self):
        entry = mutant("x = a[x + 1];", "", form="statement")
        self.assertIn("if (x > 2) { if (!%s) { x = a[x + 1]; } } else x = 0;" % enabled(entry), applied(entry)[0])

    def test_changes_of_one_place_share_one_choice(self):
        first, second = sorted([mutant("x > 2", "x >= 2"), mutant("x > 2", "x <= 2")])
        self.assertIn("(%s ? (%s) : %s ? (%s) : (x > 2))" % (enabled(first), first.replacement, enabled(second), second.replacement),
                      applied(first, second)[0])

    def test_inner_changes_stand_in_the_original_branch_of_outer_ones(self):
        outer, middle, inner = mutant("x = a[x + 1];", "", form="statement"), mutant("x + 1", "(x + 1) * 0"), mutant("1", "2", at=1)
        self.assertIn("{ if (!%s) { x = a[(%s ? ((x + 1) * 0) : (x + (%s ? (2) : (1))))]; } }" % (
            enabled(outer), enabled(middle), enabled(inner)), applied(inner, outer, middle)[0])

    def test_of_a_statement_and_an_expression_that_begin_together_the_statement_is_outside(self):
        statement, expression = mutant("x += 1;", "", form="statement"), mutant("x += 1", "x -= 1")
        self.assertIn("{ if (!%s) { (%s ? (x -= 1) : (x += 1)); } }" % (enabled(statement), enabled(expression)),
                      applied(expression, statement)[0])

    def test_lines_keep_their_numbers(self):
        text, _ = applied(mutant("x > 2", "x >= 2"), mutant("x += 1;", "", form="statement"))
        head = '#include "conformance/defects/switch.h"\n#line 1 "kernels/sum.cc"\n'
        self.assertTrue(text.startswith(head))
        self.assertEqual(SOURCE.count("\n"), text[len(head):].count("\n"))

    def test_headers_of_the_engine_are_included_as_copies_and_others_are_not(self):
        text, _ = applied(source='#include <span>\n#include "kernels/a/b.h"\n#include "conformance/contract/error.h"\n')
        self.assertIn('#include <span>\n#include "kernels/a/mutants/b.h"\n#include "conformance/contract/error.h"\n', text)

    def test_a_header_is_included_once(self):
        text, _ = applied(source="#pragma once\nint a;\n", file="kernels/sum.h")
        self.assertEqual("#pragma once\n#line 1 \"kernels/sum.h\"\n\nint a;\n", text)

    def test_stale_entries_are_left_out_and_told(self):
        entry = mutant("x > 2", "x >= 2")
        text, stale = applied(entry, source=SOURCE.replace("x > 2", "x > 3"))
        self.assertEqual([entry], stale)
        self.assertNotIn("Enabled", text)

    def test_mutants_that_overlap_without_nesting_are_refused(self):
        source = "y = a + b + c;\n"
        with self.assertRaises(mutant_list.ListError):
            applied(mutant("a + b", "a", source=source), mutant("b + c", "b", source=source), source=source)


class Lists(unittest.TestCase):
    def test_an_id_depends_on_the_change_and_its_text_alone(self):
        moved = "// A line more.\n" + SOURCE
        self.assertEqual(mutant("x > 2", "x >= 2").id, mutant("x > 2", "x >= 2", source=moved).id)
        ids = {mutant("x > 2", "x >= 2").id, mutant("x > 2", "x <= 2").id, mutant("x += 1", "x").id, mutant("x += 1", "x", at=1).id}
        self.assertEqual(4, len(ids))

    def test_what_is_written_is_read(self):
        entries = [mutant("x > 2", 'f("\\t")'), mutant("x += 1;", "", form="statement")]
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "list"
            mutant_list.write(path, entries)
            self.assertEqual(entries, mutant_list.read(path))
            mutant_list.write(path, entries + entries[:1])
            with self.assertRaisesRegex(mutant_list.ListError, "list:3: id .* is there twice"):
                mutant_list.read(path)
            for text, words in [("{", "no JSON"), ('{"id": "m1"}', "exactly the fields"), ("[]", "exactly the fields")]:
                path.write_text(text)
                with self.assertRaisesRegex(mutant_list.ListError, "list:1: .*" + words):
                    mutant_list.read(path)

    def test_the_table_escapes_what_cpp_would_read_otherwise(self):
        text = mutant_list.table([mutant("x > 2", 'f("\\t")')])
        self.assertIn('-> f(\\"\\\\t\\")", "any: of the checks", "any", "", &switched_on<"m', text)
        self.assertIn("return {};", mutant_list.table([]))

    def check(self, changed):
        entries = [mutant("x += 1", "x -= 1", at=at) for at in (0, 1)] + [mutant("x > 2", "x %s 2" % op) for op in
                                                                           ("<", "<=", ">=", "==", "!=", "+", "-", "*", "/")]
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()) as out:
            path = pathlib.Path(folder) / FILE
            path.parent.mkdir()
            path.write_text(changed)
            return mutant_list.check(folder, entries), out.getvalue()

    def test_one_stale_entry_in_eleven_is_told_and_allowed(self):
        status, out = self.check(SOURCE.replace("  x += 1;\n", "", 1))
        self.assertEqual(0, status)
        self.assertEqual(1, out.count("stale: "))
        self.assertIn("10 of 11 mutants fit the sources", out)

    def test_more_stale_entries_or_a_missing_file_fail(self):
        for changed in [SOURCE.replace("x += 1;", "x += 2;"), ""]:
            status, out = self.check(changed)
            self.assertEqual(1, status)
            self.assertIn("make the list anew", out)

    def test_an_empty_list_fails(self):
        with contextlib.redirect_stdout(io.StringIO()):
            self.assertEqual(1, mutant_list.check(".", []))


if __name__ == "__main__":
    unittest.main(verbosity=2)
