# SPDX-License-Identifier: Apache-2.0
"""Makes the list of mutants of `optimized` and `kernels` anew: finds them, drops what does not compile, samples, writes.

  generate.py [--count N] [--seed TEXT] [--keep LIST] [--out LIST] WORKSPACE

A tool for maintainers: it needs libclang's Python binding (Debian: python3-clang-16) and g++, and takes some minutes.
Sources, families and the order are those of the tree, so the same tree and seed give the same list. What was passed over is
counted by reason, on standard output. Nothing else of the project needs libclang.

A fresh sample has other mutants after any change, and what was found out about survivors is lost with them. With --keep,
the entries of LIST whose place still exists stay, and of the fresh sample only the mutants in files that LIST does not know
or of which it lost an entry are added.
"""

import argparse
import collections
import importlib.util
import pathlib
import random
import re
import subprocess
import sys
import tempfile


def load(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


HERE = pathlib.Path(__file__).resolve().parent
mutant_list = load(HERE / "mutant_list.py")
mutant_sites = load(HERE / "mutant_sites.py")
apply_edits = load(HERE.parent / "defects" / "apply_edits.py")

SPARE = 1.15  # share of mutants that are compiled, of those that are wanted

ROOT_LIBRARY = "//optimized/engine:main_library"
FAMILY_ROOTS = {family: "optimized/model/%s_model.cc" % family for family in ("exact", "gpt2", "llama")}


def engine_sources(workspace):
    """The .cc and .h files that the engine is linked from, in order of name."""
    libraries, found, wanted = apply_edits.engine_libraries(workspace), set(), [ROOT_LIBRARY]
    seen = set()
    while wanted:
        label = wanted.pop()
        if label in seen:
            continue
        seen.add(label)
        package, kwargs = libraries[label]
        found |= {"%s/%s" % (package, name) for name in kwargs.get("srcs", []) + kwargs.get("hdrs", [])}
        wanted += [apply_edits.absolute_label(dep, package) for dep in kwargs.get("engine_deps", [])]
    return sorted(found)


def includes_of(workspace, file, sources):
    text = (pathlib.Path(workspace) / file).read_text(encoding="utf-8")
    return {path for path in re.findall(r'^#include "([^"]+)"', text, re.MULTILINE) if path in sources}


def reached(workspace, root, sources):
    """What a file includes, directly or not, with the .cc beside each header."""
    seen, wanted = set(), [root]
    while wanted:
        file = wanted.pop()
        if file in seen:
            continue
        seen.add(file)
        wanted += includes_of(workspace, file, sources)
        beside = file[:-2] + ".cc"
        if file.endswith(".h") and beside in sources:
            wanted.append(beside)
    return seen


def families(workspace, sources):
    """{file: family}: "exact", "gpt2" or "llama" where only that model uses the file, else "any"."""
    uses = {family: reached(workspace, root, sources) for family, root in FAMILY_ROOTS.items()}
    of = {}
    for file in sources:
        users = [family for family in uses if file in uses[family]]
        others = set(sources).difference(*uses.values())
        direct = any(file in includes_of(workspace, other, sources) and not other.startswith("optimized/model/") for other in others)
        of[file] = users[0] if len(users) == 1 and (file in FAMILY_ROOTS.values() or not direct) else "any"
    return of


def compiler_headers():
    """The folder of g++'s own headers."""
    command = ["g++", "-print-file-name=include"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def find_all(workspace, sources, arguments):
    """Every mutant of every source, and a count of what was passed over."""
    mutants, skipped, family = [], collections.Counter(), families(workspace, sources)
    for file in sources:
        text = (workspace / file).read_text(encoding="utf-8")
        if not text.isascii():  # libclang counts bytes
            raise SystemExit("%s is not ASCII" % file)
        sites, passed_over = mutant_sites.find(str(workspace / file), text, arguments)
        skipped.update(passed_over)
        for site in sites:
            original = text[site.begin:site.end]
            anchor, column, nth = mutant_list.anchor_at(text, site.begin)
            mutants.append(mutant_list.Mutant(
                mutant_list.id_of(file, anchor, column, nth, original, site.replacement), file, text.count("\n", 0, site.begin) + 1,
                site.kind, site.form, original, site.replacement, family[file], anchor, column, nth))
        print("%5d mutants in %s" % (len(sites), file), file=sys.stderr)
    return mutants, skipped


def is_at(mutant, places):
    return any(file == mutant.file and mutant.line <= line <= mutant.line + mutant.original.count("\n") for file, line in places)


class Compiler:
    """Says which mutants of a tree do not compile. Copies lie where the build puts them, in a folder of their own."""

    def __init__(self, workspace, sources, flags):
        self.workspace, self.sources, self.flags = workspace, sources, flags
        self.folder = tempfile.TemporaryDirectory()
        for file in sources:
            self.plant(file, [])

    def plant(self, file, mutants):
        copy = pathlib.Path(self.folder.name) / mutant_list.twin_path(file)
        copy.parent.mkdir(parents=True, exist_ok=True)
        text, _ = mutant_list.apply((self.workspace / file).read_text(encoding="utf-8"), file, mutants)
        copy.write_text(text, encoding="utf-8")

    def errors(self, unit):
        """(file, line) of each error of compiling one .cc."""
        command = ["g++", "-fsyntax-only", "-w", "-Wno-narrowing", "-Werror=vla", "-fmax-errors=0", "-I", self.folder.name, *self.flags,
                   str(pathlib.Path(self.folder.name) / mutant_list.twin_path(unit))]
        done = subprocess.run(command, cwd=self.workspace, capture_output=True, text=True)
        places = re.findall(r"^(\S+?):(\d+):(?:\d+:)? (?:fatal )?error:", done.stderr, re.MULTILINE)
        # In a template the error may be named after a place of its use: the notes before it name others.
        places += re.findall(r"^(\S+?):(\d+):\d+:\s+required from", done.stderr, re.MULTILINE) if places else []
        if done.returncode and not places:
            raise SystemExit("g++ failed without an error in a source: " + done.stderr)
        return {(file, int(line)) for file, line in places}

    def broken(self, mutants):
        """Those that do not compile. All are tried together, and one by one where an error is."""
        good = set(mutants)
        of_file = lambda file: [mutant for mutant in sorted(good) if mutant.file == file]
        for file in self.sources:
            self.plant(file, of_file(file))
        units = [file for file in self.sources if file.endswith(".cc")]
        while units:
            failed = []
            for unit in units:
                lines = self.errors(unit)
                if not lines:
                    continue
                failed.append(unit)
                suspects = [mutant for mutant in good if is_at(mutant, lines)]
                if not suspects:
                    raise SystemExit("%s does not compile, at no mutant: %s" % (unit, sorted(lines)))
                alone = {mutant for mutant in suspects if self.fails_alone(mutant, unit)}
                good -= alone or set(suspects)
                for file in {mutant.file for mutant in suspects}:
                    self.plant(file, of_file(file))
                print("%s: %d do not compile" % (unit, len(alone or suspects)), file=sys.stderr)
            units = failed
        return set(mutants) - good

    def fails_alone(self, mutant, unit):
        for file in {mutant.file, unit}:
            self.plant(file, [mutant] if file == mutant.file else [])
        return is_at(mutant, self.errors(unit))


def sample(mutants, count, seed):
    """As even as can be over (file, kind): one of each in turn until there are enough."""
    groups = {}
    for mutant in sorted(mutants):
        groups.setdefault((mutant.file, mutant.kind), []).append(mutant)
    draw = random.Random(seed)
    for key in sorted(groups):
        draw.shuffle(groups[key])
    chosen, turn = [], 0
    while len(chosen) < min(count, len(mutants)):
        fresh = [groups[key][turn] for key in sorted(groups) if turn < len(groups[key])]
        draw.shuffle(fresh)
        chosen += fresh[:count - len(chosen)]
        turn += 1
    return in_order(chosen)


def in_order(mutants):
    return sorted(mutants, key=lambda m: (m.file, m.line, m.column, m.kind, m.replacement))


def with_kept(kept, chosen, mutants, workspace):
    """`kept` as the sources have them now, and of `chosen` what lies in files that `kept` lost an entry of or never had."""
    found = {mutant.id: mutant for mutant in mutants}
    fit, stale = mutant_list.fitting(workspace, kept)
    fit = {mutant.id: found.get(mutant.id, mutant) for mutant in fit}
    settled = {mutant.file for mutant in kept} - {mutant.file for mutant in stale}
    fit.update({mutant.id: mutant for mutant in chosen if mutant.file not in settled})
    return in_order(fit.values())


def main(argv):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", default="plumbline")
    parser.add_argument("--keep", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path, default=HERE / "mutants.jsonl")
    parser.add_argument("workspace", type=pathlib.Path)
    args = parser.parse_intermixed_args(argv)
    workspace = args.workspace.resolve()
    flags = ["-std=c++20", "-I", str(workspace)]
    sources = engine_sources(workspace)
    # omp.h is among g++'s own headers, and gives the attribute malloc an argument, which clang does not know.
    clang_flags = ["-x", "c++", "-w", "-D__malloc__(...)=__malloc__", "-idirafter", compiler_headers()]
    mutants, skipped = find_all(workspace, sources, clang_flags + flags)
    # Compiling costs most of the time, so only somewhat more than are wanted are tried.
    likely = sample(mutants, int(args.count * SPARE), args.seed)
    broken = Compiler(workspace, sources, flags).broken(likely)
    chosen = sample([mutant for mutant in likely if mutant not in broken], args.count, args.seed)
    if args.keep:
        chosen = with_kept(mutant_list.read(args.keep), chosen, mutants, workspace)
    mutant_list.write(args.out, chosen)
    print(summary(chosen, mutants, skipped, len(broken), len(likely)))
    return 0


def summary(chosen, mutants, skipped, num_broken, num_tried):
    files = lambda of: len({mutant.file for mutant in of})
    lines = ["%d mutants in %d files, of %d found in %d files; %d of %d do not compile" % (
        len(chosen), files(chosen), len(mutants), files(mutants), num_broken, num_tried)]
    found = collections.Counter(mutant.kind for mutant in mutants)
    for kind, number in sorted(collections.Counter(mutant.kind for mutant in chosen).items()):
        lines.append("  %-11s %5d of %d" % (kind, number, found[kind]))
    lines.append("places passed over, by reason:")
    for reason, number in sorted(skipped.items(), key=lambda item: -item[1]):
        lines.append("  %5d  %s" % (number, reason))
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
