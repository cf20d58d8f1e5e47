# SPDX-License-Identifier: Apache-2.0
"""Tries generated mutants with `plumbline verify --mutants`, in batches, and says which survive.

  run_mutants.py run --results FILE [--programs DIR] [--only ID...] [--jobs N] [--timeout S] [--batch N] [WORKSPACE]
  run_mutants.py report --results FILE [--notes FILE] [WORKSPACE]
  run_mutants.py clean [--programs DIR] [--filter PATTERN] [--jobs N] [WORKSPACE]
                                does the program with every mutant off write what the product writes, bit for bit?
  run_mutants.py pack --programs DIR [WORKSPACE]      copies the built programs to DIR, for a machine without Bazel

`run` and `clean` need the programs built: ./plumbline build //cli:plumbline //conformance/mutants:optimized_mutants. With
--programs they take them from DIR, where `pack` puts them, and need no Bazel: cli/plumbline,
conformance/mutants/optimized_mutants, optimized/engine/optimized, reference/reference_engine,
conformance/engines/torch_eager/torch_eager, conformance/defects/optimized_defects and LICENSE. LibTorch is not packed: its
libraries are found in DIR/_solib_k8, laid out as in bazel-bin, or through LD_LIBRARY_PATH, which engines inherit. WORKSPACE
is then the sources of the same commit.

FILE gets one JSON
object a line and mutant; what is in it is not tried again, so that a run that was stopped goes on. A mutant is tried on the
cases for planted defects, of both families unless only one uses its file: on the first few, since most die there, then on
all. The first case that does not pass kills it; so does a description that lacks what cases need: `verify --engine` asks it. A time-out kills only if it happens again with five times the time. Each
batch runs the program with every mutant off too, as `verify` does with planted defects, and counts for nothing if that twin
does not pass.

Notes are lines `id TAB equivalent|guard|hole TAB reason` about survivors: no input can show the mutant; no valid input can,
for it changes what is done about invalid ones; the oracle should have seen it.
"""

import argparse
import array
import collections
import importlib.util
import json
import pathlib
import random
import resource
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
spec = importlib.util.spec_from_file_location("mutant_list", HERE / "mutant_list.py")
mutant_list = importlib.util.module_from_spec(spec)
spec.loader.exec_module(mutant_list)

# Of a stage: its name in the results, the family of its cases, and how many of them (0: all).
Stage = collections.namedtuple("Stage", "name family cases")
STAGES = (Stage("exact-first", "exact", 2), Stage("gpt2-first", "gpt2", 1), Stage("llama-first", "llama", 1),
          Stage("exact", "exact", 0), Stage("gpt2", "gpt2", 0), Stage("llama", "llama", 0), Stage("describe", "", 0))
NOTES = ("equivalent", "guard", "hole")
TIMEOUT_FACTOR = 5
MAX_MEMORY_BYTES = 6 << 30  # a mutant may ask for all there is
MAX_FILE_BYTES = 1 << 30


class RunError(Exception):
    """The programs or a batch are not what they should be: one line."""


def outcome_of(defect):
    """(outcome, what saw it) from a line of a record's kill table. Outcomes: check, engine, timeout, declined, survived."""
    checks = [name for name in defect["caught_by"] if name != "engine"]
    if checks:
        return "check", checks
    if defect["caught"]:
        return "engine", ["engine"]
    if defect["verdict"] == "PASS":
        return "survived", []
    if defect["verdict"] == "UNSUPPORTED":
        return "declined", ["declined"]
    if defect["verdict"] == "NOT_RUN" and defect["message"] != "interrupted":  # it says that the machine lacks what the twin has in the same batch
        return "declined", ["environment"]
    if defect["verdict"] == "VACUOUS":
        return "check", ["vacuous"]
    if defect["verdict"] == "ERROR" and "no truth" not in defect["message"]:
        return "timeout", ["timeout"]
    raise RunError("mutant %s: verdict %s: %s" % (defect["id"], defect["verdict"], defect["message"]))


def stages_of(mutant):
    return [stage for stage in STAGES if mutant.family in (stage.family, "any") or not stage.family]


