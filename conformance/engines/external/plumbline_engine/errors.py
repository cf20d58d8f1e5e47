# SPDX-License-Identifier: Apache-2.0
"""How a case may end other than well (docs/formats.md, An engine is a program). Any other exception is an error of
the engine."""


class Unsupported(Exception):
    """The case asks for something that the engine does not do: raise it rather than do something else instead."""


class MissingHere(Exception):
    """This machine lacks what the case needs (a device, memory, a library): status "environment"."""
