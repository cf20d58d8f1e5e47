# SPDX-License-Identifier: Apache-2.0
"""What a rank holds after a step, as an engine's export() returns it, made into slices and held to the case.

  {"gradient": {NAME: values, ...}, "moment": ..., "second_moment": ..., "master": ..., "weight": ...}

`values` is an array in the protocol's shape, or a Slice, or a list of Slices of a tensor that this rank has in
parts. What is forgotten, unknown, or of another shape or type is an error that names the tensor, before a byte of it
is written."""
import typing

import numpy

from .digests import exact_digest, integers_of, real_digest
from .tensor_file import Tensor

KINDS = ("gradient", "moment", "second_moment", "master", "weight")
STORAGE = {"fp64": "F64", "fp32": "F32", "bf16": "BF16", "fp16": "F16"}
ARRAY_TYPES = {"F64": numpy.float64, "F32": numpy.float32, "BF16": numpy.uint16, "F16": numpy.float16}


class Slice(typing.NamedTuple):
    begin: int  # row-major index in the whole tensor
    values: numpy.ndarray


class Held(typing.NamedTuple):
    kind: str
    name: str
    begin: int
    values: numpy.ndarray  # one dimension

    @property
    def end(self):
        return self.begin + self.values.size


class Exports:
    """Knows what one case demands of one rank."""

    def __init__(self, case):
        self.case, config = case, case.config
        trained = {p.name: p for p in case.parameters if not p.frozen}
        everything = {p.name: p for p in case.parameters}
        self.expected = {"gradient": trained, **({"moment": trained} if config.has_moment else {}),
                         **({"second_moment": trained} if config.has_second_moment else {}),
                         "master": everything, "weight": everything}
        self.dtypes = {kind: self._dtype(kind) for kind in self.expected}

    def _dtype(self, kind):
        storage = STORAGE[self.case.config.storage]
        if self.case.is_exact:
            return "I64"
        return storage if kind == "weight" or storage == "F64" else "F32"

    def is_whole(self, kind, parameter):
        """Whether every rank must list all of it, whatever the others have."""
        config = self.case.config
        stage = config.stage_of(parameter.name)
        if config.data_degree == 1 or stage == 0 or parameter.frozen:
            return True
        return kind == "weight" and stage < 3

    def held(self, exported):
        """A list of Held, or ValueError."""
        unknown = sorted(set(exported) - set(self.expected))
        if unknown:
            raise ValueError("export() has %r; of this case: %s" % (unknown[0], ", ".join(self.expected)))
        return [
            piece for kind, parameters in self.expected.items()
            for piece in self._kind(kind, parameters, exported.get(kind, {}))
        ]

    def _kind(self, kind, parameters, tensors):
        for name in tensors:
            if name not in parameters:
                raise ValueError("export(): %s of %s: the case has no such tensor; it has %s"
                                 % (kind, name, ", ".join(parameters)))
        for name, parameter in parameters.items():
            pieces = self._pieces(kind, parameter, tensors[name]) if name in tensors else []
            if self.is_whole(kind, parameter):
                self._check_whole(kind, parameter, pieces)
            yield from pieces

    def _pieces(self, kind, parameter, given):
        where = "export(): %s of %s" % (kind, parameter.name)
        if isinstance(given, Slice) or not isinstance(given, list):
            given = [given]
        pieces = []
        for part in given:
            if not isinstance(part, Slice):
                part = numpy.asarray(part)
                if part.shape != parameter.shape:
                    raise ValueError("%s has shape %s; the protocol's is %s" %
                                     (where, list(part.shape), list(parameter.shape)))
                part = Slice(0, part)
            values = numpy.ascontiguousarray(part.values).ravel()
            if not 0 <= part.begin <= part.begin + values.size <= parameter.numel:
                raise ValueError("%s: slice [%d, %d) of %d elements" %
                                 (where, part.begin, part.begin + values.size, parameter.numel))
            if values.size:
                pieces.append(Held(kind, parameter.name, int(part.begin), self._typed(where, kind, values)))
        return pieces

    def _typed(self, where, kind, values):
        dtype = self.dtypes[kind]
        if dtype == "I64":
            try:
                return integers_of(values)
            except ValueError as error:
                raise ValueError("%s: %s" % (where, error)) from None
        if values.dtype != ARRAY_TYPES[dtype]:
            raise ValueError("%s holds %s; %s is needed%s" % (where, values.dtype, numpy.dtype(ARRAY_TYPES[dtype]),
                                                              ", the bits of bf16" if dtype == "BF16" else ""))
        return values

    def _check_whole(self, kind, parameter, pieces):
        reached = 0
        for piece in sorted(pieces, key=lambda piece: piece.begin):
            if piece.begin != reached:
                break
            reached = piece.end
        if reached != parameter.numel or sum(piece.values.size for piece in pieces) != parameter.numel:
            raise ValueError("export(): %s of %s: %s; all %d elements are needed, each once" %
                             (kind, parameter.name, "elements from %d on are missing or there twice" %
                              reached if pieces else "missing", parameter.numel))

    def entries(self, held):
        """{kind: entries of the trace}."""
        lists = {kind: [] for kind in self.expected}
        for kind, name, begin, values in held:
            digest = exact_digest(begin, values, kind == "gradient") if self.case.is_exact else real_digest(
                begin, values)
            lists[kind].append([name, begin, begin + values.size, *digest])
        return lists

    def dump(self, held):
        """{name: Tensor} of a dump file."""
        return {
            "%s/%s@%d" % (kind, name, begin): Tensor(self.dtypes[kind], values) for kind, name, begin, values in held
        }
