// SPDX-License-Identifier: Apache-2.0
// An engine as a program on this machine, and the question what it can do (`PROGRAM describe`, docs/formats.md).
// Nothing that the program does is trusted: its time and its output are bounded, and each way to fail has its own line.
// Running cases is run_cases.h.
//
//   const EngineProgram engine{"bazel-bin/optimized/engine/optimized", {}};
//   const contract::EngineDescription description = Describe(engine, 30);
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "conformance/contract/engine_protocol.h"

namespace plumbline::conformance {

struct EngineProgram {
  std::filesystem::path program;
  std::vector<std::string> extra_args;  // before "run" or "describe", {"--defect", "G1"} say
};

// Throws contract::Error with one line that names the program:
//   InvalidArgument  missing, a directory, not executable, no output, more than 1 MiB of output, killed by a signal,
//                    another exit code than 0, malformed or wrong description (another protocol number is named)
//   Unsupported      exit code 3
//   Environment      exit code 4, or this machine cannot start a process
//   Timeout          not finished after timeout_s; it is killed together with its children
contract::EngineDescription Describe(const EngineProgram& engine, double timeout_s);

}  // namespace plumbline::conformance
