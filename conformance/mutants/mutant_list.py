# SPDX-License-Identifier: Apache-2.0
"""The list of generated mutants, and how they get into copies of engine sources as branches that a switch turns on.

  mutant_list.py apply --list LIST --out OUT SOURCE   one switchable copy (SOURCE is a workspace path)
  mutant_list.py table --list LIST --out OUT          the C++ table of all mutants, for conformance/defects/switch.h
  mutant_list.py check --list LIST --workspace-file W how many entries still fit the sources of the tree of this WORKSPACE

A list holds one JSON object a line: id, file, line (where it was when the list was made), kind, form, original, replacement,
family (of the cases it is tried on), and where to look: `anchor`, the source line without its indentation, the `column` in
it, and which (`nth`) of the file's lines of that text it is. So entries outlive changes elsewhere in their file. An entry
whose place is gone is stale: it is left out of the copy and of no use, and `check` fails when more than one in ten is.
Like apply_edits.py it understands no C++; generate.py, which does, makes the list.
"""

import argparse
import collections
import hashlib
import json
import pathlib
import sys

FIELDS = ("id", "file", "line", "kind", "form", "original", "replacement", "family", "anchor", "column", "nth")
Mutant = collections.namedtuple("Mutant", FIELDS)
MAX_STALE = 0.1


class ListError(Exception):
    """One line that names the list, the line in it and what is wrong."""


def read(path):
    mutants, ids = [], set()
    for number, line in enumerate(pathlib.Path(path).read_text(encoding="utf-8").splitlines(), 1):
        try:
            entry = json.loads(line)
        except ValueError as error:
            raise ListError("%s:%d: no JSON: %s" % (path, number, error))
        if not isinstance(entry, dict) or set(entry) != set(FIELDS):
            raise ListError("%s:%d: an entry has exactly the fields %s" % (path, number, ", ".join(FIELDS)))
        mutant = Mutant(**entry)
        if mutant.id in ids:
            raise ListError("%s:%d: id %s is there twice" % (path, number, mutant.id))
        ids.add(mutant.id)
        mutants.append(mutant)
    return mutants


def write(path, mutants):
    text = "".join(json.dumps(mutant._asdict(), ensure_ascii=False) + "\n" for mutant in mutants)
    pathlib.Path(path).write_text(text, encoding="utf-8")


def id_of(file, anchor, column, nth, original, replacement):
    """The same change at the same text has the same id in the next list."""
    key = "\0".join([file, anchor, str(column), str(nth), original, replacement])
    return "m" + hashlib.sha256(key.encode("utf-8")).hexdigest()[:8]


def anchor_at(source, begin):
    """(anchor, column, nth) of a place in a source."""
    start = source.rfind("\n", 0, begin) + 1
    end = source.find("\n", begin)
    line = source[start:end if end >= 0 else len(source)]
    anchor = line.strip()
    same = [text.strip() for text in source[:start].split("\n")[:-1]]
    return anchor, begin - start - (len(line) - len(line.lstrip())), same.count(anchor)


def locate(source, mutants):
    """([(begin, end, mutant)], [stale mutant]). Places lie inside each other or apart."""
    lines, offset, starts = source.split("\n"), 0, {}
    for line in lines:
        starts.setdefault(line.strip(), []).append(offset + len(line) - len(line.lstrip()))
        offset += len(line) + 1
    places, stale = [], []
    for mutant in mutants:
        found = starts.get(mutant.anchor, [])
        begin = found[mutant.nth] + mutant.column if mutant.nth < len(found) else -1
        if begin >= 0 and source.startswith(mutant.original, begin):
            places.append((begin, begin + len(mutant.original), mutant))
        else:
            stale.append(mutant)
    return places, stale


def grouped(places):
    """Places that are equal become one; outer ones come before inner ones. Raises if two overlap without nesting."""
    groups = {}
    for begin, end, mutant in places:
        groups.setdefault((begin, -end, mutant.form != "statement"), []).append(mutant)
    ordered, open_ends = [], []
    for begin, minus_end, _ in sorted(groups):
        end = -minus_end
        while open_ends and open_ends[-1] <= begin:
            open_ends.pop()
        if open_ends and end > open_ends[-1]:
            raise ListError("mutants overlap without nesting: %s" % groups[sorted(groups)[0]][0].file)
        open_ends.append(end)
    for key in sorted(groups):
        ordered.append((key[0], -key[1], sorted(groups[key])))
    return ordered


def switch(mutant):
    return '::plumbline::defects::Enabled<"%s">()' % mutant.id


