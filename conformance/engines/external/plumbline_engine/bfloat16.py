# SPDX-License-Identifier: Apache-2.0
"""bf16 as NumPy can carry it: the upper half of an fp32 number's bits, in uint16."""
import numpy


def to_bfloat16(values):
    """Rounds fp32 to the nearest bf16, ties to even (docs/semantics.md, One step); a NaN stays one."""
    bits = numpy.ascontiguousarray(values, "<f4").view("<u4")
    # A carry out of the mantissa is the next exponent; the sum wraps for NaN only.
    rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
    return numpy.where(numpy.isnan(values), bits >> 16 | 0x40, rounded).astype("<u2")


def from_bfloat16(bits):
    return (numpy.asarray(bits, "<u4") << 16).view("<f4")


def rounded_to_bfloat16(values):
    return from_bfloat16(to_bfloat16(values))
