// SPDX-License-Identifier: Apache-2.0
// The program `optimized_processes`: the engine as one rank of several, which a launcher starts (`plumbline run --ranks
// N
// -- PROGRAM run ...`, torchrun, srun, the harness). It loads LibTorch, for Gloo, which `optimized` does not.
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <optional>
#include <string_view>

#include "conformance/contract/engine_protocol.h"
#include "conformance/contract/error.h"
#include "optimized/engine/description.h"
#include "optimized/engine/process_place.h"
#include "optimized/engine/process_ranks.h"

namespace {

using namespace plumbline;

// The only look at the environment.
optimized::ProcessPlace Place() {
  return optimized::PlaceOf([](const char* name) { return std::getenv(name); });
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);  // Gloo writes to peers that have left; its error says so
  std::optional<optimized::ProcessRanks> ranks;
  bool is_first = true;
  try {
    if (argc > 1 && std::string_view(argv[1]) == "run") {
      const optimized::ProcessPlace place = Place();
      is_first = place.rank == 0;
      ranks.emplace(place);
    }
  } catch (const contract::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return static_cast<int>(contract::ExitCodeOf(error.code()));
  }
  return contract::EngineMain(
      argc, argv, Description(optimized::RanksAre::kProcesses),
      [&](const auto& case_dir, const auto& out_dir) { ranks->RunCase(case_dir, out_dir); },
      is_first ? contract::StatusFile::kWritten : contract::StatusFile::kOfAnotherRank);
}
