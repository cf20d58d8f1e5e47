# SPDX-License-Identifier: Apache-2.0
"""engine_library: a cc_library of an engine, its twin `NAME_switchable` into which planted defects are built, and its twin
`NAME_mutable` into which generated mutants are.

    engine_library(
        name = "buckets",
        srcs = ["buckets.cc"],
        hdrs = ["buckets.h"],
        engine_deps = ["//optimized/comm:communicator"],   # themselves engine_library: the twin uses their twins
        deps = ["//conformance/contract:trace"],           # everything else
    )

The product is the plain library and nothing else. The twin compiles copies of the .cc files, to which the edits of
conformance/defects have been applied as branches; headers are shared, so a defect cannot be planted in a header.
The mutable twin is the same with the mutants of conformance/mutants, and with copies of headers too, in which arithmetic
of kernels lies: copies include each other's copies.
Nothing builds a twin unless it is asked for (tag manual), which only the switchable programs of the harness do.
"""

_APPLY_EDITS = "//conformance/defects:apply_edits.py"
_MUTANT_LIST_TOOL = "//conformance/mutants:mutant_list.py"
_MUTANTS = "//conformance/mutants:mutants.jsonl"

# What is no fault in a copy: a mutant may compare what is always true, leave a variable unused, or narrow a number.
_COPTS_OF_MUTANTS = ["-w", "-Wno-narrowing"]

def engine_library(
        name,
        srcs = [],
        hdrs = [],
        engine_deps = [],
        deps = [],
        edits = "//conformance/defects:edits",
        copts = [],
        visibility = None,
        tags = [],
        **kwargs):
    """See the top of the file. srcs are plain file names; `edits` is another set of edits in tests of the mechanism."""
    native.cc_library(
        name = name,
        srcs = srcs,
        hdrs = hdrs,
        deps = engine_deps + deps,
        tags = tags,
        visibility = visibility,
        copts = copts,
        **kwargs
    )
    native.cc_library(
        name = name + "_switchable",
        srcs = [_switchable_copy(name, src, edits) for src in srcs],
        hdrs = hdrs,
        deps = [_twin(label, "_switchable") for label in engine_deps] + deps + ["//conformance/defects:switch"],
        tags = tags + ["manual"],
        visibility = ["//visibility:public"],
        copts = copts,
        **kwargs
    )
    native.cc_library(
        name = name + "_mutable",
        srcs = [_mutable_copy(name, src) for src in srcs],
        hdrs = hdrs + [_mutable_copy(name, hdr) for hdr in hdrs],
        deps = [_twin(label, "_mutable") for label in engine_deps] + deps + ["//conformance/defects:switch"],
        tags = tags + ["manual"],
        visibility = ["//visibility:public"],
        copts = copts + _COPTS_OF_MUTANTS,
        **kwargs
    )

def defect_table(name, edits, visibility = None):
    """The table of all defects in `edits`, which a program that links switchable twins must link too."""
    native.genrule(
        name = name + "_source",
        srcs = [edits],
        outs = [name + "_source.cc"],
        cmd = "python3 -I $(location %s) table --out $@ $(SRCS)" % _APPLY_EDITS,
        tools = [_APPLY_EDITS],
    )
    native.cc_library(
        name = name,
        srcs = [name + "_source.cc"],
        visibility = visibility,
        deps = ["//conformance/defects:switch"],
    )

def _switchable_copy(name, src, edits):
    if not src.endswith(".cc"):
        return src
    native.genrule(
        name = "%s_switchable_%s" % (name, src),
        srcs = [src, edits],
        outs = ["switchable/" + src],
        cmd = "python3 -I $(location %s) apply --out $@ $(SRCS)" % _APPLY_EDITS,
        tags = ["manual"],
        tools = [_APPLY_EDITS],
    )
    return "switchable/" + src

def _mutable_copy(name, src):
    native.genrule(
        name = "%s_mutable_%s" % (name, src),
        srcs = [src, _MUTANTS],
        outs = ["mutants/" + src],
        cmd = "python3 -I $(location %s) apply --list $(location %s) --out $@ $(location %s)" % (_MUTANT_LIST_TOOL, _MUTANTS, src),
        tags = ["manual"],
        tools = [_MUTANT_LIST_TOOL],
    )
    return "mutants/" + src

def _twin(label, suffix):
    if label.startswith("//") and ":" not in label:
        label += ":" + label.split("/")[-1]
    return label + suffix
