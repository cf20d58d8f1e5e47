# SPDX-License-Identifier: Apache-2.0
"""Where ./plumbline keeps what it fetches, for the starter and install.py: $XDG_CACHE_HOME/plumbline where that is an absolute
path, else .cache/plumbline in the home folder that the password file names. HOME is not asked: a test has one of its own."""
import os
import pathlib
import pwd


def cache_folder():
    named = pathlib.Path(os.environ.get("XDG_CACHE_HOME", ""))  # the XDG specification: ignore relative paths
    return (named if named.is_absolute() else pathlib.Path(pwd.getpwuid(os.getuid()).pw_dir, ".cache")) / "plumbline"


if __name__ == "__main__":
    print(cache_folder())
