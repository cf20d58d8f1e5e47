# SPDX-License-Identifier: Apache-2.0
"""Planted defects: reads edit files and applies them to copies of engine sources as branches that a switch turns on.

  apply_edits.py apply --out OUT SOURCE EDIT...   one switchable copy (SOURCE is a workspace path; edits of other files are ignored)
  apply_edits.py table --out OUT [EDIT...]        the C++ table of all defects, for switch.h
  apply_edits.py check WORKSPACE EDIT...          every edit names a source of an engine_library; no twin links plain code

It understands no C++: the text of an edit must occur exactly once in its file, or the build ends with a line that says so.
An edit file (several blocks of file/kind/original/replacement if a defect needs several places; text is indented by 4):

  # Why this defect is realistic, if that is not obvious.
  id: G1
  title: a later micro-batch overwrites the accumulated gradient
  expect: gradient, exact: step 0, with three micro-batches, tensor layers.1.mlp.down
  family: exact                                  the cases it is tried on: exact (also where left out), gpt2, gpt2/bias or
                                                 llama
  hypothesis: repeated_micro_batch               what the diagnosis must find, where one can be found

  file: optimized/partition/accumulate.cc
  kind: statement
  original:
      sum[i] += gradient[i];
  replacement:
      sum[i] = gradient[i];

`hypothesis` is what conformance/diagnosis is to find by numbers; it is written down from what the defect is, not from what
was found, and left out where nothing in its table is the defect.
`expect` begins with the checks that must see the defect, of which one that does is enough, and a colon; `engine` is an
engine that stops by itself. `tensor NAME` in the text after it is the tensor that must be named, where one is.
cli/self_test.py holds `verify --self-test` to both.

kind: statement    whole statements (no declaration that later code uses)
kind: expression   a complete operand; the replacement is one line
"""

import argparse
import collections
import pathlib
import re
import sys

Edit = collections.namedtuple("Edit", "defect file kind original replacement path replacement_line")
Defect = collections.namedtuple("Defect", "id title expect family hypothesis path edits")

HEAD_FIELDS = ("id", "title", "expect")
OPTIONAL_FIELDS = ("family", "hypothesis")
FAMILIES = ("exact", "gpt2", "gpt2/bias", "llama")  # runner/plan.h, DefectCases
# conformance/diagnosis/hypothesis.cc
HYPOTHESES = ("not_finite", "late_weight", "not_updated", "missing_reduction", "missing_rank", "repeated_rank", "dropped_micro_batch",
              "repeated_micro_batch", "factor_ranks", "factor_accumulation", "factor_both", "sign_flipped", "mean_of_means",
              "neighbour_data", "stale_gradient", "step_counter", "bias_correction", "clipping_missing", "clipping_twice",
              "clipping_inverted", "clipping_norm", "other_step_rate", "other_group_rate", "decay_missing", "decay_form",
              "other_group_decay", "swapped_parameters", "epsilon_place", "momentum_form", "ratio_of_norms",
              "exempt_clipped", "unit_norm", "lost_state", "shifted_state",
              "transposed", "shifted_shard", "zeroed_region", "stale_region", "low_precision", "low_precision_state", "other_factor")
CHECKS = ("trace", "dump", "exact", "gradient", "bias", "accumulation", "loss", "update", "skip", "scale", "relation", "metamorphic",
          "replicas", "collectives", "ledger", "memory", "trajectory", "engine")
BLOCK_FIELDS = ("file", "kind", "original", "replacement")
TEXT_FIELDS = ("original", "replacement")
INDENT = "    "


class EditError(Exception):
    """One line that names the edit file, the field and what is allowed."""


def parse(text, path):
    """The Defect that an edit file describes; `path` is how messages and #line call the file."""
    head, blocks, where, lines = {}, [], {}, text.split("\n")
    number = 0
    while number < len(lines):
        line = lines[number]
        number += 1
        if not line.strip() or line.startswith("#"):
            continue
        match = re.fullmatch(r"([a-z_]+):[ ]?(.*)", line)
        name = match.group(1) if match else None
        if name not in HEAD_FIELDS + OPTIONAL_FIELDS + BLOCK_FIELDS:
            shown = "unknown field '%s'" % name if match else "not a field: '%s'" % line
            raise EditError("%s:%d: %s; fields are %s" % (path, number, shown, ", ".join(HEAD_FIELDS + OPTIONAL_FIELDS + BLOCK_FIELDS)))
        value = match.group(2).strip()
        if name in TEXT_FIELDS:
            if value:
                raise EditError("%s:%d: the text of '%s' starts on the next line, indented by 4" % (path, number, name))
            where[(len(blocks), name)] = number + 1
            value, number = take_text(lines, number)
        elif not value:
            raise EditError("%s:%d: field '%s' is empty" % (path, number, name))
        if name == "file":
            blocks.append({})
        if name in BLOCK_FIELDS and not blocks:
            raise EditError("%s:%d: '%s' comes before the first 'file'" % (path, number, name))
        target = blocks[-1] if name in BLOCK_FIELDS else head
        if name in target:
            raise EditError("%s:%d: field '%s' is given twice" % (path, number, name))
        target[name] = value
    return build(head, blocks, where, path)