def render(source, begin, end, groups):
    """source[begin:end] with the groups, all inside it, applied. Replacements are plain text on one line: of several mutants
    one is on, so an inner one matters only where no outer one is; and lines keep their numbers."""
    out, done = [], begin
    while groups:
        first, groups = groups[0], groups[1:]
        inner = [group for group in groups if group[1] <= first[1]]
        groups = groups[len(inner):]
        original = render(source, first[0], first[1], inner)
        out.append(source[done:first[0]])
        if first[2][0].form == "statement":
            off = " && ".join("!" + switch(mutant) for mutant in first[2])
            out.append("{ if (%s) { %s } }" % (off, original))  # braces twice: an `else` may follow
        else:
            on = "".join("%s ? (%s) : " % (switch(mutant), mutant.replacement) for mutant in first[2])
            out.append("(%s(%s))" % (on, original))
        done = first[1]
    return "".join(out) + source[done:end]


def apply(source, file, mutants):
    """(the switchable copy, [stale mutant]). Headers of the engine are included in their switchable copies too."""
    places, stale = locate(source, [mutant for mutant in mutants if mutant.file == file])
    body = render(source, 0, len(source), grouped(places))
    head = "" if not places else '#include "conformance/defects/switch.h"\n'
    once = "#pragma once\n" if file.endswith(".h") else ""
    return '%s%s#line 1 "%s"\n%s' % (once, head, file, twin_includes(body)), stale


def twin_path(path):
    folder, _, name = path.rpartition("/")
    return "%s/mutants/%s" % (folder, name)


def twin_includes(text):
    lines = []
    for line in text.split("\n"):
        if line.startswith('#include "') and line[10:].startswith(("kernels/", "optimized/")):
            path = line[10:line.rindex('"')]
            line = line.replace('"%s"' % path, '"%s"' % twin_path(path))
        lines.append("" if line == "#pragma once" else line)
    return "\n".join(lines)


def cpp_string(text):
    return '"%s"' % text.replace("\\", "\\\\").replace('"', '\\"')


def one_line(mutant):
    shown = lambda text: text if len(text) <= 60 else text[:57] + "..."
    original = shown(" ".join(mutant.original.split()))
    change = "left out" if mutant.form == "statement" else "-> " + shown(mutant.replacement)
    return "%s %s:%d: %s %s" % (mutant.kind, mutant.file, mutant.line, original, change)


def table(mutants):
    """The definition of Defects(), which switch.h declares. A mutant expects no check in particular: `any`."""
    rows = ['    {"%s", %s, "any: of the checks", "%s", "", &switched_on<"%s">},'
            % (m.id, cpp_string(one_line(m).replace("\t", " ")), m.family, m.id) for m in mutants]
    return "\n".join(["// Generated by mutant_list.py from the list of mutants.", '#include "conformance/defects/switch.h"',
                      "namespace plumbline::defects {", "std::span<const Defect> Defects() {"]
                     + (["  static const Defect table[] = {"] + rows + ["  };", "  return table;"] if rows else ["  return {};"])
                     + ["}", "}  // namespace plumbline::defects", ""])


def fitting(workspace, mutants):
    """(mutants whose place exists in the sources, stale ones)."""
    fit, stale = [], []
    for file in sorted({mutant.file for mutant in mutants}):
        of_file = [mutant for mutant in mutants if mutant.file == file]
        path = pathlib.Path(workspace) / file
        if not path.is_file():
            stale += of_file
            continue
        places, gone = locate(path.read_text(encoding="utf-8"), of_file)
        fit += [mutant for _, _, mutant in places]
        stale += gone
    return fit, stale


def check(workspace, mutants):
    fit, stale = fitting(workspace, mutants)
    for mutant in stale:
        print("stale: %s %s" % (mutant.id, one_line(mutant)))
    print("%d of %d mutants fit the sources" % (len(fit), len(mutants)))
    if not mutants or len(stale) > MAX_STALE * len(mutants):
        print("too many are stale; make the list anew with conformance/mutants/generate.py")
        return 1
    return 0


def main(argv):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("mode", choices=["apply", "table", "check"])
    parser.add_argument("--list", required=True)
    parser.add_argument("--out")
    parser.add_argument("--workspace-file")
    parser.add_argument("path", nargs="?")
    args = parser.parse_intermixed_args(argv)
    try:
        mutants = read(args.list)
        if args.mode == "check":
            return check(pathlib.Path(args.workspace_file).resolve().parent, mutants)
        if args.mode == "table":
            text = table(mutants)
        else:
            text, _ = apply(pathlib.Path(args.path).read_text(encoding="utf-8"), args.path, mutants)
        pathlib.Path(args.out).write_text(text, encoding="utf-8")
        return 0
    except ListError as error:
        print("mutant_list.py: %s" % error, file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
