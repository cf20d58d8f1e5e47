// SPDX-License-Identifier: Apache-2.0
// One start of an engine: a process, or one per rank, with their logs; waiting for them and ending them.
// What they were asked to do, and whether they did it, is for run_cases.cc to judge.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "conformance/engines/child_output.h"
#include "conformance/engines/child_process.h"
#include "conformance/engines/engine_program.h"
#include "conformance/engines/start_mark.h"

namespace plumbline::conformance {

class EngineStart {
 public:
  struct Rank {
    ChildProcess child;
    OutputLog log;
  };

  // `copies` processes with the variables of ranks, or, without a value, one process without them. Logs are
  // LOG_PREFIX-rankR.log, or LOG_PREFIX.log. Throws contract::Error, and then nothing runs.
  EngineStart(const EngineProgram& engine, const std::vector<std::string>& args, std::optional<int64_t> copies,
              const std::filesystem::path& log_prefix, int64_t max_log_bytes);

  // Waits until a process ends or prints, at most max_s; reads what was printed; reaps what has ended.
  void Wait(double max_s);
  // Reaps what has ended by now, without waiting.
  void Reap();

  bool all_ended() const;
  const std::vector<Rank>& ranks() const { return ranks_; }

  // The rank that was first seen to end with a signal or another exit code than 0; of several seen at once, one with a
  // signal. Ends that End() brought about do not count.
  std::optional<size_t> first_failed() const { return first_failed_; }

  // SIGTERM to all, SIGKILL to those that are left after grace_s, and waits for their end. Environment if even that
  // fails.
  void End(double grace_s);

  // "rank 1 killed by SIGSEGV; last line of its errors: ...", without the rank if there is but one process.
  std::string EndOf(size_t rank) const;

 private:
  StartMark mark_;  // destroyed after the ranks: then what they left is killed
  std::vector<Rank> ranks_;
  std::optional<size_t> first_failed_;
  bool ending_ = false;
};

}  // namespace plumbline::conformance
