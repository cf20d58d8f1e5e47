# SPDX-License-Identifier: Apache-2.0
"""Tests of mutant_sites.py: what is found of each kind, and what is passed over, with its reason. Needs libclang."""

import importlib.util
import pathlib
import unittest

spec = importlib.util.spec_from_file_location("mutant_sites", pathlib.Path(__file__).with_name("mutant_sites.py"))
mutant_sites = importlib.util.module_from_spec(spec)
spec.loader.exec_module(mutant_sites)


def find(text):
    """({(kind, original, replacement)}, {reason: count}) of a source."""
    sites, skipped = mutant_sites.find("source.cc", text, ["-x", "c++", "-std=c++20", "-w"])
    for site in sites:
        assert site.form == ("statement" if site.kind == "statement" else "expression")
    return {(site.kind, text[site.begin:site.end], site.replacement) for site in sites}, dict(skipped)


def changes(text, kind):
    return {(original, replacement) for of, original, replacement in find(text)[0] if of == kind}


class Kinds(unittest.TestCase):
    def test_operators_become_others_or_leave_an_operand_out(self):
        for operator, others in [("+", "-"), ("-", "+"), ("*", "/"), ("/", "*"), ("%", "/")]:
            text = "int a %s b" % operator
            source = "int f(int a, int b) { return a %s b; }" % operator
            self.assertEqual({("a %s b" % operator, "a %s b" % others), ("a %s b" % operator, "a")}, changes(source, "operator"), text)

    def test_logic_becomes_the_other_or_either_side(self):
        self.assertEqual({("a && b", "a || b"), ("a && b", "a"), ("a && b", "b")},
                         changes("bool f(bool a, bool b) { return a && b; }", "operator"))

    def test_signs_and_negations_are_dropped(self):
        self.assertEqual({("-a", "a")}, changes("float f(float a) { return -a; }", "operator"))
        self.assertEqual({("!a", "a")}, changes("bool f(bool a) { return !a; }", "condition"))

    def test_compound_assignments_become_others_or_plain(self):
        self.assertEqual({("a += 3", "a -= 3"), ("a += 3", "a = 3")}, changes("void f(int& a) { a += 3; }", "operator"))

    def test_steps_become_opposite_but_for_those_of_a_loop(self):
        self.assertEqual({("++a", "--a")}, changes("void f(int& a) { ++a; }", "operator"))
        found, skipped = find("void f(int n) { for (int i = 0; i < n; ++i) {} }")
        self.assertFalse(any(original == "++i" for _, original, _ in found))
        self.assertEqual(1, skipped["step of a loop: it would never end"])

    def test_comparisons_move_their_border_and_turn_around(self):
        for operator, others in [("<", ["<=", ">="]), ("<=", ["<", ">"]), (">", [">=", "<="]), (">=", [">", "<"]), ("==", ["!="]),
                                 ("!=", ["=="])]:
            self.assertEqual({("a %s b" % operator, "a %s b" % other) for other in others},
                             changes("bool f(int a, int b) { return a %s b; }" % operator, "comparison"))

    def test_constants_move_by_one_and_zero_only_up(self):
        self.assertEqual({("7u", "8u"), ("7u", "6u")}, changes("unsigned f() { return 7u; }", "constant"))
        self.assertEqual({("0", "1")}, changes("int f() { return 0; }", "constant"))
        self.assertEqual({("0x1F", "32"), ("0x1F", "30")}, changes("int f() { return 0x1F; }", "constant"))
        self.assertEqual({("1'000", "1001"), ("1'000", "999")}, changes("int f() { return 1'000; }", "constant"))
        self.assertEqual({("true", "false")}, changes("bool f() { return true; }", "constant"))

    def test_real_constants_change_by_a_factor(self):
        self.assertEqual({("0.5f", "0.5f * 2"), ("0.5f", "0.5f * 1.01f")}, changes("float f() { return 0.5f; }", "constant"))
        self.assertEqual({("0.0", "1.0")}, changes("double f() { return 0.0; }", "constant"))
        self.assertEqual({("0x1p-8", "0x1p-8 * 2"), ("0x1p-8", "0x1p-8 * 1.01")}, changes("double f() { return 0x1p-8; }", "constant"))

    def test_an_index_moves_and_is_dropped(self):
        self.assertEqual({("i", "(i) + 1"), ("i", "(i) * 0")}, changes("int f(int* a, int i) { return a[i]; }", "index"))
        of_class = "struct A { int& operator[](long i); };"
        self.assertEqual({("i", "(i) + 1"), ("i", "(i) * 0")}, changes(of_class + "int f(A a, long i) { return a[i]; }", "index"))

    def test_an_offset_of_a_pointer_is_dropped(self):
        self.assertEqual({("a + i", "a")}, changes("int* f(int* a, int i) { return a + i; }", "index"))

    def test_conditions_that_are_no_comparison_are_negated(self):
        self.assertEqual({("a", "!(a)")}, changes("int f(bool a, int b) { return a ? b : -b; }", "condition"))
        self.assertEqual({("g()", "!(g())")}, changes("bool g(); void f() { if (g()) { g(); } }", "condition"))
        self.assertEqual(set(), changes("int f(int a) { return a > 0 ? a : -a; }", "condition"))

    def test_statements_are_left_out_with_their_semicolon(self):
        source = "void g(int); void f(int a) { g(a) ; if (a > 1) a = 2; else g(3); for (;;) { g(4); break; } return; }"
        self.assertEqual({"g(a) ;", "if (a > 1) a = 2; else g(3);", "a = 2;", "g(3);", "for (;;) { g(4); break; }", "g(4);", "break;",
                          "return;"}, {original for original, _ in changes(source, "statement")})

    def test_in_a_template_types_may_be_unknown(self):
        source = "template <typename T> T f(T* a, int i) { return a[i] * a[i + 1]; }"
        self.assertIn(("operator", "a[i] * a[i + 1]", "a[i] / a[i + 1]"), find(source)[0])
        self.assertIn(("index", "i + 1", "(i + 1) * 0"), find(source)[0])


