# SPDX-License-Identifier: Apache-2.0
"""safetensors files (docs/formats.md), read and written here so that an engine needs no package for them.

  tensors, metadata = read_tensor_file(path)          {name: Tensor}, {key: text}
  write_tensor_file(path, {name: Tensor("F32", array)})

NumPy has no bf16: its elements are carried as uint16 bits, and `dtype` tells them from U16. What an element means is
for the caller; bfloat16.py converts."""
import json
import math
import os
import pathlib
import typing

import numpy

# F16 is NumPy's own half; BF16 its bits.
NUMPY_TYPES = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2", "I64": "<i8", "I32": "<i4", "U16": "<u2", "U8": "|u1"
}
MAX_HEADER_BYTES = 16 << 20


class Tensor(typing.NamedTuple):
    dtype: str  # a key of NUMPY_TYPES
    values: numpy.ndarray


def _read_header(data, name):
    length = int.from_bytes(data[:8], "little")
    if len(data) < 8 or length > min(MAX_HEADER_BYTES, len(data) - 8):
        raise ValueError("%s: the header's length is %d; the file has %d bytes" % (name, length, len(data)))
    header = json.loads(bytes(data[8:8 + length]))
    if not isinstance(header, dict):
        raise ValueError("%s: the header is no JSON object" % name)
    return header, data[8 + length:]


def _tensor(entry, body, where):
    dtype, shape, (begin, end) = entry["dtype"], entry["shape"], entry["data_offsets"]
    if dtype not in NUMPY_TYPES:
        raise ValueError("%s: dtype is %r; known: %s" % (where, dtype, ", ".join(NUMPY_TYPES)))
    expected = math.prod(shape) * numpy.dtype(NUMPY_TYPES[dtype]).itemsize
    if not 0 <= begin <= end <= len(body) or end - begin != expected:
        raise ValueError("%s: data_offsets are [%d, %d); shape %s needs %d of the file's %d bytes"
                         % (where, begin, end, shape, expected, len(body)))
    return Tensor(dtype, numpy.frombuffer(body[begin:end], NUMPY_TYPES[dtype]).reshape(shape))


def read_tensor_file(path):
    """ValueError names the file and the tensor that is malformed. The arrays cannot be written to."""
    path = pathlib.Path(path)
    try:
        header, body = _read_header(memoryview(path.read_bytes()), path.name)
        metadata = header.pop("__metadata__", {})
        tensors = {name: _tensor(entry, body, "%s: %s" % (path.name, name)) for name, entry in header.items()}
        ends = sorted(tuple(entry["data_offsets"]) for entry in header.values())
    except (KeyError, TypeError, json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ValueError("%s is no safetensors file: %r" % (path.name, error)) from error
    reached = 0
    for begin, end in ends:
        if begin != reached:
            raise ValueError("%s: no tensor, or two, have byte %d of the data" % (path.name, min(begin, reached)))
        reached = end
    if reached != len(body):
        raise ValueError("%s: %d bytes of data belong to no tensor" % (path.name, len(body) - reached))
    return tensors, metadata


def write_tensor_file(path, tensors, metadata=None):
    """In the order given, under another name first: a reader never sees half of it."""
    header, blocks, end = ({"__metadata__": metadata} if metadata else {}), [], 0
    for name, (dtype, values) in tensors.items():
        block = numpy.ascontiguousarray(values)
        if block.dtype != numpy.dtype(NUMPY_TYPES[dtype]):
            raise TypeError("%s: the array holds %s, and dtype is %s" % (name, block.dtype, dtype))
        header[name] = {"dtype": dtype, "shape": list(values.shape), "data_offsets": [end, end + block.nbytes]}
        blocks.append(block.tobytes())
        end += block.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    partial = pathlib.Path(str(path) + ".partial")
    partial.write_bytes(len(text).to_bytes(8, "little") + text + b"".join(blocks))
    os.replace(partial, path)
