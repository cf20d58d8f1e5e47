# SPDX-License-Identifier: Apache-2.0
"""The end of a case on all ranks (docs/formats.md): rank 0 writes status.json when every rank is over, however it
ended.

Ranks tell each other through small files in OUT_DIR, so no communication library is needed for it, and none that
hangs can hinder it. Where a rank has failed and others wait for it in a collective, there is no end on all ranks:
then the process of the failed rank ends after a grace, with what was wrong as its last words, and the harness starts
the engine again."""
import json
import os
import time

OK, UNSUPPORTED, ENVIRONMENT, ERROR = 0, 3, 4, 5
NAMES = {OK: "ok", UNSUPPORTED: "unsupported", ENVIRONMENT: "environment", ERROR: "error"}
GRACE_S = 2.0  # what the others get to notice an error


class PeersHang(Exception):
    """This rank is over and others are not; the process must end."""


def _write(path, value):
    partial = path.with_name(path.name + ".partial")
    partial.write_text(json.dumps(value))
    os.replace(partial, path)


def _wait(condition, seconds, what):
    limit = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > limit:
            raise PeersHang(what)
        time.sleep(0.002)


def _said(message, what):
    return "%s; %s" % (message, what) if message else what


def _gather(out_dir, world, code, message, when, wait_s):
    """The worst end of all ranks, (code, message); of equal ones the first, since it is what the others fail of."""
    ends = [(code, message, when)]
    for rank in range(1, world):
        path = out_dir / ("over-%d.json" % rank)
        worst = max(end[0] for end in ends)
        _wait(path.exists, wait_s if worst < ERROR else GRACE_S, _said(message, "rank %d is not over" % rank))
        peer_code, peer_message, peer_when = json.loads(path.read_text())
        ends.append((peer_code, "rank %d: %s" % (rank, peer_message) if peer_message else "", peer_when))
    for rank in range(1, world):
        (out_dir / ("over-%d.json" % rank)).unlink()
    return min(ends, key=lambda end: (-end[0], end[2]))[:2]


def end_case(out_dir, ranks, code, message, when, wait_s):
    """Called by every rank, once a case; `when` is the time.time() of its end. Returns the case's code; PeersHang with
    the reason where it cannot end."""
    if ranks.rank == 0:
        code, message = _gather(out_dir, ranks.world, code, message, when, wait_s)
        _write(out_dir / "status.json", {"status": NAMES[code], "message": message})
    else:
        path = out_dir / ("over-%d.json" % ranks.rank)
        _write(path, [code, message, when])
        _wait(lambda: not path.exists(), wait_s if code < ERROR else GRACE_S, _said(message, "rank 0 is not over"))
    return code
