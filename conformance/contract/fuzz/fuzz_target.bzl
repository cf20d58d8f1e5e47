# SPDX-License-Identifier: Apache-2.0
"""fuzz_target: one parser under a fuzzer, and the same over its corpus as an ordinary test.

NAME_libfuzzer needs clang:  bazel run --config=fuzz //conformance/contract/fuzz:NAME_libfuzzer -- -max_total_time=60 FOLDER
NAME_test replays corpus/NAME/{accepted,refused}/ with any compiler; inputs that once crashed live there too.
"""

def fuzz_target(name, deps):
    native.cc_library(
        name = name,
        testonly = True,
        srcs = [name + "_fuzz.cc"],
        deps = deps + [":only_errors"],
        alwayslink = True,
    )
    native.cc_binary(
        name = name + "_libfuzzer",
        testonly = True,
        srcs = ["fuzzer_main.cc"],
        tags = ["manual"],
        deps = [":" + name, ":only_errors"],
    )
    corpus = native.glob(["corpus/" + name + "/**"], allow_empty = False)
    native.cc_test(
        name = name + "_test",
        size = "small",
        srcs = ["replay_main.cc"],
        args = ["$(rootpath %s)" % path for path in corpus],
        data = corpus,
        deps = [":" + name, ":only_errors", "//conformance/contract:file_io"],
    )
