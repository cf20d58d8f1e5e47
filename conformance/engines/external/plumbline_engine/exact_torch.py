# SPDX-License-Identifier: Apache-2.0
"""Family exact (docs/exact-family.md) as a torch module: forward as modules are written, backward by autograd, with the
folds' slopes and G in autograd functions of their own. An engine trains it with its own loop, optimizer, shards and
collectives.

Parameters are fp32 and have the protocol's names and shapes, with `.` for what a module path is ("layers.0.attn.q").
Storage in bf16 or fp16 rounds what is stored; gradients of weights are made and added in fp32, as the document
demands. With a loss scale gradients come out multiplied by it: divide by it once, when the sum over micro-batches
and ranks is complete."""
import torch


def _phase(x, b):  # in fp32, which x + b needs where x is the largest number that its type holds exactly
    return torch.remainder(x.float() + b, 4 * b)  # the mathematical one: never negative


def fold(x, b):
    p = _phase(x, b)
    return torch.where(p <= 2 * b, p - b, 3 * b - p).to(x.dtype)


class _Fold(torch.autograd.Function):
    """F in forward, the slope in backward: +1 where p < 2b, else -1; never what autograd makes of remainder()."""

    @staticmethod
    def forward(context, x, b):
        context.save_for_backward(x)
        context.b = b
        return fold(x, b)

    @staticmethod
    def backward(context, gradient):
        x, = context.saved_tensors
        return torch.where(_phase(x, context.b) < 2 * context.b, gradient, -gradient), None


class _FoldGradient(torch.autograd.Function):
    """Nothing in forward, G in backward: where everything that reads x has added its gradient."""

    @staticmethod
    def forward(context, x, g):
        context.g = g
        return x.view_as(x)

    @staticmethod
    def backward(context, gradient):
        return fold(gradient, context.g), None


class _Product(torch.autograd.Function):
    """x w in x's storage type, and dw in fp32: what autograd would give in bf16 has been rounded to it."""

    @staticmethod
    def forward(context, x, w):
        context.save_for_backward(x, w)
        return x @ w.to(x.dtype)

    @staticmethod
    def backward(context, dy):
        x, w = context.saved_tensors
        return dy @ w.to(dy.dtype).t(), x.flatten(0, -2).float().t() @ dy.flatten(0, -2).float()


class _Rows(torch.autograd.Function):
    """w[index] in a storage type, and its gradient in fp32."""

    @staticmethod
    def forward(context, w, index, dtype):
        context.save_for_backward(index)
        context.shape = w.shape
        return w[index].to(dtype)

    @staticmethod
    def backward(context, dy):
        index, = context.saved_tensors
        dw = torch.zeros(context.shape, dtype=torch.float32, device=dy.device)
        return dw.index_add_(0, index.flatten(), dy.flatten(0, -2).float()), None, None


class _Margin(torch.autograd.Function):
    """Σ u/N (logit[best] − logit[label]), and σ times its gradient. Of equal logits the smallest index is the best."""

    @staticmethod
    def forward(context, logits, labels, share, scale):
        index = torch.arange(logits.shape[-1], device=logits.device)
        top = logits.max(-1, keepdim=True).values
        best = torch.where(logits == top, index, logits.shape[-1]).min(-1).values
        context.save_for_backward(best, labels, share)
        context.shape, context.dtype, context.scale = logits.shape, logits.dtype, scale
        own = logits.gather(-1, labels[..., None])[..., 0]
        return (share.double() * (top[..., 0].double() - own.double())).sum()  # beyond what fp32 holds exactly

    @staticmethod
    def backward(context, gradient):
        best, labels, share = context.saved_tensors
        one = (gradient * context.scale).to(torch.float32) * share
        dlogits = torch.zeros(context.shape, dtype=torch.float32, device=share.device)
        dlogits.scatter_add_(-1, best[..., None], one[..., None])
        dlogits.scatter_add_(-1, labels[..., None], -one[..., None])
        return dlogits.to(context.dtype), None, None, None


def _matrix(*shape):
    return torch.nn.Parameter(torch.zeros(shape, dtype=torch.float32))


def _holder(**parameters):
    module = torch.nn.Module()
    for name, parameter in parameters.items():
        setattr(module, name, parameter)
    return module


