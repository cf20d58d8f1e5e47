# SPDX-License-Identifier: Apache-2.0
"""What `plumbline engine install` was asked for: SPECs like `torch` and `deepspeed==0.19.8` made into versions, and the
name of the folder that has them. Pure: no file, no network."""
import difflib
import re
import typing

NAMES = ("torch", "deepspeed")
SPEC = re.compile(r"([A-Za-z0-9_.-]+)(?:==([0-9]+(?:\.[0-9]+)*(?:(?:a|b|rc|\.post|\.dev)[0-9]+)?))?")


class Usage(Exception):
    """The command line asks for what cannot be meant; the message is one line."""


class Request(typing.NamedTuple):
    torch: str
    deepspeed: typing.Optional[str]
    is_pinned: bool  # no version was named

    @property
    def torch_folder(self):
        return "torch-" + self.torch

    @property
    def folder(self):
        return "deepspeed-%s-%s" % (self.deepspeed, self.torch_folder) if self.deepspeed else self.torch_folder


def _parsed(spec):
    match = SPEC.fullmatch(spec)
    if not match:
        raise Usage("SPEC is '%s'; allowed: NAME or NAME==VERSION, deepspeed==0.19.8 say" % spec)
    name = match[1].lower()
    if name not in NAMES:
        near = difflib.get_close_matches(name, NAMES, 1)
        raise Usage("'%s' is no engine that can be installed%s; allowed: %s"
                    % (match[1], "; did you mean %s?" % near[0] if near else "", ", ".join(NAMES)))
    return name, match[2]


def request(specs, pins):
    """pins: {name: version} of both, which stand for versions that are left out."""
    wanted = {}
    for spec in specs:
        name, version = _parsed(spec)
        if name in wanted:
            raise Usage("%s is given twice" % name)
        wanted[name] = version
    if not wanted:
        raise Usage("no SPEC; for example: torch, torch==2.15.0, deepspeed==0.19.8 torch==2.11.0")
    deepspeed = (wanted["deepspeed"] or pins["deepspeed"]) if "deepspeed" in wanted else None
    return Request(wanted.get("torch") or pins["torch"], deepspeed, not any(wanted.values()))


def pins_of(text):
    """{name: line} of a file of requirements, `name==version --hash=...` a line."""
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return {line.split("==")[0]: line for line in lines}


def version_of(pin):
    return pin.split("==")[1].split()[0]


def numbers(version):
    return [int(number) for number in re.findall(r"\d+", version)]


def nearest(version, versions):
    """Of those that there are: with as many equal numbers in front as can be, and of these the next in size."""
    def distance(other):
        pairs = [abs(a - b) for a, b in zip(numbers(version) + [0] * 4, numbers(other) + [0] * 4)]
        return pairs, numbers(other)
    return min(versions, key=distance, default=None)