def take_text(lines, number):
    """The indented lines from `number` on, without their indentation and trailing blank lines; and where they end."""
    taken = []
    while number < len(lines) and (lines[number].startswith(INDENT) or not lines[number].strip()):
        taken.append(lines[number][len(INDENT):])
        number += 1
    while taken and not taken[-1].strip():
        taken.pop()
    return "\n".join(taken), number


def build(head, blocks, where, path):
    for name in HEAD_FIELDS:
        if name not in head:
            raise EditError("%s: field '%s' is missing" % (path, name))
        if re.search(r'[\t"\\]', head[name]):
            raise EditError("%s: field '%s' holds a tab, quote or backslash" % (path, name))
    if not re.fullmatch(r"[A-Z]+[0-9]+[a-z]?", head["id"]):
        raise EditError("%s: id '%s' is not capitals, a number and at most one small letter" % (path, head["id"]))
    if pathlib.PurePath(path).stem != head["id"]:
        raise EditError("%s: the file of id '%s' must be called %s.edit" % (path, head["id"], head["id"]))
    checks, colon, _ = head["expect"].partition(":")
    for name in checks.split(", "):
        if not colon or name not in CHECKS:
            raise EditError("%s: field 'expect' begins with '%s', not with checks and a colon; checks are %s"
                            % (path, name if colon else head["expect"], ", ".join(CHECKS)))
    family = head.get("family", FAMILIES[0])
    if family not in FAMILIES:
        raise EditError("%s: family '%s' is none of %s" % (path, family, ", ".join(FAMILIES)))
    hypothesis = head.get("hypothesis", "")
    if hypothesis and hypothesis not in HYPOTHESES:
        raise EditError("%s: hypothesis '%s' is not known; hypotheses are %s" % (path, hypothesis, ", ".join(HYPOTHESES)))
    if not blocks:
        raise EditError("%s: no edit: a block starts with 'file'" % path)
    edits = []
    for index, block in enumerate(blocks):
        for name in BLOCK_FIELDS:
            if name not in block:
                raise EditError("%s: field '%s' of the edit of %s is missing" % (path, name, block["file"]))
        if block["kind"] not in ("statement", "expression"):
            raise EditError("%s: kind '%s' is neither statement nor expression" % (path, block["kind"]))
        if not block["original"].strip():
            raise EditError("%s: the original text is empty" % path)
        if block["kind"] == "expression" and ("\n" in block["replacement"] or not block["replacement"].strip()):
            raise EditError("%s: the replacement of an expression is one line" % path)
        if block["original"] == block["replacement"]:
            raise EditError("%s: original and replacement are the same text" % path)
        edits.append(Edit(head["id"], block["file"], block["kind"], block["original"], block["replacement"], path,
                          where[(index + 1, "replacement")]))
    return Defect(head["id"], head["title"], head["expect"], family, hypothesis, path, tuple(edits))


def read(paths):
    """All defects, ordered by id as a person counts: G2 before G10."""
    defects = {}
    for path in paths:
        defect = parse(pathlib.Path(path).read_text(encoding="utf-8"), str(path))
        if defect.id in defects:
            raise EditError("%s: id %s is also in %s" % (path, defect.id, defects[defect.id].path))
        defects[defect.id] = defect
    key = lambda d: [int(part) if part.isdigit() else part for part in re.findall(r"[0-9]+|[^0-9]+", d.id)]
    return sorted(defects.values(), key=key)


def locate(source, file, edits):
    """(begin, end, edit) in order of place; each text occurs exactly once and none overlap."""
    places = []
    for edit in edits:
        # Overlapping occurrences count too, hence not str.count.
        begins = [i for i in range(len(source)) if source.startswith(edit.original, i)]
        if len(begins) != 1:
            raise EditError("%s: edit %s: its original text occurs %d times in %s; it must occur exactly once"
                            % (edit.path, edit.defect, len(begins), file))
        places.append((begins[0], begins[0] + len(edit.original), edit))
    places.sort(key=lambda place: place[:2])
    for before, after in zip(places, places[1:]):
        if after[0] < before[1]:
            raise EditError("%s: edit %s overlaps edit %s of %s in %s"
                            % (after[2].path, after[2].defect, before[2].defect, before[2].path, file))
    return places


