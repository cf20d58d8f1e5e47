# SPDX-License-Identifier: Apache-2.0
"""fuzz_target: one LLVMFuzzerTestOneInput, as a short repeatable test and as a libFuzzer program.

    fuzz_target(
        name = "tensor_file_fuzz",
        srcs = ["tensor_file_fuzz.cc"],
        corpus = glob(["tensor_file_corpus/*"]),
        deps = [":tensor_file"],
    )

gives the test `tensor_file_fuzz`, part of `bazel test //...` with any compiler (the corpus and `mutations` seeded mutations
of it), and the program `tensor_file_fuzz_libfuzzer`, which is built only when asked for and searches until it is stopped:

    bazel build --config=fuzz //folder:tensor_file_fuzz_libfuzzer
    bazel-bin/folder/tensor_file_fuzz_libfuzzer -max_total_time=600 NEW_INPUTS_FOLDER CORPUS_FOLDER
"""

def fuzz_target(name, srcs, deps = [], corpus = [], mutations = 20000, tags = [], **kwargs):
    native.cc_test(
        name = name,
        size = "small",
        srcs = srcs,
        args = ["--mutations=%d" % mutations] + ["$(rootpath %s)" % file for file in corpus],
        data = corpus,
        deps = deps + ["//bazel:fuzz_driver"],
        tags = tags,
        **kwargs
    )
    native.cc_binary(
        name = name + "_libfuzzer",
        testonly = True,
        srcs = srcs,
        deps = deps,
        tags = tags + ["manual"],
        **kwargs
    )
