# SPDX-License-Identifier: Apache-2.0
"""Where an adapter finds PyTorch, and its options; imports nothing of it before it is found.

  options = packages.find("ddp", sys.argv)      takes its options out of the arguments and puts the folder on sys.path

  --packages FOLDER      a folder that `plumbline engine install` made, or any other that has the packages in it
  --compile [BACKEND]    torch.compile, of this backend (inductor)

Where torch is not there or cannot be loaded: one line, and exit code 4."""
import os
import pathlib
import pwd
import sys
import typing
import warnings

OWN_COMMANDS = ("describe", "run")  # an argument that is none of them, after --compile, is its backend


class Options(typing.NamedTuple):
    folder: pathlib.Path
    backend: typing.Optional[str]


def default_folder(engine="torch"):
    """Where `plumbline engine install torch` (or deepspeed) puts the pinned version: HOME is not asked, as the launcher
    does not."""
    named = pathlib.Path(os.environ.get("XDG_CACHE_HOME", ""))  # the XDG specification: ignore relative paths
    cache = named if named.is_absolute() else pathlib.Path(pwd.getpwuid(os.getuid()).pw_dir, ".cache")
    return cache / "plumbline" / "engines" / engine / "packages"


def _taken(arguments, engine):
    """Options, from the front of the arguments after the program's name."""
    folder, backend = default_folder(engine), None
    while len(arguments) > 1 and arguments[1] in ("--packages", "--compile"):
        option = arguments.pop(1)
        value = arguments.pop(1) if len(arguments) > 1 and arguments[1] not in OWN_COMMANDS else None
        if option == "--packages":
            folder = pathlib.Path(value or "").absolute()
            folder = folder / "packages" if (folder / "packages").is_dir() else folder
        else:
            backend = value or "inductor"
    return Options(folder, backend)


def find(program, arguments, engine="torch"):
    """`engine`: the package that is driven, torch or deepspeed."""
    options = _taken(arguments, engine)
    if not all((options.folder / name).is_dir() for name in ("torch", engine)):
        print("%s: no %s in %s; ./plumbline engine install %s installs it" % (
            program, {"torch": "PyTorch", "deepspeed": "DeepSpeed"}[engine], options.folder, engine), file=sys.stderr)
        sys.exit(4)
    sys.path.insert(0, str(options.folder))
    warnings.filterwarnings("ignore", message="Detected call of .lr_scheduler.step")  # after a skipped first step
    try:
        import torch  # noqa: F401
    except (ImportError, OSError) as error:  # OSError: a shared library
        print("%s: PyTorch cannot be loaded: %s" % (program, (str(error).splitlines() or ["?"])[0]), file=sys.stderr)
        sys.exit(4)
    return options


def version(module, options):
    """Of a description: that of what is driven, and how."""
    return module.__version__ + (" compiled by " + options.backend if options.backend else "")
