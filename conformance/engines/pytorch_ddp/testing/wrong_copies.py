# SPDX-License-Identifier: Apache-2.0
"""Wrong copies of the adapter, each made by replacing one text that must occur exactly once: what is judged stays one file.

Each is a mistake that users of DDP make, on two ranks or more with unequal counts of tokens.
"""
import pathlib
import shutil

# title: (text, its replacement, what `plumbline verify` says about it, as a pattern)
WRONG = {
    "no reduction: each rank steps on its own gradient":
        ("contextlib.nullcontext() if part == len(batch[0]) else model.no_sync()", "model.no_sync()", "differs from rank 0's"),
    "the average over ranks where the sum is due":
        ("(share * world).backward()", "share.backward()", r"the gradient is 0\.\d+ times the truth"),
    "each rank divides by its own count of tokens":
        ("total(batch[2].sum())", "batch[2].sum()", "tokens differs from rank 0's"),
}


def changed_copy(starter, engine, folder, old, new):
    """Puts a copy of both, and of what the starter runs, into the new folder and returns the starter's."""
    text = pathlib.Path(engine).read_text()
    assert text.count(old) == 1, "%r occurs %d times" % (old, text.count(old))
    pathlib.Path(folder).mkdir()
    pathlib.Path(folder, "engine.py").write_text(text.replace(old, new))
    shutil.copy(pathlib.Path(engine).with_name("cache_folder.py"), folder)
    return pathlib.Path(shutil.copy(starter, folder))
