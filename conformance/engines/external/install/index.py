# SPDX-License-Identifier: Apache-2.0
"""Files of the package index, by pip: pinned ones are checked against the pin's hash, others against the index's, and
what they were is told as a pin."""
import hashlib
import re
import subprocess
import sys

from .specs import nearest


class Missing(Exception):
    """Something of the environment is not there; the message is one line."""


class NoSuchVersion(Exception):
    """The index does not have it; the message is one line."""


def run(*command, environment=None, what=None):
    try:
        result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False,
                                stdin=subprocess.DEVNULL, env=environment)
    except FileNotFoundError as error:
        raise Missing("%s is not installed" % command[0]) from error
    if result.returncode:
        lines = (result.stderr.strip() or result.stdout.strip() or "exit code %d" % result.returncode).splitlines()
        raise Missing("%s: %s" % (what or " ".join(command[:4]), lines[-1]))
    return result.stdout


def _reason(name, version, errors):
    """One line of what pip said."""
    versions = re.search(r"\(from versions: ([^)]*)\)", errors)
    if "No module named pip" in errors:
        return Missing("%s has no pip; apt-get install python3-pip" % sys.executable)
    if versions and versions[1] not in ("none", ""):
        return NoSuchVersion("there is no %s %s for this Python (%s); the nearest is %s" % (
            name, version, "%d.%d" % sys.version_info[:2], nearest(version, versions[1].split(", "))))
    connection = re.findall(r"after connection broken by '(.*?)'", errors)
    if connection:
        return Missing("%s cannot be fetched: no connection: %s" % (name, connection[-1]))
    lines = [line for line in errors.splitlines() if line.startswith(("ERROR", "OSError"))] or errors.splitlines()
    return Missing("%s cannot be fetched: %s" % (name, lines[-1] if lines else "pip failed"))


def download(pins, folder, scratch, is_source=False):
    """Fetches `pins`, lines of requirements; with hashes where all have one. Returns the files."""
    has_hashes = all("--hash=" in pin for pin in pins)
    requirements = scratch / "requirements.txt"
    requirements.write_text("\n".join(pins) + "\n")
    command = [sys.executable, "-I", "-m", "pip", "download", "--no-deps", "--no-cache-dir", "--no-build-isolation",
               "--retries", "2", "--disable-pip-version-check", "--no-binary" if is_source else "--only-binary",
               ":all:", "--dest", str(folder), "--requirement", str(requirements)]
    result = subprocess.run(command + (["--require-hashes"] if has_hashes else []), stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True, check=False)
    if result.returncode:
        name, version = pins[0].split()[0].split("==") if len(pins) == 1 else ("a package", "")
        raise _reason(name, version, result.stderr)
    return sorted(folder.iterdir())


def pin_of(name, version, path):
    with open(path, "rb") as file:
        return "%s==%s --hash=sha256:%s" % (name, version, hashlib.file_digest(file, "sha256").hexdigest())
