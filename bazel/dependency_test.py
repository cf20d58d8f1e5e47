# SPDX-License-Identifier: Apache-2.0
"""Reads every #include of the project and fails on an edge that the table below does not allow.

  dependency_test.py WORKSPACE_FILE   checks the tree that this file lies in
  dependency_test.py --self-test      plants a bad edge of every kind in a temporary tree and checks that each is found

The table is the one of the design's section on folders. It judges text, not linking: Bazel sees to the rest.
"""

import pathlib
import re
import subprocess
import sys
import tempfile

# One row per folder (or file prefix; the longest that fits a file counts). A folder may always use itself.
#   prefix                                           may use (prefixes; "-" takes one away)                        libraries
TABLE = [
    ("conformance/contract/instrumentation",         "conformance/contract",                                       "nvtx"),
    ("conformance/contract/testing/nvtx_collector",  "conformance/contract",                                       "nvtx"),
    ("conformance/contract",                         "",                                                           "nlohmann xxhash"),
    ("conformance/defects/optimized_defects_main.",  "conformance/defects optimized/engine/main.h",                ""),
    ("conformance/defects",                          "",                                                           ""),
    ("conformance/engines/torch_eager",              "conformance/contract",                                       "torch"),
    ("conformance/runner",                           "conformance -conformance/engines/torch_eager reports/record", "nlohmann"),
    ("conformance",                                  "-conformance/engines/torch_eager reports/record",            ""),
    ("reference",                                    "conformance/contract",                                       ""),
    ("kernels",                                      "conformance/contract/dtype.h conformance/contract/error.h",  "cuda intrinsics"),
    ("optimized/backend",                            "optimized kernels conformance/contract",                     "onednn cuda"),
    ("optimized/comm/gloo",                          "optimized kernels conformance/contract",                     "torch"),
    ("optimized/comm/nccl",                          "optimized kernels conformance/contract",                     "cuda"),
    ("optimized/offload",                            "optimized kernels conformance/contract",                     "cuda liburing"),
    ("optimized/checkpoint",                         "optimized kernels conformance/contract",                     "sqlite3 liburing"),
    ("optimized",                                    "kernels conformance/contract",                               ""),
    ("fault_injection/decorators",                   "fault_injection conformance/contract reports/record "
                                                     "optimized/comm/communicator.h optimized/checkpoint/file_system.h", ""),
    ("fault_injection",                              "conformance/contract reports/record",                        ""),
    ("perf",                                         "conformance/contract reports/record kernels",                "cuda nvtx"),
    ("reports",                                      "",                                                           "nlohmann sqlite3"),
    ("cli",                                          "conformance -conformance/engines/torch_eager reports",       "nlohmann CLI fmt"),
    ("bazel",                                        "",                                                           "test"),
]

# Tests, benches and fuzz targets may use these on top of their folder's row.
TEST_MAY_USE = ["reference/ops", "conformance/oracle"]
TEST_LIBRARIES = ["test"]
TEST_FILE = re.compile(r"(^|/)testing/|_(test|bench|fuzz|test_util)\.[a-z]+$")

# Library -> its headers, and the ends of names of the files that may include them where a row allows the library.
CODE = (".h", ".cc", ".cu", ".cuh")
LIBRARIES = {
    "torch":      (r"(torch|ATen|c10|caffe2)/", (".cc",)),
    "cuda":       (r"(cuda|cublas|cudnn|cupti|curand|cusolver|cusparse|cufft|nvrtc|nccl|nvml|nvToolsExt|cooperative_groups|mma\.h"
                   r"|cub/|thrust/|vector_types\.h)", CODE),
    "onednn":     (r"(dnnl[a-z_]*|omp)\.h", (".cc",)),
    "nvtx":       (r"nvtx3/", CODE),
    "nlohmann":   (r"nlohmann/", (".cc",)),
    "xxhash":     (r"xxhash\.h$", (".cc",)),
    "CLI":        (r"CLI/", CODE),
    "fmt":        (r"fmt/", CODE),
    "sqlite3":    (r"sqlite3\.h$", (".cc",)),
    "liburing":   (r"liburing", (".cc",)),
    "intrinsics": (r"([a-z0-9]*intrin|arm_neon)\.h$", CODE),
    "test":       (r"(gtest|gmock|catch2|benchmark)/", CODE),
}
# Kernels see CUDA in device code and in the files that launch it, not in the code that computes on the CPU.
NARROWER = {("kernels", "cuda"): (".cu", ".cuh", "_launch.h", "_launch.cc")}

