# SPDX-License-Identifier: Apache-2.0
"""Masks of dropout (docs/exact-family.md, docs/semantics.md): True where an element is kept.

An element's word depends on the sample's number in the global batch and on nothing of the layout, so the masks of a
micro-batch are those of its samples, whatever rank has them.
"""
import math

import numpy

from .random_stream import draw


def keep_mask(seed, site, step, layer, samples, shape, rate):
    """[samples, *shape] bools of dropout with this rate; `shape` is what one sample has at the site.

    [T, d] for rows of channels, [H, T, T] for scores: the element is the row-major index in [B, *shape]. Family
    exact has the rate 0.5, whose mask is the top bit of a word."""
    size = math.prod(shape)
    elements = numpy.asarray(samples, numpy.uint64)[:, None] * numpy.uint64(size) + numpy.arange(size,
                                                                                                 dtype=numpy.uint64)
    words = draw(seed, site, step, layer, elements)
    return (words >= numpy.uint64(math.floor(rate * 2**32))).reshape(len(samples), *shape)
