# SPDX-License-Identifier: Apache-2.0
"""The folders of installed engines in the cache folder: one at a time is made, complete or not at all.

  engines/torch-2.11.0/packages                      what an adapter puts on its path
  engines/torch-2.11.0/installed.txt                 what was fetched, as pins
  engines/deepspeed-0.19.8-torch-2.11.0/...          its packages are links to torch's, and DeepSpeed's own
  engines/torch, engines/deepspeed                   links to the folders that adapters take by themselves"""
import contextlib
import fcntl
import os
import pathlib
import pwd
import shutil
import tempfile


def cache_folder():
    """That of ./plumbline: $XDG_CACHE_HOME where it is an absolute path, else .cache in the home folder that the
    password file names. HOME is not asked: a test has one of its own."""
    named = pathlib.Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (named if named.is_absolute() else pathlib.Path(pwd.getpwuid(os.getuid()).pw_dir, ".cache")) / "plumbline"


@contextlib.contextmanager
def locked(engines, say):
    """Alone in the folder. What was left by an install that was killed is removed."""
    engines.mkdir(parents=True, exist_ok=True)
    with open(engines / "install.lock", "w", encoding="utf-8") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("waiting for another install to end")
            fcntl.flock(lock, fcntl.LOCK_EX)
        for left in engines.glob(".new-*"):
            shutil.rmtree(left, ignore_errors=True)
        yield


@contextlib.contextmanager
def new_folder(engines, name):
    """(folder, scratch): `folder`, beside the others, becomes engines/NAME at the end, if nothing was raised."""
    folder = pathlib.Path(tempfile.mkdtemp(dir=engines, prefix=".new-"))
    try:
        with tempfile.TemporaryDirectory(dir=engines, prefix=".new-") as scratch:
            yield folder, pathlib.Path(scratch)
        folder.chmod(0o755)
        folder.rename(engines / name)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def make_default(engines, program, name, is_pinned):
    """engines/PROGRAM becomes a link to engines/NAME where no version was asked for, or where there is none yet."""
    link = engines / program
    if is_pinned or not link.exists():
        partial = engines / (".new-link-" + program)
        partial.unlink(missing_ok=True)
        partial.symlink_to(name)
        os.replace(partial, link)
