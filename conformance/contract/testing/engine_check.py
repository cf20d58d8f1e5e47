# SPDX-License-Identifier: Apache-2.0
#
# Runs an engine on tiny cases that are written from docs/formats.md and docs/exact-family.md alone, and compares every digest
# of its trace with exact_family.py. It shares no code with any engine or with the harness, so it also sees what those have in
# common. World 1, one micro-batch; layouts are the harness's business.
#
#   python3 -I engine_check.py ENGINE
import json
import os
import struct
import subprocess
import sys
import tempfile

# Isolated Python leaves out the script's own folder; and a source tree is no place for byte code.
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True

from exact_family import train
from independent_check import TEXT, digest, initial_state, make_batch, parameters

SIZES = {"layers": 2, "width": 12, "heads": 3, "kv_heads": 3, "positions": 5, "hidden": 7, "vocab": 11,
         "weight_bound": 1, "fold_bound": 2, "gradient_fold_bound": 4, "dropout": False}
# title, model, seed, steps, batch, optimizer, bf16
CASES = [
    ("dense fp32", SIZES, 1, 5, 6, "ModularMomentum", False),
    ("dense bf16", SIZES, 1, 5, 6, "ModularMomentum", True),
    ("grouped heads and dropout in bf16, other bounds, seed above 2^32",
     dict(SIZES, heads=6, kv_heads=2, dropout=True, weight_bound=2, fold_bound=3, gradient_fold_bound=5),
     (1 << 40) + 9, 4, 9, "ModularMomentum", True),
    ("one key/value head, dropout, SGD", dict(SIZES, layers=3, width=8, heads=4, kv_heads=1, dropout=True, positions=7),
     77, 4, 4, "ModularSGD", False),
    ("counter beyond 29 and m", dict(SIZES, layers=1, width=2, heads=1, kv_heads=1, positions=6, hidden=1, vocab=3),
     (1 << 64) - 1, 60, 2, "ModularMomentum", False),
]


def tensor_file(tensors, metadata=None):
    """A safetensors file of [(name, dtype, shape, values)]."""
    header, data = {}, b""
    if metadata is not None:
        header["__metadata__"] = metadata
    for name, dtype, shape, values in tensors:
        code = {"F32": "f", "I32": "i", "I64": "q"}[dtype]
        packed = struct.pack(f"<{len(values)}{code}", *values)
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(packed)]}
        data += packed
    text = json.dumps(header)
    text += " " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text.encode() + data


def write_case(folder, title, model, seed, batch, optimizer, bf16, state, batches):
    config = {"train_batch_size": batch, "train_micro_batch_size_per_gpu": batch, "bf16": {"enabled": bf16},
              "optimizer": {"type": optimizer}}
    case = {"protocol": 1, "id": title.replace(" ", "-"), "family": "exact", "model": model, "config": config, "seed": seed,
            "steps": len(batches), "timeout_s": 60}
    named = [(name, [rows, cols], w, u) for (name, rows, cols), (w, u) in zip(parameters(model), state)]
    tensors = [("master/" + name, "I64", shape, u) for name, shape, _, u in named]
    if optimizer == "ModularMomentum":
        tensors += [("moment/" + name, "I64", shape, [0] * len(u)) for name, shape, _, u in named]
    shape = [len(batches), batch, model["positions"]]
    arrays = [(name, "I32", shape, sum((step[i] for step in batches), []))
              for i, name in enumerate(("tokens", "labels", "loss_weights"))]
    files = {"case.json": json.dumps(case).encode(),
             "weights.safetensors": tensor_file([(name, "F32", shape, w) for name, shape, w, _ in named]),
             "state.safetensors": tensor_file(tensors, {"step": "0"}),
             "batches.safetensors": tensor_file(arrays)}
    for name, content in files.items():
        with open(os.path.join(folder, name), "wb") as file:
            file.write(content)


def read_steps(out_dir):
    with open(os.path.join(out_dir, "rank0", "trace.jsonl")) as file:
        records = [json.loads(line) for line in file]
    return [record for record in records if record["record"] == "step"]


def differences(record, names, loss, n, tensors):
    """What the record of a step says otherwise; every tensor must be there whole."""
    if (record["loss"], record["tokens"]) != (loss, n):
        yield f"loss and tokens are {record['loss']} and {record['tokens']}; expected {loss} and {n}"
    for kind, values in tensors.items():
        found = {entry[0]: entry for entry in record.get(kind, [])}
        for name, tensor in zip(names, values):
            expected = digest(tensor)
            entry = found.get(name)
            if entry is None or entry[1:3] != [0, len(tensor)]:
                yield f"{kind} of {name} is not there as one slice"
            elif int(entry[3], 16) != expected[0] or (kind == "gradient" and tuple(entry[4:7]) != expected[1:]):
                yield f"{kind} of {name} differs"


def check(engine, title, model, seed, steps, batch, optimizer, bf16):
    state = initial_state(model, seed)
    batches = [make_batch(TEXT, model["vocab"], model["positions"], seed, step, batch) for step in range(steps)]
    with tempfile.TemporaryDirectory() as folder:
        case_dir, out_dir = os.path.join(folder, "case"), os.path.join(folder, "out")
        os.mkdir(case_dir)
        os.mkdir(out_dir)
        write_case(case_dir, title, model, seed, batch, optimizer, bf16, state, batches)
        result = subprocess.run([engine, "run", "--case", case_dir, "--out", out_dir], capture_output=True, text=True)
        if result.returncode:
            return f"{title}: the engine ended with {result.returncode}: {result.stdout}{result.stderr}"
        records = read_steps(out_dir)
    if len(records) != steps:
        return f"{title}: {len(records)} steps in the trace; expected {steps}"
    names, compared = [name for name, _, _ in parameters(model)], 0
    for step, (loss, n, tensors) in enumerate(train(model, seed, optimizer, state, batches)):
        if optimizer == "ModularSGD":
            del tensors["moment"]
        for difference in differences(records[step], names, loss, n, tensors):
            return f"{title}: step {step}: {difference}"  # what follows the first one is its consequence
        compared += sum(len(values) for values in tensors.values())
    print(f"{title}: {compared} digests and {steps} losses are equal")
    return None


def main():
    failures = [failure for failure in (check(sys.argv[1], *case) for case in CASES) if failure]
    sys.exit("\n".join(failures) if failures else 0)


if __name__ == "__main__":
    main()
