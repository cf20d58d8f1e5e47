# SPDX-License-Identifier: Apache-2.0
"""Storage types: their names in a config, torch's, and how a tensor becomes the array that the kit's export() takes."""
import numpy
import torch

STORAGE = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


def array(tensor):
    """The values of a plain tensor; bf16 as its bits in uint16, since NumPy has no such type."""
    tensor = tensor.detach().cpu().contiguous()
    if tensor.dtype == torch.bfloat16:
        return tensor.view(torch.int16).numpy().view(numpy.uint16)
    return tensor.numpy()
