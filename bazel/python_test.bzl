# SPDX-License-Identifier: Apache-2.0
"""python_test: runs a Python file as a test with the system's python3 (py_test needs a `python`, which Debian lacks).

The file uses the standard library only; it finds its data relative to the current directory (the runfiles), as
$(rootpath ...) in args names them.
"""

def python_test(name, main, args = [], data = [], size = "small", **kwargs):
    native.sh_test(
        name = name,
        size = size,
        srcs = ["//bazel:python_test.sh"],
        args = ["$(rootpath %s)" % main] + args,
        data = [main] + data,
        **kwargs
    )
