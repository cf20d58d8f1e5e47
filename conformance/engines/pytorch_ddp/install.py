#!/usr/bin/python3 -IB
# SPDX-License-Identifier: Apache-2.0
"""Puts PyTorch for Python into a folder of its own, for CPUs only, without touching the system's Python.

  install.py [FOLDER]        default: pytorch in the cache folder (cache_folder.py)

It fetches the wheel from which ./plumbline takes LibTorch (same pin and hash) and keeps its Python part, 50 MB; the gigabyte of
shared libraries is linked to what ./plumbline has unpacked. PyTorch's CUDA half demands cuBLAS, cuDNN, NCCL and others at load
time: one library that only defines their names stands for them, and ends the program if anything calls it (nothing does on a
CPU). Replaces FOLDER as a whole, by a rename. Exit code 4, and one line, if something is missing.
"""
import pathlib
import re
import runpy
import shutil
import subprocess
import sys
import tempfile
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
CACHE = runpy.run_path(str(HERE / "cache_folder.py"))["cache_folder"]()
LIBTORCH_WHEELS = HERE.parents[2] / "bazel/libtorch_wheels.txt"
# Of torch/: no C++ headers, no test helpers of C++, and the libraries come from LibTorch's folder.
LEFT_OUT = re.compile(r"torch/(include|lib|test)/|torch/bin/(?!torch_shm_manager$)")

# Loaded only when CUDA is used.
LATER = {"libcaffe2_nvrtc.so", "libtorch_cuda_linalg.so"}


class Missing(Exception):
    """Something of the environment is not there; the message is one line."""


def run(*command):
    try:
        result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    except FileNotFoundError as error:
        raise Missing("%s is not installed" % command[0]) from error
    if result.returncode:
        line = (result.stderr.strip() or result.stdout.strip() or "exit code %d" % result.returncode).splitlines()[-1]
        raise Missing("%s: %s" % (" ".join(command[:4]), line))
    return result.stdout


def torch_pin():
    return next(line for line in LIBTORCH_WHEELS.read_text().splitlines() if line.startswith("torch=="))


def fetch(scratch):
    wheels, pins = scratch / "wheels", scratch / "pins.txt"
    pins.write_text((HERE / "wheels.txt").read_text() + torch_pin() + "\n")
    run(sys.executable, "-m", "pip", "download", "--no-deps", "--require-hashes", "--only-binary=:all:", "--no-cache-dir",
        "--disable-pip-version-check", "--dest", str(wheels), "--requirement", str(pins))
    return sorted(wheels.glob("*.whl"))


def unpack(wheels, site):
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(site, [name for name in archive.namelist() if not LEFT_OUT.match(name)])
    (site / "torch/bin/torch_shm_manager").chmod(0o755)


def link_libraries(libtorch, site):
    """Links, not a linked folder: libraries look for their neighbours relative to the folder that they were opened in."""
    for source, target in ((libtorch / "torch/lib", site / "torch/lib"), (libtorch / "nvidia/cu13/lib", site / "nvidia/cu13/lib")):
        target.mkdir(parents=True)
        for library in source.glob("*.so*"):
            (target / library.name).symlink_to(library)


def symbols(library, kind):
    lines = run("nm", "-D", kind, str(library)).splitlines()
    return {line.split()[-1].split("@")[0] for line in lines if line.split()[-2] != "w"}


def needed(library):
    return set(re.findall(r"\(NEEDED\).*\[(.*)\]", run("readelf", "-d", str(library))))


def stand_in(site, scratch):
    """The library that defines what torch/lib needs and nobody here has, under the names of those that would have it."""
    torch = [library for library in (site / "torch/lib").glob("*.so*") if library.name not in LATER]
    ours = torch + list((site / "nvidia/cu13/lib").glob("*.so*"))
    listed = re.findall(r"^\s+(\S+) \(libc6,x86-64.*=> (\S+)$", run("/sbin/ldconfig", "-p"), re.MULTILINE)
    system = {name: path for name, path in listed if not re.match(r"lib(cu|nccl|nvshmem)", name)}
    wanted = set().union(*(needed(library) for library in torch)) - {library.name for library in ours}
    present = ours + [system[name] for name in wanted if name in system]
    defined = set().union(*(symbols(library, "--defined-only") for library in present))
    undefined = set().union(*(symbols(library, "--undefined-only") for library in torch))
    names = sorted(name for name in undefined - defined if not name.startswith(("Py", "_Py")))
    source = scratch / "no_cuda.c"
    source.write_text("void abort(void);\nvoid plumbline_no_cuda(void) { abort(); }\n" + "".join(
        'void %s(void) __attribute__((alias("plumbline_no_cuda")));\n' % name for name in names))
    folder = site / "nvidia/cu13/lib"
    run("gcc", "-w", "-shared", "-fPIC", "-fno-builtin", "-o", str(folder / "libplumbline_no_cuda.so"), str(source))
    for name in wanted - set(system):
        (folder / name).symlink_to("libplumbline_no_cuda.so")


def check(site):
    test = "import torch, torch.distributed as d; assert d.is_gloo_available(); print(torch.__version__, torch.ones(3) @ torch.ones(3))"
    return run("/usr/bin/env", "PYTHONPATH=%s" % site, sys.executable, "-sP", "-c", test).strip()


def install(folder):
    libtorch = CACHE / ("libtorch-" + torch_pin().split(" ")[0].split("==")[1])
    if not (libtorch / "torch/lib").is_dir():
        raise Missing("no LibTorch in %s; ./plumbline build fetches it" % libtorch)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix="pytorch.") as scratch:
        scratch = pathlib.Path(scratch)
        site = scratch / "site"
        unpack(fetch(scratch), site)
        link_libraries(libtorch, site)
        stand_in(site, scratch)
        run(sys.executable, "-m", "compileall", "-q", str(site))  # else each start would take 2 s more
        print("PyTorch %s in %s" % (check(site).split()[0], folder))
        if folder.exists():
            folder.rename(scratch / "old")
        site.rename(folder)
        shutil.rmtree(scratch / "old", ignore_errors=True)


if __name__ == "__main__":
    try:
        install(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else CACHE / "pytorch").absolute())
    except (Missing, OSError) as error:
        sys.exit(print("install.py: %s" % error, file=sys.stderr) or 4)
