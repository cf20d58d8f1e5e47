# SPDX-License-Identifier: Apache-2.0
"""What a training engine in Python needs to be judged by Plumbline (docs/add-an-engine.md): the protocol, the formats,
the random stream, masks of dropout, and a driver that calls an engine's build, step, export, save and load.

Written from the documents and from no engine of ours. Needs NumPy; `torch` is imported by exact_torch.py alone.
"""
from .bfloat16 import from_bfloat16, rounded_to_bfloat16, to_bfloat16
from .case import Batch, Case, read_case
from .config import Config
from .description import describe
from .driver import Engine
from .errors import MissingHere, Unsupported
from .export import Slice
from .masks import keep_mask
from .parameters import Parameter, parameters
from .protocol import main
from .random_stream import draw
from .ranks import Ranks
from .star import Star
from .tensor_file import Tensor, read_tensor_file, write_tensor_file
from .trace import StepResult

__all__ = [
    "Batch", "Case", "Config", "Engine", "MissingHere", "Parameter", "Ranks", "Slice", "Star", "StepResult", "Tensor",
    "Unsupported", "describe", "draw", "from_bfloat16", "keep_mask", "main", "parameters", "read_case",
    "read_tensor_file", "rounded_to_bfloat16", "to_bfloat16", "write_tensor_file"
]
