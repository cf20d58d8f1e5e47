# SPDX-License-Identifier: Apache-2.0
"""A folder of packages in which `import torch` works on a machine without CUDA.

Of the version that ./plumbline takes LibTorch from only the Python part is unpacked, 50 MB, and the gigabyte of shared
libraries is linked to what ./plumbline has unpacked; another version has its own. PyTorch's CUDA half demands cuBLAS,
cuDNN, NCCL and others at load time: one library that only defines their names stands for them, and ends the program
if anything calls it (nothing does on a CPU)."""
import pathlib
import re
import zipfile

from .index import Missing, download, pin_of, run
from .specs import version_of

LEFT_OUT = re.compile(r"torch/(include|test)/|torch/bin/(?!torch_shm_manager$)")  # C++ headers and test helpers
LATER = {"libcaffe2_nvrtc.so", "libtorch_cuda_linalg.so"}  # loaded only when CUDA is used
CUDA_LIBRARIES = "nvidia/cu13/lib"


def _unpack(wheels, packages, without_libraries):
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(packages, [
                name for name in archive.namelist()
                if not LEFT_OUT.match(name) and not (without_libraries and name.startswith("torch/lib/"))])


def _link(source, target):
    """Links, not a linked folder: libraries look for their neighbours relative to where they were opened."""
    target.mkdir(parents=True, exist_ok=True)
    for library in source.glob("*.so*"):
        (target / library.name).symlink_to(library)


def _symbols(library, kind):
    lines = run("nm", "-D", kind, str(library)).splitlines()
    return {line.split()[-1].split("@")[0] for line in lines if line.split()[-2] != "w"}


def _needed(library):
    return set(re.findall(r"\(NEEDED\).*\[(.*)\]", run("readelf", "-d", str(library))))


def _stand_in(packages, scratch):
    """Defines what torch/lib needs and nobody here has, under the names of the libraries that would have it."""
    torch = [library for library in (packages / "torch/lib").glob("*.so*") if library.name not in LATER]
    ours = torch + list((packages / CUDA_LIBRARIES).glob("*.so*"))
    listed = re.findall(r"^\s+(\S+) \(libc6,x86-64.*=> (\S+)$", run("/sbin/ldconfig", "-p"), re.MULTILINE)
    system = {name: path for name, path in listed if not re.match(r"lib(cu|nccl|nvshmem)", name)}
    wanted = set().union(*(_needed(library) for library in torch)) - {library.name for library in ours}
    present = ours + [system[name] for name in wanted if name in system]
    defined = set().union(*(_symbols(library, "--defined-only") for library in present))
    undefined = set().union(*(_symbols(library, "--undefined-only") for library in torch))
    names = sorted(name for name in undefined - defined if not name.startswith(("Py", "_Py")))
    source = scratch / "no_cuda.c"
    source.write_text("void abort(void);\nvoid plumbline_no_cuda(void) { abort(); }\n" + "".join(
        'void %s(void) __attribute__((alias("plumbline_no_cuda")));\n' % name for name in names))
    folder = packages / CUDA_LIBRARIES
    run("gcc", "-w", "-shared", "-fPIC", "-fno-builtin", "-o", str(folder / "libplumbline_no_cuda.so"), str(source))
    for name in wanted - set(system):
        (folder / name).symlink_to("libplumbline_no_cuda.so")


def make(version, packages, scratch, pins, libtorch, say):
    """Fills the new folder `packages`, and returns what was fetched as pins. `pins` holds torch and what it needs,
    {name: line}; `libtorch` is ./plumbline's folder of the pinned version."""
    is_pinned = version == version_of(pins["torch"])
    if not (libtorch / "torch/lib").is_dir():
        raise Missing("no LibTorch in %s; ./plumbline build fetches it" % libtorch)
    say("fetching torch %s (530 MB)" % version)
    torch = download([pins["torch"] if is_pinned else "torch==" + version], scratch / "torch", scratch)
    helpers = [line for name, line in pins.items() if name != "torch"]
    others = download(helpers, scratch / "wheels", scratch)
    say("unpacking torch %s" % version)
    _unpack([*torch, *others], packages, without_libraries=is_pinned)
    (packages / "torch/bin/torch_shm_manager").chmod(0o755)
    if is_pinned:
        _link(libtorch / "torch/lib", packages / "torch/lib")
    _link(libtorch / CUDA_LIBRARIES, packages / CUDA_LIBRARIES)
    _stand_in(packages, pathlib.Path(scratch))
    return [pins["torch"] if is_pinned else pin_of("torch", version, torch[0]), *helpers]
