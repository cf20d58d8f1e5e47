# SPDX-License-Identifier: Apache-2.0
"""Case folders, traces and dumps of family gpt2 for tests in Python: changed and read by the words of docs/formats.md.

Standard library only, and none of the adapter's code: what reads its output must not share its mistakes.
"""
import array
import json
import pathlib
import struct

MASK = 2**64 - 1
TYPES = {"F32": "f", "F64": "d", "I32": "i"}


def read_tensors(path):
    """Returns {name: (dtype, shape, array)}, metadata."""
    data = pathlib.Path(path).read_bytes()
    begin = 8 + struct.unpack_from("<Q", data)[0]
    header = json.loads(data[8:begin])
    metadata = header.pop("__metadata__", {})
    tensors = {}
    for name, entry in header.items():
        first, last = entry["data_offsets"]
        values = array.array(TYPES[entry["dtype"]], data[begin + first:begin + last])
        tensors[name] = (entry["dtype"], entry["shape"], values)
    return tensors, metadata


def write_tensors(path, tensors, metadata=None):
    header, data = ({"__metadata__": metadata} if metadata else {}), b""
    for name, (dtype, shape, values) in tensors.items():
        end = len(data) + len(values) * values.itemsize
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), end]}
        data += values.tobytes()
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    pathlib.Path(path).write_bytes(struct.pack("<Q", len(text)) + text + data)


def read_trace(out_dir, rank):
    lines = (pathlib.Path(out_dir) / ("rank%d" % rank) / "trace.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def read_dump(out_dir, rank, step):
    """{KIND/NAME: values} of a step, for ranks that hold tensors whole."""
    tensors, _ = read_tensors(pathlib.Path(out_dir) / ("rank%d" % rank) / ("tensors-%06d.safetensors" % step))
    assert all(name.endswith("@0") for name in tensors), sorted(tensors)
    return {name[:-2]: values for name, (_, _, values) in tensors.items()}


def mix(x):
    x = ((x ^ x >> 30) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ x >> 27) * 0x94D049BB133111EB) & MASK
    return x ^ x >> 31


def digest(values):
    """The hash of fp32 values (docs/exact-family.md, "Digests"; docs/formats.md: over the bits of the elements)."""
    bits = struct.unpack("<%dI" % len(values), values.tobytes())
    return "%016x" % (sum(mix((mix(i + 0x9E3779B97F4A7C15 & MASK) + bit) & MASK) for i, bit in enumerate(bits)) & MASK)