# The reference is sequential and draws only from the contract's streams.
FORBIDDEN_STANDARD = {
    "reference": {"thread", "mutex", "shared_mutex", "atomic", "future", "condition_variable", "barrier", "latch", "semaphore",
                  "stop_token", "execution", "random", "pthread.h"},
}
STANDARD = re.compile(r"[a-z_0-9]+$|(sys|linux|netinet|arpa|net)/[a-z_0-9]+\.h$|("
                      r"assert|ctype|dirent|dlfcn|elf|errno|fcntl|fenv|float|fnmatch|getopt|glob|inttypes|limits|link|locale|malloc|math|netdb|poll|pthread"
                      r"|sched|semaphore|setjmp|signal|spawn|stdarg|stddef|stdint|stdio|stdlib|string|strings|termios|time|unistd"
                      r"|cxxabi|execinfo|numa|hwloc)\.h$")

MAX_LIBTORCH_FILES = 12
INCLUDE = re.compile(r"^[ \t]*#[ \t]*include(?:_next)?\b[ \t]*(.*?)[ \t]*(?://.*)?$", re.MULTILINE)
BLOCK_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)


def begins(path, prefix):
    """Whether `path` lies in folder `prefix`, or `prefix` names the beginning of its file name."""
    return path.startswith(prefix + "/") or (path.startswith(prefix) and "/" not in path[len(prefix):] and "/" in prefix)


def row_of(file):
    rows = [row for row in TABLE if begins(file, row[0])]
    return max(rows, key=lambda row: len(row[0])) if rows else None


def library_of(header):
    return next((name for name, (pattern, _) in LIBRARIES.items() if re.match(pattern, header)), None)


def judge_workspace_include(file, path, row, is_test):
    if path.startswith((".", "/")) or ".." in path.split("/") or not any(begins(path, r[0]) for r in TABLE):
        return '"%s" is not a path from the workspace\'s root; libraries are included with <>' % path
    if TEST_FILE.search(path) and not is_test:
        return "product code includes the test file %s" % path
    prefix, may_use, _ = row
    allowed = [word for word in [prefix] + may_use.split() if not word.startswith("-")]
    denied = [word[1:] for word in may_use.split() if word.startswith("-")]
    allowed += TEST_MAY_USE if is_test else []
    if not any(begins(path, word) or path == word for word in allowed) or any(begins(path, word) for word in denied):
        return "%s may not use %s (it may use %s)" % (prefix, path, ", ".join(allowed))
    return None


def judge_library_include(file, header, row, is_test):
    prefix, _, libraries = row
    library = library_of(header)
    if library is None:
        if not STANDARD.match(header):
            return "<%s> is of no library in the table" % header
        if not is_test and header in FORBIDDEN_STANDARD.get(prefix, ()):
            return "%s may not use <%s>" % (prefix, header)
        return None
    if library not in libraries.split() + (TEST_LIBRARIES if is_test else []):
        return "%s may not use %s (<%s>)" % (prefix, library, header)
    endings = NARROWER.get((prefix, library), LIBRARIES[library][1])
    if not file.endswith(endings):
        return "%s (<%s>) belongs in files that end in %s" % (library, header, ", ".join(endings))
    return None


def check(tree, files):
    """One line for each edge that is not allowed."""
    problems, libtorch_files = [], set()
    for file in files:
        row, is_test = row_of(file), bool(TEST_FILE.search(file))
        if row is None:
            problems.append("%s: its folder has no row in the table of bazel/dependency_test.py" % file)
            continue
        text = (tree / file).read_text(encoding="utf-8", errors="replace")
        text = BLOCK_COMMENT.sub(lambda comment: "\n" * comment.group().count("\n"), text)
        for match in INCLUDE.finditer(text):
            what = match.group(1)
            if re.fullmatch(r'"[^"]+"', what):
                problem = judge_workspace_include(file, what[1:-1], row, is_test)
            elif re.fullmatch(r"<[^>]+>", what):
                problem = judge_library_include(file, what[1:-1], row, is_test)
                if library_of(what[1:-1]) == "torch":
                    libtorch_files.add(file)
            else:
                problem = "#include %s is neither a path nor a header" % what
            if problem:
                problems.append("%s:%d: %s" % (file, text.count("\n", 0, match.start()) + 1, problem))
    if len(libtorch_files) > MAX_LIBTORCH_FILES:
        problems.append("%d files include LibTorch, at most %d may: %s"
                        % (len(libtorch_files), MAX_LIBTORCH_FILES, ", ".join(sorted(libtorch_files))))
    return problems