def read_results(path):
    """{(id, stage): result}, the last of each."""
    if not path.exists():
        return {}
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return {(line["id"], line["stage"]): line for line in lines}


def verdicts(mutants, results):
    """{id: (outcome, by)} of the mutants that are done: the first stage that killed, or survived in all."""
    done = {}
    for mutant in mutants:
        seen = [results.get((mutant.id, stage.name)) for stage in stages_of(mutant)]
        kill = next((result for result in seen if result and result["outcome"] != "survived"), None)
        if kill:
            done[mutant.id] = (kill["outcome"], kill["by"])
        elif all(seen):
            done[mutant.id] = ("survived", [])
    return done


def to_try(mutants, results, stage):
    """Mutants that this stage is to try: not tried in it, nor killed in one before it."""
    open_ones = []
    for mutant in mutants:
        stages = stages_of(mutant)
        if stage not in stages or (mutant.id, stage.name) in results:
            continue
        before = stages[:stages.index(stage)]
        if all(results.get((mutant.id, earlier.name), {}).get("outcome") == "survived" for earlier in before):
            open_ones.append(mutant)
    return open_ones


def limit_child():
    resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY_BYTES, MAX_MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_FSIZE, (MAX_FILE_BYTES, MAX_FILE_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


PRODUCT, ENGINE, PLUMBLINE = "optimized/engine/optimized", "conformance/mutants/optimized_mutants", "cli/plumbline"
# What `verify --mutants` starts, and the text that its batches are made of. Where they lie in DIR as in bazel-bin,
# `plumbline` finds them.
PROGRAMS = (PLUMBLINE, ENGINE, PRODUCT, "reference/reference_engine", "conformance/engines/torch_eager/torch_eager",
            "conformance/defects/optimized_defects")
TEXT = "LICENSE"


def programs_of(args):
    """The folder that holds the programs."""
    folder = args.programs.resolve() if args.programs else args.workspace / "bazel-bin"
    # Beside a built program lie links to the others, which a folder of copies must have itself.
    needed = PROGRAMS + (TEXT,) if args.programs else (PLUMBLINE, ENGINE)
    missing = [name for name in needed if not (folder / name).is_file()]
    if missing:
        raise RunError("%s is not %s" % (missing[0], "in %s" % folder if args.programs else "built"))
    return folder


def pack(args):
    for name in PROGRAMS + (TEXT,):
        source, target = args.workspace / ("" if name == TEXT else "bazel-bin") / name, args.programs / name
        if not source.is_file():
            raise RunError("%s is not built" % name)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.unlink(missing_ok=True)
        shutil.copy(source, target)
        print("%s %d bytes" % (name, target.stat().st_size))
    return 0


class Runner:
    def __init__(self, programs, jobs):
        self.plumbline, self.engine, self.jobs = programs / PLUMBLINE, programs / ENGINE, jobs
        listed = subprocess.run([self.engine, "--list-defects"], capture_output=True, text=True, check=True).stdout
        self.ids = {line.split("\t")[0] for line in listed.splitlines()}

    def try_all(self, mutants, stage, timeout):
        """Results of one batch. Raises unless every mutant is in the record once and the clean twin passed."""
        with tempfile.TemporaryDirectory() as folder:
            listed, out = pathlib.Path(folder) / "mutants", pathlib.Path(folder) / "out"
            listed.write_text("".join("%s\t%s\tany: of the checks\t%s\n" % (
                m.id, mutant_list.one_line(m).replace("\t", " "), stage.family)
                                      for m in mutants))
            command = [self.plumbline, "verify", "--mutants", listed, "--mutant-engine", self.engine, "--timeout", str(timeout),
                       "--jobs", str(self.jobs), "--out", out] + (["--mutant-cases", str(stage.cases)] if stage.cases else [])
            done = subprocess.run(command, capture_output=True, text=True, preexec_fn=limit_child)
            if not (out / "record.json").exists():
                raise RunError("verify ended with %d: %s" % (done.returncode, done.stderr.strip()))
            record = json.loads((out / "record.json").read_text())
        return self.results(record, mutants, stage)

    def results(self, record, mutants, stage):
        wrong = [case for case in record["cases"] if case["verdict"] != "PASS"]
        if wrong or not record["cases"] or record["interrupted"]:
            raise RunError("the twin with every mutant off does not pass: %s"
                           % ("%s: %s" % (wrong[0]["id"], wrong[0]["message"]) if wrong else "it was not run to the end"))
        if sorted(defect["id"] for defect in record["defects"]) != sorted(mutant.id for mutant in mutants):
            raise RunError("the record's mutants are not those of the batch")
        results = []
        for defect in record["defects"]:
            outcome, by = outcome_of(defect)
            results.append({"id": defect["id"], "stage": stage.name, "outcome": outcome, "by": by, "message": defect["message"]})
        return results


# Keys of a description for want of which `verify` declines cases.
NEEDED = ("families", "dtypes", "optimizers", "zero_stages", "features")
OPTIONAL_FEATURES = ("ledger", "dump", "save", "memory", "deterministic")  # without one, checks do not apply


def lacks(described, clean):
    """What the clean program's description lists and this one does not."""
    lost = ["%s %s" % (key, value) for key in NEEDED for value in clean.get(key, [])
            if value not in described.get(key, []) and value not in OPTIONAL_FEATURES]
    if described.get("max_data_degree", 0) < clean.get("max_data_degree", 0):
        lost.append("max_data_degree %s" % clean["max_data_degree"])
    return lost


def describe(engine, id=None):
    done = subprocess.run([engine] + (["--defect", id] if id else []) + ["describe"], capture_output=True, text=True,
                          timeout=60, preexec_fn=limit_child)
    try:
        return json.loads(done.stdout) if done.returncode == 0 else None
    except ValueError:
        return None


def try_descriptions(runner, mutants, stage):
    clean, results = describe(runner.engine), []
    for mutant in mutants:
        described = describe(runner.engine, mutant.id)
        lost = lacks(described, clean) if described else []
        outcome = "engine" if not described else "declined" if lost else "survived"
        by = [] if outcome == "survived" else [outcome]
        results.append({"id": mutant.id, "stage": stage.name, "outcome": outcome, "by": by, "message": ", ".join(lost)})
    return results


def append(path, results):
    with path.open("a", encoding="utf-8") as file:
        file.write("".join(json.dumps(result, ensure_ascii=False) + "\n" for result in results))


def run(args, mutants):
    runner = Runner(programs_of(args), args.jobs)
    missing = [mutant.id for mutant in mutants if mutant.id not in runner.ids]
    if missing:
        raise RunError("%d mutants are not in the program; build it again: %s" % (len(missing), missing[0]))
    if args.only:
        mutants = [mutant for mutant in mutants if mutant.id in args.only]
    # In no order of files or kinds, so that a run that was stopped is a fair sample.
    random.Random(0).shuffle(mutants)
    done = verdicts(mutants, read_results(args.results))
    todo = [mutant for mutant in mutants if mutant.id not in done]
    for begin in range(0, len(todo), args.batch):
        batch = todo[begin:begin + args.batch]
        for stage in STAGES:
            try_stage(runner, to_try(batch, read_results(args.results), stage), stage, args)
        done = verdicts(mutants, read_results(args.results))
        print("%d of %d tried, %d survive" % (len(done), len(mutants), sum(outcome == "survived" for outcome, _ in done.values())),
              flush=True)
    return 0


def try_stage(runner, mutants, stage, args):
    if not mutants:
        return
    if not stage.family:
        return append(args.results, try_descriptions(runner, mutants, stage))
    results = runner.try_all(mutants, stage, args.timeout)
    slow = {result["id"] for result in results if result["outcome"] == "timeout"}
    if slow:
        again = runner.try_all([mutant for mutant in mutants if mutant.id in slow], stage, args.timeout * TIMEOUT_FACTOR)
        results = [result for result in results if result["id"] not in slow] + again
    append(args.results, results)


# Of floating-point types: what an element is read as, the bits of its infinity, and the largest number without a sign.
FLOATS = {"F64": ("Q", 0x7FF0000000000000, (1 << 63) - 1), "F32": ("I", 0x7F800000, (1 << 31) - 1), "BF16": ("H", 0x7F80, (1 << 15) - 1)}


def tensors_of(path):
    """({name: (dtype, elements or bytes)} of a safetensors file, whether one is NaN). Every NaN is None: which operand's sign
    a NaN takes is left to the processor, and which operand comes first to the compiler."""
    data = path.read_bytes()
    begin = 8 + int.from_bytes(data[:8], "little")
    tensors, any_nan = {}, False
    for name, entry in json.loads(data[8:begin]).items():
        if name == "__metadata__":
            tensors[name] = entry
            continue
        values = data[begin + entry["data_offsets"][0]:begin + entry["data_offsets"][1]]
        if entry["dtype"] in FLOATS:
            code, infinity, mask = FLOATS[entry["dtype"]]
            values = [None if (bits & mask) > infinity else bits for bits in array.array(code, values)]
            any_nan |= None in values
        tensors[name] = (entry["dtype"], entry["shape"], values)
    return tensors, any_nan


def comparable(path):
    """What two runs of one engine must have in common: all bits, but for NaN's, and the time that a trace says was spent
    waiting. Where a dump beside a trace holds a NaN, the dump stands for the trace's digests."""
    if path.suffix == ".safetensors":
        return tensors_of(path)[0]
    if path.name != "trace.jsonl":
        return path.read_bytes()
    left_out = {"comm_wait_us"}
    if any(tensors_of(dump)[1] for dump in path.parent.glob("tensors-*.safetensors")):
        left_out |= {"gradient", "moment", "second_moment", "master", "weight"}
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [{key: value for key, value in line.items() if key not in left_out} for line in lines]


def differences(left, right):
    """(number of files compared, paths that one side lacks or that differ)."""
    files = lambda root: {path.relative_to(root) for path in root.glob("**/*") if path.is_file() and not path.is_symlink()}
    both = files(left) & files(right)
    different = [path for path in both if comparable(left / path) != comparable(right / path)]
    return len(both), sorted(different + list(files(left) ^ files(right)))


def clean(args):
    """Runs the product and the program with every mutant off on all cases of `verify`, and compares what they wrote."""
    runner = Runner(programs_of(args), args.jobs)
    with tempfile.TemporaryDirectory() as folder:
        runs = []
        for name, program in [("product", programs_of(args) / PRODUCT), ("mutants", runner.engine)]:
            out = pathlib.Path(folder) / name
            command = [runner.plumbline, "verify", "--engine", program, "--no-self-test", "--keep", "--filter", args.filter, "--jobs",
                       str(args.jobs), "--out", out]
            done = subprocess.run(command, capture_output=True, text=True)
            print("%s: %s" % (name, done.stdout.strip().splitlines()[-2:-1] or done.stderr.strip()), flush=True)
            runs.append(out / "work" / "runs")
        num_files, different = differences(*runs)
    print("%d files of runs compared, %d differ" % (num_files, len(different)))
    for path in different[:10]:
        print("  %s" % path)
    return 1 if different or not num_files else 0


def read_notes(path):
    notes = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1) if path else []:
        if not line or line.startswith("#"):
            continue
        fields = line.split("\t")
        if len(fields) != 3 or fields[1] not in NOTES or not fields[2]:
            raise RunError("%s:%d: not `id TAB %s TAB reason`" % (path, number, "|".join(NOTES)))
        notes[fields[0]] = (fields[1], fields[2])
    return notes


