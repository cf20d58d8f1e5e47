# SPDX-License-Identifier: Apache-2.0
"""The loss of docs/semantics.md, line by line, in Python's floats: slow, without derivatives, for finite differences.

One sample at a time, no dropout, weights as {name: flat list} with matrices [in, out]. Shares nothing with an engine.
"""
import math


class Model:
    def __init__(self, model, weights):
        self.model, self.weights = model, weights

    def rows(self, name, width):
        values = self.weights[name]
        return [values[i:i + width] for i in range(0, len(values), width)]

    def norm(self, x, name):
        gain, bias = self.weights[name + ".weight"], self.weights[name + ".bias"]
        result = []
        for row in x:
            mean = sum(row) / len(row)
            var = sum((value - mean) ** 2 for value in row) / len(row)
            scale = 1 / math.sqrt(var + self.model["norm_epsilon"])
            result.append([(value - mean) * scale * g + b for value, g, b in zip(row, gain, bias)])
        return result

    def linear(self, x, name, width):
        columns = list(zip(*self.rows(name + ".weight", width)))
        bias = self.weights[name + ".bias"]
        return [[sum(a * w for a, w in zip(row, column)) + b for column, b in zip(columns, bias)] for row in x]

    def attention(self, x, name):
        d, heads = self.model["width"], self.model["heads"]
        size = d // heads
        qkv = self.linear(x, name + ".qkv", 3 * d)
        joined = [[] for _ in x]
        for head in range(heads):
            q, k, v = ([row[part * d + head * size:part * d + (head + 1) * size] for row in qkv] for part in range(3))
            for a, query in enumerate(q):
                scores = [math.exp(sum(s * t for s, t in zip(query, key)) / math.sqrt(size)) for key in k[:a + 1]]
                joined[a] += [sum(s * row[c] for s, row in zip(scores, v)) / sum(scores) for c in range(size)]
        return self.linear(joined, name + ".out", d)

    def mlp(self, x, name):
        def gelu(z):
            return 0.5 * z * (1 + math.tanh(math.sqrt(2 / math.pi) * (z + 0.044715 * z**3)))
        up = self.linear(x, name + ".up", self.model["hidden"])
        return self.linear([[gelu(z) for z in row] for row in up], name + ".down", self.model["width"])

    def logits(self, tokens):
        d = self.model["width"]
        embed, pos = self.rows("embed.weight", d), self.rows("pos.weight", d)
        x = [[e + p for e, p in zip(embed[token], pos[t])] for t, token in enumerate(tokens)]
        for layer in range(self.model["layers"]):
            name = "layers.%d." % layer
            for branch, norm, part in ((self.attention, "norm1", "attn"), (self.mlp, "norm2", "mlp")):
                added = branch(self.norm(x, name + norm), name + part)
                x = [[a + b for a, b in zip(*pair)] for pair in zip(x, added)]
        head = embed if self.model["tied_head"] else self.rows("head.weight", d)
        return [[sum(a * b for a, b in zip(row, column)) for column in head] for row in self.norm(x, "norm")]


def loss(model, weights, batch):
    """`batch`: a list of (tokens, labels, loss_weights), one for each sample."""
    total = count = 0
    for tokens, labels, loss_weights in batch:
        for row, label, u in zip(Model(model, weights).logits(tokens), labels, loss_weights):
            total += u * (math.log(sum(math.exp(z) for z in row)) - row[label])
            count += u
    return total / count


def gradient(model, weights, batch, name):
    """Central differences with a step at which neither truncation nor rounding reaches 1e-8."""
    h, result = 2.0**-14, []
    for i, value in enumerate(weights[name]):
        ends = []
        for end in (value + h, value - h):
            changed = list(weights[name])
            changed[i] = end
            ends.append(loss(model, {**weights, name: changed}, batch))
        result.append((ends[0] - ends[1]) / (2 * h))
    return result
