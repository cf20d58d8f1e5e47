// SPDX-License-Identifier: Apache-2.0
// Command lines and environments of engines: the five variables of docs/formats.md, and checks of the program file that
// give better words than a failed exec.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace plumbline::conformance {

struct RankPlace {
  int64_t rank = 0;
  int64_t world = 1;
  int port = 0;
};

// This process's environment without RANK, LOCAL_RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT: a harness that was
// itself started by a launcher of ranks must not pass its own on to an engine that starts its ranks itself.
std::vector<std::string> EnvironmentWithoutRank();
// The same with the five set.
std::vector<std::string> EnvironmentOfRank(const RankPlace& place);

// PROGRAM, absolute, and then args. InvalidArgument if the file is missing, not a file, or not executable.
std::vector<std::string> CommandLine(const std::filesystem::path& program, const std::vector<std::string>& extra_args,
                                     const std::vector<std::string>& args);

// A TCP port of the loopback interface that was free a moment ago: rank 0 binds it when it starts. Environment if there
// is none.
int FreePort();

}  // namespace plumbline::conformance