def apply(source, file, defects):
    """The switchable copy of `source`. #line makes compilers and __FILE__ speak of the product file and the edit."""
    places = locate(source, file, [edit for defect in defects for edit in defect.edits if edit.file == file])
    out = ['#include "conformance/defects/switch.h"\n'] if places else []
    out.append('#line 1 "%s"\n' % file)
    done = 0
    for begin, end, edit in places:
        out.append(source[done:begin])
        switch = '::plumbline::defects::Enabled<"%s">()' % edit.defect
        first, last = (source.count("\n", 0, offset) + 1 for offset in (begin, end))
        if edit.kind == "statement":
            out.append('if (%s) {\n#line %d "%s"\n%s\n} else {\n#line %d "%s"\n%s\n}\n#line %d "%s"\n' % (
                switch, edit.replacement_line, edit.path, edit.replacement, first, file, edit.original, last, file))
        else:  # Adds no line, so that it may stand inside a macro's arguments, where #line may not.
            out.append("(%s ? (%s) : (%s))" % (switch, edit.replacement, edit.original))
        done = end
    out.append(source[done:])
    return "".join(out)


def table(defects):
    """The definition of Defects(), which switch.h declares."""
    rows = ['    {"%s", "%s", "%s", "%s", "%s", &switched_on<"%s">},' % (d.id, d.title, d.expect, d.family, d.hypothesis, d.id)
            for d in defects]
    return "\n".join(
        ["// Generated by apply_edits.py from the edit files.", '#include "conformance/defects/switch.h"',
         "namespace plumbline::defects {", "std::span<const Defect> Defects() {"]
        + (["  static const Defect table[] = {"] + rows + ["  };", "  return table;"] if rows else ["  return {};"])
        + ["}", "}  // namespace plumbline::defects", ""])


def engine_libraries(workspace):
    """{label: (package, keyword arguments)} of every engine_library(), by running the BUILD files with all other rules as no-ops."""
    found = {}
    for build_file in sorted(pathlib.Path(workspace).glob("**/BUILD")):
        package = build_file.parent.relative_to(workspace).as_posix()
        text = build_file.read_text(encoding="utf-8")
        if package.startswith("bazel-") or "engine_library(" not in text:
            continue

        def record(package=package, **kwargs):
            found["//%s:%s" % (package, kwargs["name"])] = (package, kwargs)

        class Names(dict):
            def __missing__(self, name):
                return lambda *args, **kwargs: []

        exec(compile(text, str(build_file), "exec"), Names(__builtins__={}, engine_library=record))
    return found


def absolute_label(label, package):
    if label.startswith("//"):
        return label if ":" in label else label + ":" + label.rsplit("/", 1)[-1]
    return "//%s:%s" % (package, label.lstrip(":"))


def check(workspace, defects):
    """Raises unless every edit reaches the switchable program and no twin depends on plain engine code."""
    libraries = engine_libraries(workspace)
    sources = {"%s/%s" % (package, src) for package, kwargs in libraries.values() for src in kwargs.get("srcs", [])}
    for defect in defects:
        for edit in defect.edits:
            if not (pathlib.Path(workspace) / edit.file).is_file():
                raise EditError("%s: edit %s: no file %s" % (edit.path, edit.defect, edit.file))
            if edit.file not in sources or not edit.file.endswith(".cc"):
                raise EditError("%s: edit %s: %s is not a .cc in the srcs of an engine_library, so the defect could never be on"
                                % (edit.path, edit.defect, edit.file))
    for label, (package, kwargs) in libraries.items():
        for dep in kwargs.get("deps", []):
            if absolute_label(dep, package) in libraries:
                raise EditError("%s: '%s' is an engine_library: list it in engine_deps, or its switchable twin would link plain code"
                                % (label, dep))
        for dep in kwargs.get("engine_deps", []):
            if absolute_label(dep, package) not in libraries:
                raise EditError("%s: '%s' is not an engine_library: list it in deps" % (label, dep))


def main(argv):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("mode", choices=["apply", "table", "check"])
    parser.add_argument("--out")
    parser.add_argument("files", nargs="*")
    args = parser.parse_intermixed_args(argv)
    edits = [file for file in args.files if file.endswith(".edit")]
    others = [file for file in args.files if not file.endswith(".edit")]
    try:
        if len(others) != (0 if args.mode == "table" else 1):
            raise EditError("%s takes edit files and %s" % (args.mode, "nothing else" if args.mode == "table" else "one other path"))
        defects = read(edits)
        if args.mode == "check":
            check(others[0], defects)
            print("%d defects in %d places: each reaches the switchable program" % (len(defects), sum(len(d.edits) for d in defects)))
            return 0
        text = table(defects) if args.mode == "table" else apply(
            pathlib.Path(others[0]).read_text(encoding="utf-8"), others[0], defects)
        pathlib.Path(args.out).write_text(text, encoding="utf-8")
    except EditError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
