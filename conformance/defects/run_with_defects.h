// SPDX-License-Identifier: Apache-2.0
//
// The command line of a switchable engine: the engine's own, plus
//   --defect ID       (repeatable; also --defect=ID) turns a planted defect on; without it the program is the clean
//   twin
//   --list-defects    prints one line per defect, `id TAB title TAB expect TAB family`, and ends with 0
// These are taken out of the arguments before the engine sees them. It starts no engine of its own.
#pragma once

namespace plumbline::defects {

// Returns what `engine_main` returns; 2 (bad usage), with one line on stderr, for an unknown or missing ID.
// argv is rewritten in place and stays null-terminated.
int RunWithDefects(int argc, char** argv, int (*engine_main)(int argc, char** argv));

}  // namespace plumbline::defects