def code_files(tree):
    """Tracked files; without git, or outside of a clone, all files that are not Bazel's or hidden."""
    try:
        listed = subprocess.run(["git", "-C", str(tree), "ls-files", "-z"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
        names = listed.stdout.decode().split("\0")
    except (OSError, subprocess.CalledProcessError):
        names = [path.relative_to(tree).as_posix() for path in tree.glob("**/*") if path.is_file()]
    return sorted(name for name in names
                  if name.endswith(CODE) and not name.startswith((".", "bazel-", "third_party/")) and (tree / name).is_file())


# (file, what it includes, part of the message or None where it is allowed)
SELF_TEST = [
    ("reference/ops/a.cc", '"conformance/contract/error.h"', None),
    ("reference/ops/a.cc", '"reference/ops/a.h"', None),
    ("reference/ops/a.cc", "<vector>", None),
    ("reference/ops/a.cc", '"optimized/engine/main.h"', "reference may not use optimized/engine/main.h"),
    ("reference/ops/a.cc", '"kernels/norm/norm.h"', "reference may not use kernels"),
    ("reference/ops/a.cc", '"conformance/oracle/compare.h"', "reference may not use conformance/oracle"),
    ("reference/ops/a.cc", "<thread>", "reference may not use <thread>"),
    ("reference/ops/a.cc", "<random>", "reference may not use <random>"),
    ("reference/ops/a.cc", "<immintrin.h>", "reference may not use intrinsics"),
    ("reference/ops/a.cc", "<nlohmann/json.hpp>", "reference may not use nlohmann"),
    ("reference/ops/a_test.cc", "<thread>", None),
    ("reference/ops/a.cc", '"a.h"', "not a path from the workspace's root"),
    ("reference/ops/a.cc", '"../ops/a.h"', "not a path from the workspace's root"),
    ("reference/ops/a.cc", '"vector"', "not a path from the workspace's root"),
    ("reference/ops/a.cc", "HEADER", "neither a path nor a header"),
    ("reference/ops/a.cc", "<boost/any.hpp>", "of no library in the table"),
    ("reference/ops/a.cc", '"reference/testing/fixture.h"', "product code includes the test file"),
    ("reference/ops/a_test.cc", '"reference/testing/fixture.h"', None),
    ("optimized/engine/step.cc", '"kernels/norm/norm.h"', None),
    ("optimized/engine/step.cc", '"reference/ops/norm.h"', "optimized may not use reference/ops/norm.h"),
    ("optimized/engine/step_test.cc", '"reference/ops/norm.h"', None),
    ("optimized/engine/step_test.cc", '"reference/train.h"', "optimized may not use reference/train.h"),
    ("optimized/engine/step_test.cc", '"conformance/oracle/compare.h"', None),
    ("optimized/engine/step_bench.cc", "<benchmark/benchmark.h>", None),
    ("optimized/engine/step.cc", "<gtest/gtest.h>", "optimized may not use test"),
    ("optimized/engine/step.cc", "<ATen/ATen.h>", "optimized may not use torch"),
    ("optimized/engine/step.cc", "<cuda_runtime.h>", "optimized may not use cuda"),
    ("optimized/engine/step.cc", '"conformance/defects/switch.h"', "optimized may not use conformance/defects"),
    ("optimized/engine/step.cc", '"fault_injection/plan.h"', "optimized may not use fault_injection"),
    ("optimized/engine/step.cc", "<dnnl.h>", "optimized may not use onednn"),
    ("optimized/backend/matmul.cc", "<dnnl.h>", None),
    ("optimized/backend/matmul.h", "<dnnl.h>", "onednn (<dnnl.h>) belongs in files that end in .cc"),
    ("optimized/backend/matmul.cc", "<ATen/ops/mm.h>", "optimized/backend may not use torch"),
    ("optimized/comm/gloo_communicator.h", "<c10/util/Half.h>", "torch (<c10/util/Half.h>) belongs in files that end in .cc"),
    ("optimized/comm/gloo_communicator.cc", "<torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>", None),
    ("optimized/comm/thread_communicator.cc", "<torch/torch.h>", "optimized may not use torch"),
    ("optimized/comm/nccl_communicator.cc", "<nccl.h>", None),
    ("optimized/offload/nvme.cc", "<liburing.h>", None),
    ("optimized/checkpoint/index.cc", "<sqlite3.h>", None),
    ("kernels/norm/norm.cc", "<immintrin.h>", None),
    ("kernels/norm/norm.cc", '"conformance/contract/dtype.h"', None),
    ("kernels/norm/norm.cc", '"conformance/contract/trace.h"', "kernels may not use conformance/contract/trace.h"),
    ("kernels/norm/norm.cc", "<cuda_runtime.h>", "cuda (<cuda_runtime.h>) belongs in files that end in .cu"),
    ("kernels/norm/norm.cu", "<cuda_runtime.h>", None),
    ("kernels/norm/norm_launch.h", "<cuda_runtime.h>", None),
    ("kernels/norm/norm_test.cc", "<catch2/catch.hpp>", None),
    ("conformance/contract/json.cc", "<nlohmann/json.hpp>", None),
    ("conformance/contract/json.h", "<nlohmann/json.hpp>", "belongs in files that end in .cc"),
    ("conformance/contract/json.cc", "<nvtx3/nvToolsExt.h>", "may not use nvtx"),
    ("conformance/contract/instrumentation.cc", "<nvtx3/nvToolsExt.h>", None),
    ("conformance/contract/json.cc", '"conformance/oracle/compare.h"', "conformance/contract may not use conformance/oracle"),
    ("conformance/oracle/compare.cc", "<nlohmann/json.hpp>", "conformance may not use nlohmann"),
    ("conformance/oracle/compare.cc", '"optimized/comm/ledger.h"', "conformance may not use optimized"),
    ("conformance/oracle/compare.cc", '"reference/train.h"', "conformance may not use reference"),
    ("conformance/oracle/compare.cc", '"conformance/cases/list.h"', None),
    ("conformance/runner/run.cc", "<nlohmann/json.hpp>", None),
    ("conformance/runner/run.cc", '"reports/record.h"', None),
    ("conformance/runner/run.cc", '"reports/html.h"', "conformance/runner may not use reports/html.h"),
    ("conformance/runner/run.cc", '"conformance/engines/torch_eager/model.h"', "may not use conformance/engines/torch_eager"),
    ("conformance/engines/torch_eager/model.cc", "<torch/torch.h>", None),
    ("conformance/engines/torch_eager/model.cc", '"kernels/norm/norm.h"', "may not use kernels"),
    ("conformance/defects/optimized_defects_main.cc", '"optimized/engine/main.h"', None),
    ("conformance/defects/switch.cc", '"optimized/engine/main.h"', "conformance/defects may not use optimized"),
    ("fault_injection/decorators/lossy.cc", '"optimized/comm/communicator.h"', None),
    ("fault_injection/plan.cc", '"optimized/comm/communicator.h"', "fault_injection may not use optimized"),
    ("fault_injection/decorators/lossy.cc", '"optimized/comm/ledger.h"', "may not use optimized/comm/ledger.h"),
    ("perf/timeline.cc", '"kernels/norm/norm.h"', None),
    ("perf/timeline.cc", "<nvtx3/nvToolsExt.h>", None),
    ("reports/html.cc", "<sqlite3.h>", None),
    ("reports/html.cc", '"conformance/contract/error.h"', "reports may not use conformance"),
    ("cli/main.cc", "<CLI/CLI.hpp>", None),
    ("cli/main.h", "<CLI/CLI.hpp>", None),
    ("cli/main.h", "<nlohmann/json.hpp>", "belongs in files that end in .cc"),
    ("conformance/cases/filter.cc", "<fnmatch.h>", None),
    ("cli/main.cc", '"conformance/runner/run.h"', None),
    ("cli/main.cc", '"optimized/engine/main.h"', "cli may not use optimized"),
    ("surprise/a.cc", "<vector>", "its folder has no row"),
]


def self_test():
    failures = []

    def expect(name, files, words):
        with tempfile.TemporaryDirectory() as folder:
            tree = pathlib.Path(folder)
            for file, text in files.items():
                (tree / file).parent.mkdir(parents=True, exist_ok=True)
                (tree / file).write_text(text)
            problems = check(tree, code_files(tree))
        right = not problems if words is None else len(problems) == 1 and words in problems[0]
        if not right:
            failures.append("%s: wanted %s, got %s" % (name, words or "no problem", problems or "none"))

    for file, what, words in SELF_TEST:
        expect("%s -> %s" % (file, what), {file: "// A comment.\n#include %s\n" % what}, words)
    expect("commented out", {"reference/a.cc": '// #include <thread>\n/*\n#include <thread>\n*/\n'}, None)
    expect("spaces, a comment behind", {"reference/a.cc": "  #  include <thread>  // why\n"}, "reference/a.cc:1: reference may not use <thread>")
    expect("after a block comment", {"reference/a.cc": "/*\n\n*/\n#include <thread>\n"}, "reference/a.cc:4:")
    torch = lambda count: {"conformance/engines/torch_eager/f%d.cc" % i: "#include <ATen/ATen.h>\n" for i in range(count)}
    expect("as many LibTorch files as allowed", torch(MAX_LIBTORCH_FILES), None)
    expect("one LibTorch file too many", torch(MAX_LIBTORCH_FILES + 1), "13 files include LibTorch, at most 12 may")
    expect("other files are not read", {"docs/a.md": '#include "x"\n', "third_party/a.h": '#include "x"\n'}, None)
    for failure in failures:
        print(failure)
    print("%d planted edges, %d judged wrongly" % (len(SELF_TEST), len(failures)))
    return 1 if failures else 0


def main(argument):
    if argument == "--self-test":
        return self_test()
    tree = pathlib.Path(argument).resolve().parent
    files = code_files(tree)
    problems = check(tree, files)
    for problem in problems:
        print(problem)
    print("%d files read, %d includes not allowed" % (len(files), len(problems)))
    return 1 if problems or not files else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
