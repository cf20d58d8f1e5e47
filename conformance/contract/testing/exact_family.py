# SPDX-License-Identifier: Apache-2.0
#
# The training of family `exact` in plain Python integers, transcribed from docs/exact-family.md line by line: the third derivation
# beside the engines' own, for tiny cases only. Matrices are lists of rows; a row of the batch is sample · T + position. No
# floating point, no library, no speed. Draws come from independent_check.py, which was written from the same document.
from independent_check import SITE_DROP_ATTENTION, SITE_DROP_MLP, draw, parameters


def fold(x, bound):
    p = (x + bound) % (4 * bound)
    return p - bound if p <= 2 * bound else 3 * bound - p


def slope(x, bound):
    return 1 if (x + bound) % (4 * bound) < 2 * bound else -1


def wrap(x, bound):
    return (x + bound) % (2 * bound + 1) - bound


def transpose(a):
    return [list(column) for column in zip(*a)]


def product(a, b):
    columns = list(zip(*b))
    return [[sum(x * y for x, y in zip(row, column)) for column in columns] for row in a]


def each(function, *matrices):
    return [[function(*elements) for elements in zip(*rows)] for rows in zip(*matrices)]


def add(a, b):
    return each(lambda x, y: x + y, a, b)


def times(a, b):
    return each(lambda x, y: x * y, a, b)


def columns(a, begin, end):
    return [row[begin:end] for row in a]


class Step:
    """Forward and backward pass of one global batch."""

    def __init__(self, model, weights, seed, step, num_rows):
        self.model, self.weights, self.seed, self.step, self.num_rows = model, weights, seed, step, num_rows
        self.head_width = model["width"] // model["heads"]

    def f(self, a):
        return each(lambda x: fold(x, self.model["fold_bound"]), a)

    def s(self, a):
        return each(lambda x: slope(x, self.model["fold_bound"]), a)

    def g(self, a):
        return each(lambda x: fold(x, self.model["gradient_fold_bound"]), a)

    def drop(self, y, site, layer):
        if not self.model["dropout"]:
            return y
        d = self.model["width"]
        return [[2 * (draw(self.seed, site, self.step, layer, i * d + c) >> 31) * y[i][c] for c in range(d)]
                for i in range(self.num_rows)]

    def layer_weights(self, layer):
        return self.weights[2 + 6 * layer:8 + 6 * layer]

    def heads(self):
        """(rows of a sample, channels of a query head, channels of its key/value head)."""
        t, width = self.model["positions"], self.head_width
        for first in range(0, self.num_rows, t):
            for i in range(self.model["heads"]):
                j = i * self.model["kv_heads"] // self.model["heads"]
                yield slice(first, first + t), (i * width, (i + 1) * width), (j * width, (j + 1) * width)

    def causal(self, a):
        return [[x if t <= s else 0 for t, x in enumerate(row)] for s, row in enumerate(a)]

    # --- forward ---

    def forward(self, tokens):
        t = self.model["positions"]
        x = [[e + p for e, p in zip(self.weights[0][token], self.weights[1][i % t])] for i, token in enumerate(tokens)]
        self.tape = []
        for layer in range(self.model["layers"]):
            x = self.forward_layer(layer, x)
        self.x, self.h = x, self.f(x)
        return product(self.h, transpose(self.weights[0]))

    def forward_layer(self, layer, x):
        wq, wk, wv, wo, wu, wd = self.layer_weights(layer)
        kept = {"x": x, "h": self.f(x)}
        kept["hq"], kept["hk"], kept["hv"] = (product(kept["h"], w) for w in (wq, wk, wv))
        kept["o"] = self.attention(kept, self.f(kept["hq"]), self.f(kept["hk"]), self.f(kept["hv"]))
        kept["ow"] = product(kept["o"], wo)
        x = add(x, self.drop(self.f(kept["ow"]), SITE_DROP_ATTENTION, layer))
        kept["x2"], kept["h2"] = x, self.f(x)
        kept["hu"] = product(kept["h2"], wu)
        kept["r"] = each(lambda y: max(y, 0), self.f(kept["hu"]))
        kept["rw"] = product(kept["r"], wd)
        self.tape.append(kept)
        return add(x, self.drop(self.f(kept["rw"]), SITE_DROP_MLP, layer))

    def attention(self, kept, q, k, v):
        o = [[0] * self.model["width"] for _ in range(self.num_rows)]
        kept["heads"] = []
        for rows, query, key in self.heads():
            q_i, k_j, v_j = columns(q[rows], *query), columns(k[rows], *key), columns(v[rows], *key)
            scores = product(q_i, transpose(k_j))
            a_i = self.causal(self.f(scores))
            mixed = product(a_i, v_j)
            kept["heads"].append((q_i, k_j, v_j, scores, a_i, mixed))
            for row, values in zip(o[rows], self.f(mixed)):
                row[slice(*query)] = values
        return o

    # --- backward ---

    def backward(self, tokens, labels, loss_weights, logits):
        """(loss, N, gradients in canonical order)."""
        n = sum(u != 0 for u in loss_weights)
        best = [row.index(max(row)) for row in logits]
        loss = sum(u * (row[b] - row[y]) for u, row, b, y in zip(loss_weights, logits, best, labels))
        dlogits = [[0] * self.model["vocab"] for _ in tokens]
        for row, u, b, y in zip(dlogits, loss_weights, best, labels):
            row[b] += u // n
            row[y] -= u // n
        gradients = [[[0] * len(w[0]) for _ in w] for w in self.weights]
        gradients[0] = product(transpose(dlogits), self.h)
        dx = times(self.g(product(dlogits, self.weights[0])), self.s(self.x))
        for layer in reversed(range(self.model["layers"])):
            dx, gradients[2 + 6 * layer:8 + 6 * layer] = self.backward_layer(layer, dx)
        for i, (token, row) in enumerate(zip(tokens, dx)):
            for c, value in enumerate(row):
                gradients[0][token][c] += value
                gradients[1][i % self.model["positions"]][c] += value
        assert loss % n == 0
        return loss // n, n, gradients

    def backward_layer(self, layer, dx):
        wq, wk, wv, wo, wu, wd = self.layer_weights(layer)
        kept = self.tape[layer]
        dz = times(self.drop(dx, SITE_DROP_MLP, layer), self.s(kept["rw"]))
        dwd = product(transpose(kept["r"]), dz)
        positive = each(lambda y: int(y > 0), self.f(kept["hu"]))
        du = times(times(self.g(product(dz, transpose(wd))), positive), self.s(kept["hu"]))
        dwu = product(transpose(kept["h2"]), du)
        dx = self.g(add(dx, times(self.g(product(du, transpose(wu))), self.s(kept["x2"]))))
        dz = times(self.drop(dx, SITE_DROP_ATTENTION, layer), self.s(kept["ow"]))
        dwo = product(transpose(kept["o"]), dz)
        dq, dk, dv = self.backward_attention(kept, self.g(product(dz, transpose(wo))))
        duq, duk, duv = times(dq, self.s(kept["hq"])), times(dk, self.s(kept["hk"])), times(dv, self.s(kept["hv"]))
        dwq, dwk, dwv = (product(transpose(kept["h"]), d) for d in (duq, duk, duv))
        dh = self.g(add(add(product(duq, transpose(wq)), product(duk, transpose(wk))), product(duv, transpose(wv))))
        return self.g(add(dx, times(dh, self.s(kept["x"])))), [dwq, dwk, dwv, dwo, dwu, dwd]

    def backward_attention(self, kept, do):
        kv_width = self.head_width * self.model["kv_heads"]
        dq = [[0] * self.model["width"] for _ in do]
        dk, dv = [[0] * kv_width for _ in do], [[0] * kv_width for _ in do]
        for (rows, query, key), (q_i, k_j, v_j, scores, a_i, mixed) in zip(self.heads(), kept["heads"]):
            dn = times(columns(do[rows], *query), self.s(mixed))
            da = self.g(product(dn, transpose(v_j)))
            ds = times(self.causal(da), self.s(scores))
            for row, values in zip(dq[rows], self.g(product(ds, k_j))):
                row[slice(*query)] = values
            for total, part in ((dk, product(transpose(ds), q_i)), (dv, product(transpose(a_i), dn))):
                for row, values in zip(total[rows], part):
                    row[slice(*key)] = [x + y for x, y in zip(row[slice(*key)], values)]
        return dq, self.g(dk), self.g(dv)


