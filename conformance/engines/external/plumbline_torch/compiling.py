# SPDX-License-Identifier: Apache-2.0
"""torch.compile as an option of an adapter."""
import torch


def compiled(model, backend):
    """The model itself where backend is None. Each case has a model of its own, so what was compiled for the one
    before is forgotten; else PyTorch stops compiling after a few."""
    if backend is None:
        return model
    torch.compiler.reset()
    return torch.compile(model, backend=backend)
