# SPDX-License-Identifier: Apache-2.0
#
# A second implementation of everything that all engines share: Philox draws, Below, digests, the data of a case and its initial
# state, written from docs/exact-family.md alone. Run as a test it compares its output, byte for byte, with that of the contract
# (dump_stream), since a mistake in the shared code would be common to all engines and no comparison between them would show it.
# It imports nothing but the standard library, and it is slow on purpose: every line follows a sentence of the document.
#
#   python3 -I independent_check.py DUMP_STREAM
import json
import os
import struct
import subprocess
import sys
import tempfile

MASK32 = (1 << 32) - 1
MASK64 = (1 << 64) - 1

SITE_START, SITE_RANK, SITE_LOSS_WEIGHT, SITE_WEIGHT, SITE_MASTER, SITE_DROP_ATTENTION, SITE_DROP_MLP = range(7)
MAX_ATTEMPTS = 10_000

# Known answers published with Random123 (kat_vectors, philox4x32 10): counter, key, output.
PHILOX_VECTORS = [
    ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((MASK32,) * 4, (MASK32,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    ((0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344), (0xA4093822, 0x299F31D0),
     (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1)),
]


# --- random draws ---

def philox4x32_10(counter, key):
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(10):
        p0, p1 = 0xD2511F53 * c0, 0xCD9E8D57 * c2
        c0, c1, c2, c3 = (p1 >> 32) ^ c1 ^ k0, p1 & MASK32, (p0 >> 32) ^ c3 ^ k1, p0 & MASK32
        k0, k1 = (k0 + 0x9E3779B9) & MASK32, (k1 + 0xBB67AE85) & MASK32
    return c0, c1, c2, c3


def draw(seed, site, step, layer, element):
    e = element // 4
    counter = (e & MASK32, e >> 32, step, layer * 256 + site)
    return philox4x32_10(counter, (seed & MASK32, seed >> 32))[element % 4]


def below(word, n):
    return word * n // (1 << 32)


# --- digests ---

def mix(x):
    x ^= x >> 30
    x = x * 0xBF58476D1CE4E5B9 & MASK64
    x ^= x >> 27
    x = x * 0x94D049BB133111EB & MASK64
    return x ^ (x >> 31)


def digest(values):
    """(hash, sum, sum of squares, indexed sum) of a whole tensor, row-major."""
    total = sum(mix((mix((i + 0x9E3779B97F4A7C15) & MASK64) + v) & MASK64) for i, v in enumerate(values)) & MASK64
    return total, sum(values), sum(v * v for v in values), sum((i + 1) * v for i, v in enumerate(values)) % (1 << 61)


# --- model ---

def parameters(model):
    """[(name, rows, cols)] in canonical order; the index is the tensor id."""
    d, f = model["width"], model["hidden"]
    e = model["kv_heads"] * d // model["heads"]
    result = [("embed.weight", model["vocab"], d), ("pos.weight", model["positions"], d)]
    for l in range(model["layers"]):
        result += [(f"layers.{l}.attn.q", d, d), (f"layers.{l}.attn.k", d, e), (f"layers.{l}.attn.v", d, e),
                   (f"layers.{l}.attn.o", d, d), (f"layers.{l}.mlp.up", d, f), (f"layers.{l}.mlp.down", f, d)]
    return result


def initial_state(model, seed):
    """[(W, U)] in canonical order."""
    w = model["weight_bound"]
    state = []
    for tensor_id, (_, rows, cols) in enumerate(parameters(model)):
        weight = [below(draw(seed, SITE_WEIGHT, 0, tensor_id, i), 2 * w + 1) - w for i in range(rows * cols)]
        master = [8 * (weight[i] + w) + below(draw(seed, SITE_MASTER, 0, tensor_id, i), 8) for i in range(rows * cols)]
        state.append((weight, master))
    return state


# --- data ---

def num_weighted(batch, positions, step):
    n = 1
    while 3 * (2 * n) <= 2 * batch * positions:  # 2n is at most 2/3 of batch * positions
        n *= 2
    return n // 2 if step % 2 else n


def choose(words, batch, positions, n):
    """Indices of the n weighted positions: first the best of each sample, in the order of rank, then all others."""
    ranked = sorted(range(batch * positions), key=lambda i: (words[i], i))
    seen, best, others = set(), [], []
    for i in ranked:
        (others if i // positions in seen else best).append(i)
        seen.add(i // positions)
    return (best + others)[:n]


def is_uneven(counts):
    """True if the counts of weighted tokens a sample are uneven in every layout that divides the batch."""
    batch = len(counts)
    for a_degree in range(1, batch + 1):
        for r_degree in range(1, batch + 1):
            if a_degree * r_degree == 1 or batch % (a_degree * r_degree):
                continue
            m = batch // (a_degree * r_degree)
            micro = [[sum(counts[(a * r_degree + r) * m:(a * r_degree + r + 1) * m]) for r in range(r_degree)]
                     for a in range(a_degree)]
            if len({c for row in micro for c in row}) == 1:
                return False
            if r_degree > 1 and len({sum(row[r] for row in micro) for r in range(r_degree)}) == 1:
                return False
            if a_degree > 1 and len({sum(row) for row in micro}) == 1:
                return False
    return True


def loss_weights(seed, step, batch, positions):
    n = num_weighted(batch, positions, step)
    for attempt in range(MAX_ATTEMPTS):
        words = [draw(seed, SITE_RANK, step, attempt, i) for i in range(batch * positions)]
        weights = [0] * (batch * positions)
        for i in choose(words, batch, positions, n):
            weights[i] = 5 * n if draw(seed, SITE_LOSS_WEIGHT, step, attempt, i) >> 31 else n
        if is_uneven([sum(w != 0 for w in weights[b * positions:(b + 1) * positions]) for b in range(batch)]):
            return weights
    raise ValueError("no attempt was accepted")


def make_batch(source, modulus, positions, seed, step, batch):
    """(tokens, labels, loss weights) of a step; modulus None for a token file."""
    tokens, labels = [], []
    for sample in range(batch):
        start = below(draw(seed, SITE_START, step, 0, sample), len(source) - positions)
        window = [v if modulus is None else v % modulus for v in source[start:start + positions + 1]]
        tokens += window[:-1]
        labels += window[1:]
    return tokens, labels, loss_weights(seed, step, batch, positions)


# --- the comparison ---

def render(source, is_text, spec):
    """The lines that dump_stream prints for the spec."""
    seed, model = spec["seed"], spec["model"]
    lines = []
    for site in range(7):
        for step, layer, element in [(0, 0, 0), (1, 0, 3), (7, 2, 4), (MASK32, (1 << 24) - 1, (1 << 34) + 1)]:
            word = draw(seed, site, step, layer, element)
            lines.append(f"draw {site} {step} {layer} {element} {word} {below(word, 1)} {below(word, 19)} {word >> 31}")
    modulus = model["vocab"] if is_text else None
    for step in range(spec["steps"]):
        arrays = make_batch(source, modulus, model["positions"], seed, step, spec["batch"])
        for name, values in zip(("tokens", "labels", "loss_weights"), arrays):
            lines.append(f"{name} {step} " + " ".join(map(str, values)))
    for (name, rows, cols), (weight, master) in zip(parameters(model), initial_state(model, seed)):
        shifted = [v - 1_000_003 * (i % 5) for i, v in enumerate(master)]  # negative values and long sums
        for kind, values in (("weight", weight), ("master", master), ("moment", [0] * len(weight))):
            lines.append(f"{kind} {name} {rows} {cols} " + " ".join(map(str, values)))
        for kind, values in (("weight", weight), ("shifted", shifted)):
            lines.append(f"digest {kind} {name} {' '.join(map(str, digest(values)))}")
    return "".join(line + "\n" for line in lines)


def token_file(tokens):
    """A token file (docs/formats.md) of type U16."""
    header = json.dumps({"tokens": {"dtype": "U16", "shape": [len(tokens)], "data_offsets": [0, 2 * len(tokens)]}})
    header += " " * (-len(header) % 8)
    return struct.pack("<Q", len(header)) + header.encode() + struct.pack(f"<{len(tokens)}H", *tokens)


TEXT = bytes((i * i * 7 + i // 3) % 251 for i in range(1021)) + "A text with bytes above 127: é, 数, ÿ.".encode()

MODEL = {"layers": 2, "width": 12, "heads": 3, "kv_heads": 3, "positions": 8, "hidden": 20, "vocab": 19,
         "weight_bound": 1}
SPECS = {
    "text, seed above 2^32": (TEXT, True, {"seed": (1 << 40) + 12345, "steps": 5, "batch": 24, "model": MODEL}),
    "text, largest seed": (TEXT, True, {
        "seed": MASK64, "steps": 4, "batch": 9,
        "model": dict(MODEL, layers=1, width=20, heads=4, kv_heads=2, positions=7, hidden=13, weight_bound=3, vocab=256)}),
    # Two of three positions are weighted, so by rank alone some sample would have none.
    "text, tight weights": (TEXT, True, {"seed": 3, "steps": 6, "batch": 14, "model": dict(MODEL, layers=1, positions=4)}),
    "token file": ([(i * 37) % 300 for i in range(97)], False, {
        "seed": 7, "steps": 3, "batch": 8,
        "model": dict(MODEL, layers=1, width=6, heads=3, kv_heads=1, positions=13, vocab=300)}),
}


def compare(dump_stream, title, source, is_text, spec):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "source")
        with open(path, "wb") as file:
            file.write(source if is_text else token_file(source))
        model = spec["model"]
        numbers = [spec["seed"], spec["steps"], spec["batch"]] + [model[key] for key in (
            "layers", "width", "heads", "kv_heads", "positions", "hidden", "vocab", "weight_bound")]
        result = subprocess.run([dump_stream, path] + [str(n) for n in numbers], capture_output=True, text=True)
    if result.returncode:
        return f"{title}: {dump_stream} ended with {result.returncode}: {result.stderr.strip()}"
    ours, theirs = render(source, is_text, spec), result.stdout
    if ours == theirs:
        print(f"{title}: {len(ours)} bytes are equal")
        return None
    for number, (a, b) in enumerate(zip(ours.splitlines(), theirs.splitlines()), 1):
        if a != b:
            return f"{title}: line {number} differs\n  document: {a[:300]}\n  contract: {b[:300]}"
    return f"{title}: {len(ours)} bytes by the document, {len(theirs)} bytes by the contract"


def main():
    for counter, key, output in PHILOX_VECTORS:
        if philox4x32_10(counter, key) != output:
            sys.exit(f"this file's Philox misses the published vector of counter {counter}")
    failures = [f for f in (compare(sys.argv[1], title, *spec) for title, spec in SPECS.items()) if f]
    sys.exit("\n".join(failures) if failures else 0)


if __name__ == "__main__":
    main()