def rate(part, whole):
    return "%d of %d (%.1f %%)" % (part, whole, 100 * part / whole) if whole else "0 of 0"


def unexplained(survivors):
    """Each with its place, the line it changes and the whole change; then the lines to be completed in the notes."""
    lines = ["", "survivors without a note: %d" % len(survivors)]
    for mutant in survivors:
        change = "left out" if mutant.form == "statement" else mutant.replacement
        lines += ["%s:%d  %s  %s, seen in family %s" % (mutant.file, mutant.line, mutant.id, mutant.kind, mutant.family),
                  "    line: %s" % mutant.anchor, "    - %s" % " ".join(mutant.original.split()), "    + %s" % change]
    if survivors:
        lines += ["", "to be completed and added to the notes:"]
        lines += ["%s\t?\t" % mutant.id for mutant in survivors] + [""]
    return lines


def report(mutants, results, notes, num_stale):
    """The text of the report."""
    done = verdicts(mutants, results)
    tried = [mutant for mutant in mutants if mutant.id in done]
    survivors = [mutant for mutant in tried if done[mutant.id][0] == "survived"]
    killed = len(tried) - len(survivors)
    note_of = lambda mutant: notes.get(mutant.id, ("", ""))[0]
    unseeable = [mutant for mutant in survivors if note_of(mutant) == "equivalent"]
    guards = [mutant for mutant in survivors if note_of(mutant) == "guard"]
    lines = ["%d mutants, %d stale, %d tried" % (len(mutants) + num_stale, num_stale, len(tried)),
             "killed: %s" % rate(killed, len(tried)),
             "killed of those not shown equivalent: %s" % rate(killed, len(tried) - len(unseeable)),
             "... nor a guard against invalid input: %s" % rate(killed, len(tried) - len(unseeable) - len(guards)), ""]
    lines += ["how: " + ", ".join("%s %d" % pair for pair in collections.Counter(
        done[m.id][0] for m in tried).most_common())]
    lines += ["by (a mutant may be seen by several): " + ", ".join("%s %d" % pair for pair in collections.Counter(
        name for m in tried for name in done[m.id][1]).most_common()), ""]
    for title, key in [("kind", lambda m: m.kind), ("family", lambda m: m.family), ("file", lambda m: m.file)]:
        lines.append("%-44s killed" % title)
        for name in sorted({key(m) for m in tried}):
            of = [m for m in tried if key(m) == name]
            lines.append("%-44s %s" % (name, rate(sum(done[m.id][0] != "survived" for m in of), len(of))))
        lines.append("")
    lines.append("survivors with a note:")
    for mutant in survivors:
        if mutant.id in notes:
            lines.append("%s %s\n    %s: %s" % ((mutant.id, mutant_list.one_line(mutant)) + notes[mutant.id]))
    lines += unexplained([mutant for mutant in survivors if mutant.id not in notes])
    gone = sorted(id for id in notes if id not in {mutant.id for mutant in survivors})
    lines.append("notes about none of these survivors (killed, not tried or stale): %s" % (" ".join(gone) or "none"))
    return "\n".join(lines) + "\n"


