# SPDX-License-Identifier: Apache-2.0
"""Every edit names a source of an engine_library, and no switchable twin links plain engine code.

Also: the README counts the edits as they are. Reads the source tree that the WORKSPACE file given as argument belongs to.
Whether an edit's text matches is checked where it is applied, in the build.
"""

import collections
import importlib.util
import pathlib
import re
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

families = collections.Counter(
    found.group(1) if (found := re.search(r"^family: (\w+)", path.read_text(encoding="utf-8"), re.MULTILINE)) else "exact"
    for path in (workspace / "conformance/defects/edits").glob("*.edit"))
sentence = "Planted defects: %d, %d of them tried on gpt2 and %d on llama;" % (families.total(), families["gpt2"], families["llama"])
if sentence not in (workspace / "README.md").read_text(encoding="utf-8"):
    sys.exit('README.md does not say "%s"' % sentence)

# Each folder of edits is a table of its own: an id is unique in its folder, not in the tree.
sys.exit(max(apply_edits.main(["check", str(workspace)] + edits) for edits in folders.values()))