class _Folds(torch.nn.Module):
    """What all parts of the model know: its sizes and its two folds."""

    def __init__(self, model, loss_scale):
        super().__init__()
        self.sizes, self.loss_scale = model, loss_scale

    def _F(self, x):
        return _Fold.apply(x, self.sizes["fold_bound"])

    def _G(self, x):
        return _FoldGradient.apply(x, self.sizes["gradient_fold_bound"] * self.loss_scale)


class ExactLayer(_Folds):
    """A layer is a module with a forward of its own, so that an engine can wrap it as one."""

    def __init__(self, model, loss_scale):
        super().__init__(model, loss_scale)
        d, f = model["width"], model["hidden"]
        e = model["kv_heads"] * (d // model["heads"])
        self.attn = _holder(q=_matrix(d, d), k=_matrix(d, e), v=_matrix(d, e), o=_matrix(d, d))
        self.mlp = _holder(up=_matrix(d, f), down=_matrix(f, d))

    def _attention(self, h, weights):
        # One product for q, k and v, and one for all query heads of a key head, whose rows are put below each other:
        # their gradients are then complete sums, of which no part is ever stored.
        (m, t, _), groups = h.shape, self.sizes["kv_heads"]
        joined = self._F(_Product.apply(h, torch.cat((weights.q, weights.k, weights.v), 1)))
        q, k, v = joined.split([weights.q.shape[1], weights.k.shape[1], weights.v.shape[1]], -1)
        width = weights.q.shape[1] // self.sizes["heads"]
        q = self._G(q.reshape(m, t, groups, -1, width).permute(0, 2, 3, 1, 4).flatten(2, 3))  # [m, K, H/K · T, width]
        k, v = (self._G(x.reshape(m, t, groups, width).transpose(1, 2)) for x in (k, v))
        causal = torch.ones(t, t, dtype=h.dtype, device=h.device).tril().repeat(q.shape[2] // t, 1)
        a = self._G(self._F(q @ k.transpose(-1, -2)) * causal)
        o = self._F(a @ v).unflatten(2, (-1, t)).permute(0, 3, 1, 2, 4).reshape(m, t, -1)
        return self._F(_Product.apply(self._G(o), weights.o))

    def _mlp(self, h, weights):
        r = self._G(self._F(_Product.apply(h, weights.up)).relu())
        return self._F(_Product.apply(r, weights.down))

    def _drop(self, y, mask):
        return y if mask is None else 2 * mask.to(y.dtype) * y

    def forward(self, x, after_attention, after_mlp):
        """The stream x [m, T, d] after this layer; the masks are None without dropout."""
        x = self._G(x)  # the gradient of the stream, complete: its own and the branch's
        x = x + self._drop(self._attention(self._G(self._F(x)), self.attn), after_attention)
        x = self._G(x)
        return x + self._drop(self._mlp(self._G(self._F(x)), self.mlp), after_mlp)


class ExactDecoder(_Folds):
    """`model` is a case's; `storage` a torch dtype; `loss_scale` σ."""

    def __init__(self, model, storage=torch.float32, loss_scale=1):
        super().__init__(model, loss_scale)
        self.storage = storage
        self.embed = _holder(weight=_matrix(model["vocab"], model["width"]))
        self.pos = _holder(weight=_matrix(model["positions"], model["width"]))
        self.layers = torch.nn.ModuleList(ExactLayer(model, loss_scale) for _ in range(model["layers"]))

    def load(self, weights):
        """From {name: array} of a case."""
        with torch.no_grad():
            for name, parameter in self.named_parameters():
                parameter.copy_(torch.tensor(weights[name]))

    def forward(self, tokens, labels, share, masks=None):
        """The loss of a micro-batch's tokens [m, T], with share = u / N in fp32.

        masks: with dropout, a pair of bool tensors [m, T, d] for each layer, of the sites after Wo and after Wd.
        """
        x = _Rows.apply(self.embed.weight, tokens, self.storage)
        x = x + _Rows.apply(self.pos.weight, torch.arange(tokens.shape[-1], device=tokens.device).expand_as(tokens),
                            self.storage)
        for number, layer in enumerate(self.layers):
            x = layer(x, *(masks[number] if masks else (None, None)))
        h = self._G(self._F(x))
        logits = _Product.apply(h, self.embed.weight.t())
        return _Margin.apply(logits, labels, share, self.loss_scale)
