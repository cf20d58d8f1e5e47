# SPDX-License-Identifier: Apache-2.0
"""Programs beside the packages that call this checkout's adapters with them, for `verify --engine FOLDER/ddp`."""
import pathlib
import shlex

ADAPTERS = pathlib.Path(__file__).resolve().parent.parent / "adapters"
OF_TORCH = ("torch_python", "ddp", "fsdp2")


def write(folder, has_deepspeed):
    """Of the adapters that this checkout has. Returns their names."""
    names = [name for name in OF_TORCH + (("deepspeed",) if has_deepspeed else ()) if (ADAPTERS / name).is_file()]
    for name in names:
        launcher = folder / name
        launcher.write_text('#!/bin/sh\nexec %s --packages %s "$@"\n' %
                            (shlex.quote(str(ADAPTERS / name)), shlex.quote(str(folder / "packages"))))
        launcher.chmod(0o755)
    return names
