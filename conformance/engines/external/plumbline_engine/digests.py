# SPDX-License-Identifier: Apache-2.0
"""Digests of tensors in a trace (docs/exact-family.md, Digests; docs/formats.md, OUT_DIR): sums over elements, of
slices too."""
import numpy

_BITS = {2: "<u2", 4: "<u4", 8: "<u8"}


def mix(x):
    x = x ^ x >> numpy.uint64(30)
    x = x * numpy.uint64(0xBF58476D1CE4E5B9)
    x = x ^ x >> numpy.uint64(27)
    x = x * numpy.uint64(0x94D049BB133111EB)
    return x ^ x >> numpy.uint64(31)


def _hash(begin, bits):
    index = numpy.arange(begin, begin + bits.size, dtype=numpy.uint64)
    return "%016x" % int(mix(mix(index + numpy.uint64(0x9E3779B97F4A7C15)) + bits).sum(dtype=numpy.uint64))


def integers_of(values):
    """The int64 values of an array that must hold integers, of any type."""
    values = numpy.asarray(values)
    if values.dtype.kind != "f":
        return values.astype(numpy.int64)
    with numpy.errstate(invalid="ignore"):
        integers = values.astype(numpy.int64)
    wrong = numpy.flatnonzero(integers != values)
    if wrong.size:
        raise ValueError("element %d is %r; family exact has integers only" % (wrong[0], values.flat[wrong[0]]))
    return integers


def exact_digest(begin, values, with_sums):
    """[hash] or [hash, sum, sum of squares, indexed sum] of elements begin, begin + 1, ... of family exact."""
    v = integers_of(values).ravel()
    digest = [_hash(begin, v.view(numpy.uint64))]
    if with_sums:
        index = numpy.arange(begin + 1, begin + 1 + v.size, dtype=numpy.int64)
        # int64 wraps, and 2^61 divides 2^64.
        digest += [int(v.sum()), int((v * v).sum()), int((index * v).sum()) % 2**61]
    return digest


def real_digest(begin, values):
    """[hash] over the bits of the elements, in their storage type; bf16 comes as uint16."""
    bits = numpy.ascontiguousarray(values).ravel()
    return [_hash(begin, bits.view(_BITS[bits.itemsize]).astype(numpy.uint64))]
