// SPDX-License-Identifier: Apache-2.0
// Cases on ranks that are processes: this process is one of them. Every rank runs the same cases in the same order;
// each case has connections of its own, so that nothing of one that failed reaches the next.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "conformance/contract/error.h"
#include "optimized/comm/gloo_communicator.h"

namespace plumbline::optimized {

class ProcessRanks {
 public:
  explicit ProcessRanks(const ProcessPlace& place) : place_(place) {}

  // Like RunCase of run_case.h, but for this rank. Returns, and throws, when the case is over on all ranks; one that
  // hangs is waited for no longer than the case's time-out and some seconds. All ranks throw the error of the one that
  // failed first.
  void RunCase(const std::filesystem::path& case_dir, const std::filesystem::path& out_dir);

 private:
  class Case;

  [[noreturn]] void Settle(Case& part, const std::string& name, const contract::Error& own);
  void AwaitPeers(const std::string& name);

  const ProcessPlace place_;
  std::unique_ptr<GlooWorld> world_;   // from the first case on, unless this is the only rank
  std::optional<std::string> broken_;  // why no further case can be run
  int64_t num_cases_ = 0;
};

}  // namespace plumbline::optimized
