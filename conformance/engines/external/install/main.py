#!/usr/bin/python3 -IB
# SPDX-License-Identifier: Apache-2.0
"""`./plumbline engine install SPEC...`: puts PyTorch for Python, or DeepSpeed with it, into a folder of its own, for
CPUs only, and programs beside it that `verify --engine` can judge. The system's Python is not touched."""
import contextlib
import pathlib
import signal
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from install import deepspeed_packages, folders, launchers, torch_packages  # noqa: E402
from install.index import Missing, NoSuchVersion, run  # noqa: E402
from install.specs import Usage, pins_of, request, version_of  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
LIBTORCH_PINS = HERE.parents[3] / "bazel/libtorch_wheels.txt"
HELP = """usage: ./plumbline engine install [--dry-run] SPEC...

Puts an engine of others into a folder of its own below ${XDG_CACHE_HOME:-~/.cache}/plumbline/engines, for CPUs only,
with programs beside it that `verify --engine` can judge. It takes minutes; what is there already is not fetched again.

  SPEC    torch, torch==VERSION, deepspeed or deepspeed==VERSION; deepspeed comes with the torch that is named beside
          it. Without a version: torch %s and deepspeed %s, whose files are known by hash
  --dry-run
          Only print the folder; nothing is fetched

examples:
  ./plumbline engine install torch
  ./plumbline engine install torch==2.15.0
  ./plumbline engine install deepspeed==0.19.8 torch==2.15.0
  ./plumbline verify --engine ~/.cache/plumbline/engines/torch-%s/ddp --expect-unsupported '*'

Adapters that are started by themselves take engines/torch and engines/deepspeed, which an install without a version
sets, and the first one.

Exit codes: 0 ok, 2 bad usage, 4 environment (no such version, no network, no space), 130 interrupted."""
TORCH_WORKS = ("import torch, torch.distributed as d; assert d.is_gloo_available(); "
               "assert (torch.ones(3) @ torch.ones(3)) == 3")
DEEPSPEED_WORKS = TORCH_WORKS + "; import deepspeed; deepspeed.initialize"


def say(text):
    print("plumbline: " + text, file=sys.stderr, flush=True)


def read_pins():
    torch = {name: line for name, line in pins_of(LIBTORCH_PINS.read_text()).items() if name == "torch"}
    torch.update(pins_of((HERE / "pins/torch.txt").read_text()))
    return torch, *(pins_of((HERE / "pins" / name).read_text()) for name in ("deepspeed.txt", "sources.txt"))


def finish(folder, program, fetched):
    packages = folder / "packages"
    with contextlib.suppress(Missing):  # else each start would take 2 s more; a file may be for a later Python
        run(sys.executable, "-I", "-m", "compileall", "-q", str(packages))
    run("/usr/bin/env", "PYTHONPATH=%s" % packages, "DS_ACCELERATOR=cpu", sys.executable, "-sPB", "-c", program,
        what="what was fetched cannot be used")
    (folder / "installed.txt").write_text("\n".join(fetched) + "\n")


def install(wanted, engines, cache, all_pins):
    torch_pins, deepspeed_pins, sources = all_pins
    torch = engines / wanted.torch_folder
    if not torch.exists():
        libtorch = cache / ("libtorch-" + version_of(torch_pins["torch"]))
        with folders.new_folder(engines, torch.name) as (folder, scratch):
            fetched = torch_packages.make(wanted.torch, folder / "packages", scratch, torch_pins, libtorch, say)
            finish(folder, TORCH_WORKS, fetched)
    if wanted.deepspeed and not (engines / wanted.folder).exists():
        with folders.new_folder(engines, wanted.folder) as (folder, scratch):
            fetched = deepspeed_packages.make(wanted.deepspeed, folder / "packages", scratch, deepspeed_pins, sources,
                                              torch / "packages", say)
            finish(folder, DEEPSPEED_WORKS, [*(torch / "installed.txt").read_text().splitlines(), *fetched])
    folders.make_default(engines, "torch", torch.name, wanted.is_pinned)
    if wanted.deepspeed:
        folders.make_default(engines, "deepspeed", wanted.folder, wanted.is_pinned)
    return engines / wanted.folder


def main(arguments):
    torch_pins, *_, sources = all_pins = read_pins()
    pins = {"torch": version_of(torch_pins["torch"]), "deepspeed": version_of(sources["deepspeed"])}
    if not arguments or {"--help", "-h"} & set(arguments):
        print(HELP % (pins["torch"], pins["deepspeed"], pins["torch"]), file=sys.stdout if arguments else sys.stderr)
        return 0 if arguments else 2
    wanted = request([word for word in arguments if word != "--dry-run"], pins)
    cache = folders.cache_folder()
    engines = cache / "engines"
    if "--dry-run" in arguments:
        print(engines / wanted.folder)
        return 0
    with folders.locked(engines, say):
        folder = install(wanted, engines, cache, all_pins)
        names = launchers.write(folder, wanted.deepspeed is not None)
    print("%s; judge it with" % folder)
    for name in names:
        print("  ./plumbline verify --engine %s --expect-unsupported '*'" % (folder / name))
    return 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        code = main(sys.argv[1:])
    except (Usage, Missing, NoSuchVersion, OSError) as error:
        print("plumbline: engine install: %s" % error, file=sys.stderr)
        code = 2 if isinstance(error, Usage) else 4
    except KeyboardInterrupt:
        code = 130
    sys.exit(code)
