# SPDX-License-Identifier: Apache-2.0
"""Random words as a function of logical coordinates: Philox4x32-10 (docs/exact-family.md, Random draws), in NumPy.

Written from the document; random_stream_test compares it with the harness's own. Masks of dropout: masks.py.
"""
import numpy

SITES = {"sample_start": 0, "position_rank": 1, "loss_weight": 2, "initial_weight": 3, "initial_master": 4,
         "exact_attention": 5, "exact_mlp": 6,  # dropout after Wo and after Wd
         "embedding": 16, "scores": 17, "attention_out": 18, "mlp_out": 19,  # the drops of the real families
         "normal_first": 20, "normal_second": 21, "real_loss_weight": 22, "length": 23}

_LOW = numpy.uint64(0xFFFFFFFF)
_HALF = numpy.uint64(32)


def philox4x32_10(counter, key):
    """Four arrays of words, as uint64, of four counter words (arrays or numbers) and two key words (numbers)."""
    c0, c1, c2, c3 = numpy.broadcast_arrays(*(numpy.asarray(word, numpy.uint64) for word in counter))
    k0, k1 = key
    for _ in range(10):
        even, odd = c0 * numpy.uint64(0xD2511F53), c2 * numpy.uint64(
            0xCD9E8D57)  # below 2^64, since words are below 2^32
        c0, c1 = (odd >> _HALF) ^ c1 ^ numpy.uint64(k0), odd & _LOW
        c2, c3 = (even >> _HALF) ^ c3 ^ numpy.uint64(k1), even & _LOW
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return c0, c1, c2, c3


def draw(seed, site, step, layer, elements):
    """The words of these elements, as uint64; `site` is a number or a key of SITES."""
    site = SITES.get(site, site)
    elements = numpy.asarray(elements, numpy.uint64)
    index = elements >> numpy.uint64(2)
    words = philox4x32_10((index & _LOW, index >> _HALF, step, layer * 256 + site), (seed & 0xFFFFFFFF, seed >> 32))
    return numpy.choose((elements & numpy.uint64(3)).astype(numpy.intp), words)


def below(words, n):
    """floor(word * n / 2^32), for 1 <= n <= 2^32."""
    return (numpy.asarray(words, numpy.uint64) * numpy.uint64(n)) >> _HALF