class PassedOver(unittest.TestCase):
    def none(self, source, *reasons):
        found, skipped = find(source)
        self.assertEqual(set(), found)
        self.assertEqual(set(reasons), set(skipped))

    def test_places_that_need_a_constant(self):
        self.none("static_assert(2 > 1);", "static_assert")
        self.none("enum E { kA = 3 };", "enumerator")
        self.none("constexpr int kA = 3;", "constexpr initialiser")
        self.none("constexpr int F(int a) { return a + 1; }", "constexpr function")
        self.none("template <int kN = 3> struct A {};", "template argument")
        self.none("int a[3];", "array bound")
        self.none("struct A { int a[2 + 1]; };", "array bound")
        self.none("int f(int a) { switch (a) { case 3: return a; } return a; }", "case label", "return of a value")

    def test_defaults_of_members(self):
        self.none("struct A { int a = 3; bool b{true}; double c = 1 + 2; };", "default of a member")

    def test_what_is_not_computed(self):
        self.none("unsigned long f(int a) { return sizeof(a + 1); }", "sizeof or alignof", "return of a value")

    def test_checks_that_only_throw(self):
        self.none("void Check(bool, const char*); void f(int a) { Check(a > 0, \"\"); }", "check that only throws")
        self.none("void Fail(int); void f(int a) { if (a > 3) Fail(1); }", "check that only throws")
        self.none("void f(int a) { if (a > 3) throw 1; }", "check that only throws")
        self.none("template <typename T> void f(T a) { Require(a, 2); }", "check that only throws")
        self.none("void RequireMore(int a) { a = 3; }", "function that only throws")

    def test_a_condition_that_guards_more_than_a_throw_is_changed(self):
        source = "void Fail(int); void f(int a) { if (a > 3) { a = 1; Fail(1); } }"
        self.assertIn(("comparison", "a > 3", "a >= 3"), find(source)[0])

    def test_macros(self):
        found, skipped = find("#define TWICE(x) ((x) * 2)\nint f(int a) { return TWICE(a) + 1; }")
        self.assertEqual({("constant", "1", "2"), ("constant", "1", "0")}, found)
        self.assertGreater(skipped["inside a macro"], 0)

    def test_overloaded_operators_and_what_is_no_number(self):
        _, skipped = find("struct A { A operator+(A) const; }; A f(A a) { return a + a; }")
        self.assertEqual(1, skipped["overloaded operator"])
        _, skipped = find("long f(int* a, int* b) { return a - b; }")
        self.assertEqual(1, skipped["operands that are no numbers"])

    def test_a_source_that_does_not_parse_is_refused(self):
        with self.assertRaisesRegex(ValueError, "source.cc does not parse: .*unknown type name 'nonsense'"):
            find("nonsense f();")


if __name__ == "__main__":
    unittest.main(verbosity=2)
