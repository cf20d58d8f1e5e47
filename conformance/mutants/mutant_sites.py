# SPDX-License-Identifier: Apache-2.0
"""Finds the places of a C++ file at which one small change makes a mutant, and says which change. Needs libclang.

find(path, text, arguments) parses the file that it would be compiled as, and returns the mutants and a count of the places
that were passed over, by reason. It knows the kinds of mutants; it compiles nothing, applies nothing and chooses nothing.
Kinds: operator, comparison, constant, condition (negated), index (moved by one, or dropped), statement (left out).
"""

import collections
import re

from clang import cindex
from clang.cindex import CursorKind as K
from clang.cindex import TypeKind as T

# A change of source: [begin, end) in bytes is replaced. `form` is how: a complete operand, or whole statements that are skipped.
Site = collections.namedtuple("Site", "begin end kind form replacement")

MAX_BYTES = 240  # of an original text: a mutant is to be read

COMPARISONS = {"<": ("<=", ">="), "<=": ("<", ">"), ">": (">=", "<="), ">=": (">", "<"), "==": ("!=",), "!=": ("==",)}
# "left" and "right" stand for one operand alone.
ARITHMETIC = {"+": ("-", "left"), "-": ("+", "left"), "*": ("/", "left"), "/": ("*", "left"), "%": ("/", "left")}
BITS = {"&": ("|",), "|": ("&",), "^": ("|",), "<<": (">>",), ">>": ("<<",)}
LOGIC = {"&&": ("||", "left", "right"), "||": ("&&", "left", "right")}
ASSIGNMENTS = {"+=": ("-=", "="), "-=": ("+=", "="), "*=": ("/=", "="), "/=": ("*=", "="), "%=": ("/=",), "|=": ("&=", "="),
               "&=": ("|=", "="), "^=": ("|=",), "<<=": (">>=",), ">>=": ("<<=",)}

# Functions that only throw. What they test is never true in a correct engine, so that a mutant in it would show nothing.
CHECKING = r"(Require\w*|Check|Check[A-Z]\w*|Fail|Validate)"
CHECKING_NAME = re.compile(CHECKING + "$")
CHECKING_CALL = re.compile(r"(\w+::)*" + CHECKING + r"\(")

STATEMENTS = (K.CALL_EXPR, K.BINARY_OPERATOR, K.COMPOUND_ASSIGNMENT_OPERATOR, K.UNARY_OPERATOR, K.UNEXPOSED_EXPR, K.CXX_DELETE_EXPR,
              K.IF_STMT, K.FOR_STMT, K.CXX_FOR_RANGE_STMT, K.WHILE_STMT, K.BREAK_STMT, K.CONTINUE_STMT, K.RETURN_STMT)
FUNCTIONS = (K.FUNCTION_DECL, K.CXX_METHOD, K.CONSTRUCTOR, K.DESTRUCTOR, K.FUNCTION_TEMPLATE, K.CONVERSION_FUNCTION)
ARITHMETIC_TYPES = (T.BOOL, T.CHAR_U, T.UCHAR, T.USHORT, T.UINT, T.ULONG, T.ULONGLONG, T.CHAR_S, T.SCHAR, T.SHORT, T.INT, T.LONG,
                    T.LONGLONG, T.FLOAT, T.DOUBLE, T.LONGDOUBLE)
UNKNOWN_TYPES = (T.DEPENDENT, T.UNEXPOSED, T.AUTO, T.INVALID)  # of a template's parameters


