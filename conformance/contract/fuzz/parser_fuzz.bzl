# SPDX-License-Identifier: Apache-2.0
"""parser_fuzz: NAME_fuzz.cc, which defines Accepts() (only_errors.h), as three targets.

NAME_fuzz and NAME_fuzz_libfuzzer are those of bazel/fuzz.bzl. NAME_corpus_test replays corpus/NAME/{accepted,refused}/
and demands that each input meets the fate its folder says. Inputs that once broke a parser are added there. `corpus` is the
folder, where several packages or kinds of tests lie beside each other; `mutations` are those of NAME_fuzz.
"""

load("//bazel:fuzz.bzl", "fuzz_target")

_FOLDER = "//conformance/contract/fuzz:"
_OF_CORPUS_TEST = [_FOLDER + "only_errors", "//conformance/contract:file_io"]

def parser_fuzz(name, deps, corpus = "corpus", mutations = 20000):
    files = native.glob([corpus + "/" + name + "/**"], allow_empty = False)
    source = name + "_fuzz.cc"
    fuzz_target(
        name = name + "_fuzz",
        srcs = [_FOLDER + "fuzzer_main.cc", source],
        corpus = files,
        mutations = mutations,
        deps = deps + [_FOLDER + "only_errors"],
    )
    native.cc_test(
        name = name + "_corpus_test",
        size = "small",
        srcs = [_FOLDER + "corpus_main.cc", source],
        args = ["$(rootpath %s)" % path for path in files],
        data = files,
        deps = deps + [label for label in _OF_CORPUS_TEST if label not in deps],
    )
