# SPDX-License-Identifier: Apache-2.0
"""The command line of an engine (docs/formats.md): describe, run --case DIR --out DIR, run --batch FILE.

  main(DESCRIPTION, MyEngine)        at the end of your program; it does not return
"""
import json
import os
import pathlib
import sys
import time
import traceback

from . import case_end
from .case_end import ENVIRONMENT, ERROR, OK, UNSUPPORTED
from .driver import run_case
from .errors import MissingHere, Unsupported
from .ranks import Ranks

USAGE = "usage: PROGRAM describe | run --case CASE_DIR --out OUT_DIR | run --batch FILE"
WAIT_S = 600  # for ranks that are well; the harness ends a case that takes too long


def _code_of(error):
    return UNSUPPORTED if isinstance(error, Unsupported) else ENVIRONMENT if isinstance(error, MissingHere) else ERROR


def _text_of(error):
    lines = str(error).splitlines() or [""]
    return lines[0] if isinstance(error, (Unsupported, MissingHere)) else "%s: %s" % (type(error).__name__, lines[0])


def _run(description, engine_class, case_dir, out_dir, ranks, group, number):
    """Whatever a case does costs that case alone. Returns its code."""
    code, message, when = OK, "", None
    try:
        run_case(engine_class, description, case_dir, out_dir, ranks, group, number)
    except (Exception, SystemExit) as error:  # an engine that calls sys.exit() has not finished its case
        code, message, when = _code_of(error), _text_of(error), getattr(error, "plumbline_when", None)
        if code == ERROR:
            traceback.print_exc()
    return case_end.end_case(out_dir, ranks, code, message, when or time.time(), WAIT_S)


def _read_list(arguments):
    if len(arguments) == 4 and arguments[0] == "--case" and arguments[2] == "--out":
        return [(arguments[1], arguments[3])], True
    if len(arguments) == 2 and arguments[0] == "--batch":
        lines = pathlib.Path(arguments[1]).read_text().splitlines()
        return [(entry["case"], entry["out"]) for entry in map(json.loads, filter(str.strip, lines))], False
    return None, False


def _run_all(description, engine_class, connect, cases, single):
    try:
        ranks = Ranks.from_environment()
        group = connect(ranks) if connect else None
    except MissingHere as error:
        print(_text_of(error), file=sys.stderr)
        return ENVIRONMENT
    codes = [_run(description, engine_class, pathlib.Path(case), pathlib.Path(out), ranks, group, number)
             for number, (case, out) in enumerate(cases)]
    return codes[0] if single and ranks.rank == 0 else OK


def _serve(arguments, description, engine_class, connect, available):
    if arguments == ["describe"]:
        try:
            available()
        except MissingHere as error:
            print(_text_of(error), file=sys.stderr)
            return ENVIRONMENT
        print(json.dumps(description), flush=True)
        return OK
    cases, single = _read_list(arguments[1:]) if arguments[:1] == ["run"] else (None, False)
    if cases is None:
        print(USAGE, file=sys.stderr)
        return 2
    return _run_all(description, engine_class, connect, cases, single)


def main(description, engine_class, *, connect=None, available=lambda: None, arguments=None):
    """connect(Ranks) is called once a process and makes what `group` of an engine is. available() raises MissingHere
    where the engine cannot run on this machine at all. Ends the process at once: threads of a library that still
    wait would else hold it, or abort it after its work is done."""
    try:
        code = _serve(sys.argv[1:] if arguments is None else arguments, description, engine_class, connect, available)
    except case_end.PeersHang as error:
        print("ended, since other ranks do not: %s" % error, file=sys.stderr)
        code = ERROR
    except Exception as error:  # before any case: a malformed list, a port that is taken
        traceback.print_exc()
        print(_text_of(error), file=sys.stderr)
        code = ERROR
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