def update(optimizer, weight_bound, t, gradient, moment, master):
    """The optimizers' lines for one tensor, row-major: (moment, master, weight)."""
    modulus = 8 * (2 * weight_bound + 1)
    if optimizer == "ModularMomentum":
        moment = [wrap(m + d + t, 14) for m, d in zip(moment, gradient)]
        master = [(u - m - t) % modulus for u, m in zip(master, moment)]
    else:
        master = [(u - d) % modulus for u, d in zip(master, gradient)]
    return moment, master, [u // 8 - weight_bound for u in master]


def train(model, seed, optimizer, state, batches):
    """Yields (loss, N, {kind: [values of each tensor]}) after each step; state is [(W, U)], batches [(tokens, labels, u)]."""
    shapes = [(rows, cols) for _, rows, cols in parameters(model)]
    weights, masters = [w for w, _ in state], [u for _, u in state]
    moments = [[0] * len(u) for u in masters]
    for step, (tokens, labels, loss_weights) in enumerate(batches):
        matrices = [[w[r * cols:(r + 1) * cols] for r in range(rows)] for w, (rows, cols) in zip(weights, shapes)]
        work = Step(model, matrices, seed, step, len(tokens))
        loss, n, gradients = work.backward(tokens, labels, loss_weights, work.forward(tokens))
        flat = [sum(gradient, []) for gradient in gradients]
        updated = [update(optimizer, model["weight_bound"], step + 1, *tensors) for tensors in zip(flat, moments, masters)]
        moments, masters, weights = (list(values) for values in zip(*updated))
        yield loss, n, {"gradient": flat, "moment": moments, "master": masters, "weight": weights}
