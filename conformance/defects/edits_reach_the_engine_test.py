# SPDX-License-Identifier: Apache-2.0
"""Every edit names a source of an engine_library, and no switchable twin links plain engine code.

Reads the source tree that the WORKSPACE file given as argument belongs to. Whether an edit's text matches is checked where
it is applied, in the build.
"""

import importlib.util
import pathlib
import sys

spec = importlib.util.spec_from_file_location("apply_edits", pathlib.Path(__file__).with_name("apply_edits.py"))
apply_edits = importlib.util.module_from_spec(spec)
spec.loader.exec_module(apply_edits)

workspace = pathlib.Path(sys.argv[1]).resolve().parent
folders = {}
for path in sorted((workspace / "conformance/defects").glob("**/*.edit")):
    folders.setdefault(path.parent, []).append(str(path))
if not folders:
    sys.exit("no edit below conformance/defects: nothing was checked")

# Each folder of edits is a table of its own: an id is unique in its folder, not in the tree.
sys.exit(max(apply_edits.main(["check", str(workspace)] + edits) for edits in folders.values()))