def main(argv):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("mode", choices=["run", "report", "clean", "pack"])
    parser.add_argument("--list", type=pathlib.Path, default=HERE / "mutants.jsonl")
    parser.add_argument("--results", type=pathlib.Path)
    parser.add_argument("--notes", type=pathlib.Path)
    parser.add_argument("--programs", type=pathlib.Path)
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--filter", default="*")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--timeout", type=float, default=4)
    parser.add_argument("--batch", type=int, default=100)
    parser.add_argument("workspace", nargs="?", type=pathlib.Path, default=HERE.parent.parent)
    args = parser.parse_intermixed_args(argv)
    args.workspace = args.workspace.resolve()
    if args.mode in ("run", "report") and not args.results:
        parser.error("%s needs --results" % args.mode)
    if args.mode == "pack" and not args.programs:
        parser.error("pack needs --programs")
    try:
        if args.mode == "clean":
            return clean(args)
        if args.mode == "pack":
            return pack(args)
        everything = mutant_list.read(args.list)
        fit, stale = mutant_list.fitting(args.workspace, everything)
        if args.mode == "run":
            return run(args, fit)
        print(report(fit, read_results(args.results), read_notes(args.notes), len(stale)), end="")
        return 0
    except (RunError, mutant_list.ListError) as error:
        print("run_mutants.py: %s" % error, file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
