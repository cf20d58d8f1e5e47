# SPDX-License-Identifier: Apache-2.0
"""A folder of packages in which `import deepspeed` works, beside a torch that is linked: built from its source package
without compiled operations, which its CPU path over Gloo does not need."""
import os
import sys
import zipfile

from .index import download, pin_of, run
from .specs import version_of


def _link_torch(torch_packages, packages):
    """Relative links, so that the cache folder may move as a whole."""
    packages.mkdir(parents=True)
    for entry in torch_packages.iterdir():
        (packages / entry.name).symlink_to(os.path.join("..", "..", torch_packages.parent.name, torch_packages.name,
                                                        entry.name))


def _unpack(wheels, folder):
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(folder)


def make(version, packages, scratch, pins, sources, torch_packages, say):
    """Fills the new folder `packages`, which is as deep below the cache folder as torch_packages, and returns what was
    fetched as pins. `pins` is what DeepSpeed needs, `sources` itself and what builds it; {name: line} both."""
    is_pinned = version == version_of(sources["deepspeed"])
    say("fetching deepspeed %s" % version)
    archive = download([sources["deepspeed"] if is_pinned else "deepspeed==" + version], scratch / "source", scratch,
                       is_source=True)
    tools = scratch / "tools"
    _unpack(download([sources["setuptools"]], scratch / "setuptools", scratch), tools)
    _link_torch(torch_packages, packages)
    _unpack(download(list(pins.values()), scratch / "wheels", scratch), packages)
    say("building deepspeed %s without compiled operations" % version)
    search = os.pathsep.join((str(packages), str(tools)))
    run("/usr/bin/env", "PYTHONPATH=" + search, "DS_BUILD_OPS=0", "DS_ACCELERATOR=cpu", sys.executable, "-sP",
        "-m", "pip", "wheel", "--no-deps", "--no-index", "--no-build-isolation", "--no-cache-dir", "--disable-pip-version-check",
        "--wheel-dir", str(scratch / "built"), str(archive[0]), what="deepspeed %s cannot be built" % version)
    _unpack((scratch / "built").glob("*.whl"), packages)
    return [sources["deepspeed"] if is_pinned else pin_of("deepspeed", version, archive[0]), sources["setuptools"],
            *pins.values()]
