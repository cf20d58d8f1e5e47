# SPDX-License-Identifier: Apache-2.0
"""parser_fuzz: NAME_fuzz.cc, which defines Accepts() (only_errors.h), as three targets.

NAME_fuzz and NAME_fuzz_libfuzzer are those of bazel/fuzz.bzl. NAME_corpus_test replays corpus/NAME/{accepted,refused}/ and
demands that each input meets the fate its folder says. Inputs that once broke a parser are added there.
"""

load("//bazel:fuzz.bzl", "fuzz_target")

def parser_fuzz(name, deps):
    corpus = native.glob(["corpus/" + name + "/**"], allow_empty = False)
    source = name + "_fuzz.cc"
    fuzz_target(
        name = name + "_fuzz",
        srcs = ["fuzzer_main.cc", source],
        corpus = corpus,
        deps = deps + [":only_errors"],
    )
    native.cc_test(
        name = name + "_corpus_test",
        size = "small",
        srcs = ["corpus_main.cc", source],
        args = ["$(rootpath %s)" % path for path in corpus],
        data = corpus,
        deps = deps + [":only_errors", "//conformance/contract:file_io"],
    )