class Finder:
    def __init__(self, path, text, arguments):
        self.path, self.bytes = path, text.encode("utf-8")
        self.sites, self.skipped, self.seen = [], collections.Counter(), set()
        unit = cindex.Index.create().parse(path, args=arguments, unsaved_files=[(path, text)],
                                           options=cindex.TranslationUnit.PARSE_DETAILED_PROCESSING_RECORD)
        errors = [str(d) for d in unit.diagnostics if d.severity >= cindex.Diagnostic.Error]
        if errors:
            raise ValueError("%s does not parse: %s" % (path, errors[0]))
        self.macros = [self.extent(c) for c in unit.cursor.get_children()
                       if c.kind == K.MACRO_INSTANTIATION and self.is_here(c)]
        for child in unit.cursor.get_children():
            if self.is_here(child) and not child.kind.is_preprocessing():
                self.visit(child, None, "")

    def is_here(self, cursor):
        return cursor.location.file is not None and cursor.location.file.name == self.path

    def extent(self, cursor):
        return cursor.extent.start.offset, cursor.extent.end.offset

    def source(self, begin, end):
        return self.bytes[begin:end].decode("utf-8")

    def text_of(self, cursor):
        return self.source(*self.extent(cursor))

    # A reason why nothing below this cursor may be changed, or "".
    def barrier(self, cursor, parent):
        kind = cursor.kind
        # A bound that is no constant would make an array of variable length, which g++ takes.
        if parent is not None and parent.kind in (K.VAR_DECL, K.FIELD_DECL) and self.source(0, self.extent(cursor)[0]).rstrip().endswith("["):
            return "array bound"
        # Who makes one names every member: of 63 such defaults that were changed, 58 were equivalent (results/mutants.md).
        if parent is not None and parent.kind == K.FIELD_DECL and kind.is_expression():
            return "default of a member"
        if kind == K.STATIC_ASSERT:
            return "static_assert"
        if kind == K.ENUM_DECL:
            return "enumerator"
        if kind in (K.TEMPLATE_TYPE_PARAMETER, K.TEMPLATE_NON_TYPE_PARAMETER, K.TEMPLATE_TEMPLATE_PARAMETER):
            return "template argument"
        if kind in (K.TYPE_ALIAS_DECL, K.TYPEDEF_DECL, K.FRIEND_DECL):
            return "type"
        if kind == K.CASE_STMT:
            return ""  # its label alone: see visit
        if kind in FUNCTIONS:
            if re.search(r"\b(constexpr|consteval)\b", self.head_of_function(cursor)):
                return "constexpr function"
            if CHECKING_NAME.match(cursor.spelling):
                return "function that only throws"
        if kind in (K.VAR_DECL, K.FIELD_DECL) and re.search(r"\b(constexpr|constinit)\b", self.head_of_variable(cursor)):
            return "constexpr initialiser"
        # By its text: the call of a template's function has no name yet.
        if kind == K.CALL_EXPR and CHECKING_CALL.match(self.text_of(cursor)):
            return "check that only throws"
        if kind == K.IF_STMT:
            if re.match(r"if\s+constexpr\b", self.text_of(cursor)):
                return "if constexpr: condition"
            if self.only_throws(cursor):
                return "check that only throws"
        if kind in (K.DECL_REF_EXPR, K.TYPE_REF, K.TEMPLATE_REF, K.OVERLOADED_DECL_REF):
            return "template argument"
        if kind in (K.STRING_LITERAL, K.CHARACTER_LITERAL):
            return "text"
        if kind == K.CXX_UNARY_EXPR:
            return "sizeof or alignof"
        return ""

    def head_of_function(self, cursor):
        body = next((c for c in cursor.get_children() if c.kind == K.COMPOUND_STMT), None)
        begin, end = self.extent(cursor)
        # The words before a template's parameters count too: `constexpr` follows them.
        return self.source(begin, self.extent(body)[0] if body else end)

    def head_of_variable(self, cursor):
        begin, end = self.extent(cursor)
        return self.source(begin, max(begin, min(end, cursor.location.offset)))

    # if (...) Fail(...): nothing else in its body, no else.
    def only_throws(self, cursor):
        children = list(cursor.get_children())
        if len(children) != 2:
            return False
        body = list(children[1].get_children()) if children[1].kind == K.COMPOUND_STMT else [children[1]]
        return bool(body) and all(self.is_throw(statement) for statement in body)

    def is_throw(self, cursor):
        return cursor.kind == K.CXX_THROW_EXPR or bool(re.match(r"throw\b", self.text_of(cursor))) or (
            cursor.kind in (K.CALL_EXPR, K.UNEXPOSED_EXPR) and bool(CHECKING_CALL.match(self.text_of(cursor))))

    def visit(self, cursor, parent, reason):
        reason = reason or self.barrier(cursor, parent)
        if reason != "if constexpr: condition":
            self.consider(cursor, parent, reason)
        for number, child in enumerate(cursor.get_children()):
            below = reason
            if cursor.kind == K.CASE_STMT and number == 0:
                below = below or "case label"
            if reason == "if constexpr: condition":
                below = "constant condition" if number == 0 else ""
            self.visit(child, cursor, below)

    # Counts a place that is one by its kind but may not be changed; each place once.
    def skip(self, kind, cursor, reason):
        place = (kind,) + self.extent(cursor)
        if place not in self.seen:
            self.seen.add(place)
            self.skipped[reason] += 1

    def add(self, cursor, kind, replacement, form="expression", extent=None):
        begin, end = extent or self.extent(cursor)
        original = self.source(begin, end)
        if any(begin < m[1] and m[0] < end for m in self.macros):
            return self.skip(kind, cursor, "inside a macro")
        if end - begin > MAX_BYTES and form == "expression":
            return self.skip(kind, cursor, "longer than %d bytes" % MAX_BYTES)
        if "//" in original and form == "expression":
            return self.skip(kind, cursor, "a comment inside")
        site = Site(begin, end, kind, form, re.sub(r"\s+", " ", replacement))
        if site not in self.seen:
            self.seen.add(site)
            self.sites.append(site)

    def consider(self, cursor, parent, reason):
        for kind, make in self.makers(cursor, parent):
            if reason:
                self.skip(kind, cursor, reason)
            else:
                make()

    # What this cursor would be changed to, as functions that add it.
    def makers(self, cursor, parent):
        kind = cursor.kind
        if kind == K.BINARY_OPERATOR:
            yield self.name_of_operator(cursor), lambda: self.binary(cursor)
        elif kind == K.COMPOUND_ASSIGNMENT_OPERATOR:
            yield "operator", lambda: self.assignment(cursor, parent)
        elif kind == K.UNARY_OPERATOR:
            yield "operator", lambda: self.unary(cursor, parent)
        elif kind in (K.INTEGER_LITERAL, K.FLOATING_LITERAL, K.CXX_BOOL_LITERAL_EXPR):
            yield "constant", lambda: self.constant(cursor)
        elif kind == K.ARRAY_SUBSCRIPT_EXPR or (kind == K.CALL_EXPR and cursor.spelling == "operator[]"):
            yield "index", lambda: self.index(cursor)
        elif kind == K.CALL_EXPR and re.match(r"operator\W", cursor.spelling):
            yield "operator", lambda: self.skip("operator", cursor, "overloaded operator")
        if kind in (K.IF_STMT, K.WHILE_STMT, K.CONDITIONAL_OPERATOR):
            yield "condition", lambda: self.condition(cursor)
        if kind in STATEMENTS and self.is_statement(cursor, parent):
            yield "statement", lambda: self.statement(cursor)

    def name_of_operator(self, cursor):
        return "comparison" if self.operator(cursor) in COMPARISONS else "operator"

    def operands(self, cursor):
        return list(cursor.get_children())

    def operator(self, cursor):
        operands = self.operands(cursor)
        if len(operands) != 2:
            return ""
        between = self.source(self.extent(operands[0])[1], self.extent(operands[1])[0])
        return re.sub(r"//[^\n]*|/\*.*?\*/", "", between, flags=re.DOTALL).strip()

    def binary(self, cursor):
        operator = self.operator(cursor)
        table = {**COMPARISONS, **ARITHMETIC, **BITS, **LOGIC}
        if operator not in table:
            if operator not in ("=", ","):
                self.skip("operator", cursor, "operator that is not changed: '%s'" % operator)
            return
        left, right = self.operands(cursor)
        kinds = [operand.type.get_canonical().kind for operand in (left, right)]
        known = all(kind in ARITHMETIC_TYPES for kind in kinds)
        unknown = any(kind in UNKNOWN_TYPES for kind in kinds)
        if T.POINTER in kinds and operator == "+":
            if kinds[0] == T.POINTER:
                self.add(cursor, "index", self.text_of(left))
            return
        enums = T.ENUM in kinds and operator in ("==", "!=")
        pointers = T.POINTER in kinds and operator in ("==", "!=")
        if not (known or unknown or enums or pointers):
            return self.skip("operator", cursor, "operands that are no numbers")
        for change in table[operator]:
            if change in ("left", "right"):
                # The choice between the two has the type of the operation, whatever the operand's.
                self.add(cursor, "operator", self.text_of(left if change == "left" else right))
            else:
                kind = "comparison" if operator in COMPARISONS else "operator"
                self.add(cursor, kind, "%s %s %s" % (self.text_of(left), change, self.text_of(right)))

    def assignment(self, cursor, parent):
        operator = self.operator(cursor)
        left, right = self.operands(cursor)
        if self.is_step(cursor, parent):
            return self.skip("operator", cursor, "step of a loop: it would never end")
        for change in ASSIGNMENTS.get(operator, ()):
            self.add(cursor, "operator", "%s %s %s" % (self.text_of(left), change, self.text_of(right)))

    def unary(self, cursor, parent):
        operand = self.operands(cursor)[0]
        text = self.source(self.extent(cursor)[0], self.extent(operand)[0]).strip()
        if text in ("-", "!", "~"):
            kind = "condition" if text == "!" else "operator"
            if operand.type.get_canonical().kind in (T.RECORD, T.POINTER):
                return self.skip(kind, cursor, "operands that are no numbers")
            self.add(cursor, kind, self.text_of(operand))
        elif text in ("++", "--") or self.text_of(cursor).endswith(("++", "--")):
            if self.is_step(cursor, parent):
                return self.skip("operator", cursor, "step of a loop: it would never end")
            swap = lambda match: "--" if match.group() == "++" else "++"
            self.add(cursor, "operator", re.sub(r"^(\+\+|--)|(\+\+|--)$", swap, self.text_of(cursor)))

    def is_step(self, cursor, parent):
        if parent is None or parent.kind != K.FOR_STMT:
            return False
        children = list(parent.get_children())
        return self.extent(children[-1]) != self.extent(cursor)

    def constant(self, cursor):
        text = self.text_of(cursor)
        if text in ("true", "false"):
            return self.add(cursor, "constant", "false" if text == "true" else "true")
        if cursor.kind == K.FLOATING_LITERAL:
            is_hex = text[:2] in ("0x", "0X")
            number = text.rstrip("fFlL")
            value = float.fromhex(number) if is_hex else float(number)
            suffix = "f" if text[-1] in "fF" else ""  # a hexadecimal number needs an exponent, so this f is no digit
            if value == 0:
                return self.add(cursor, "constant", "1.0" + suffix)
            self.add(cursor, "constant", "%s * 2" % text)
            return self.add(cursor, "constant", "%s * 1.01%s" % (text, suffix))
        digits = re.match(r"(0[xX][0-9a-fA-F']+|0|[1-9][0-9']*)([uUlLzZ]*)$", text)
        if not digits:
            return self.skip("constant", cursor, "constant that is not plain")
        value, suffix = int(digits.group(1).replace("'", ""), 0), digits.group(2)
        if cursor.type.get_canonical().kind not in ARITHMETIC_TYPES:
            return self.skip("constant", cursor, "constant that is no number")
        self.add(cursor, "constant", "%d%s" % (value + 1, suffix))
        if value > 0:
            self.add(cursor, "constant", "%d%s" % (value - 1, suffix))

    def index(self, cursor):
        children = list(cursor.get_children())
        index = children[-1] if cursor.kind == K.ARRAY_SUBSCRIPT_EXPR else (list(cursor.get_arguments()) or children)[-1]
        kind = index.type.get_canonical().kind
        if kind not in ARITHMETIC_TYPES and kind not in UNKNOWN_TYPES:
            return self.skip("index", cursor, "index that is no number")
        if self.extent(index)[0] >= self.extent(index)[1] or self.text_of(cursor)[-1] != "]":
            return self.skip("index", cursor, "index that is not written out")
        text = self.text_of(index)
        if re.fullmatch(r"\d+", text):
            return  # changed as a constant
        self.add(index, "index", "(%s) + 1" % text)
        self.add(index, "index", "(%s) * 0" % text)

    def condition(self, cursor):
        condition = next(iter(cursor.get_children()))
        if condition.kind in (K.VAR_DECL, K.DECL_STMT) or re.match(r"if\s*\([^)]*;", self.text_of(cursor)):
            return self.skip("condition", cursor, "condition that declares")
        if condition.kind == K.BINARY_OPERATOR and self.operator(condition) in {**COMPARISONS, **LOGIC}:
            return  # changed as a comparison or an operator
        if re.match(r"!", self.text_of(condition)):
            return  # changed as an operator
        self.add(condition, "condition", "!(%s)" % self.text_of(condition))

    # An expression or jump that stands where a statement may.
    def is_statement(self, cursor, parent):
        if parent is None:
            return False
        children = list(parent.get_children())
        place = next((i for i, c in enumerate(children) if c == cursor and self.extent(c) == self.extent(cursor)), None)
        if place is None:
            return False
        if parent.kind == K.COMPOUND_STMT:
            return True
        if parent.kind == K.IF_STMT:
            return place >= 1
        if parent.kind in (K.FOR_STMT, K.CXX_FOR_RANGE_STMT, K.WHILE_STMT, K.CASE_STMT, K.DEFAULT_STMT):
            return place == len(children) - 1 and len(children) > 1 or parent.kind == K.DEFAULT_STMT
        return False

    def statement(self, cursor):
        if cursor.kind == K.RETURN_STMT and list(cursor.get_children()):
            return self.skip("statement", cursor, "return of a value")
        begin, end = self.extent(cursor)
        if self.source(begin, end)[-1] not in "};":
            rest = re.match(r"\s*;", self.bytes[end:].decode("utf-8"))
            if not rest:
                return self.skip("statement", cursor, "statement without an end")
            end += len(rest.group())
        elif cursor.kind not in (K.IF_STMT, K.FOR_STMT, K.CXX_FOR_RANGE_STMT, K.WHILE_STMT):
            rest = re.match(r"\s*;", self.bytes[end:].decode("utf-8"))
            end += len(rest.group()) if rest else 0
        self.add(cursor, "statement", "", "statement", (begin, end))


def find(path, text, arguments):
    """(sites in order of place, Counter of reasons)."""
    finder = Finder(path, text, arguments)
    return sorted(finder.sites), finder.skipped
