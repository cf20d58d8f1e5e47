// SPDX-License-Identifier: Apache-2.0
// Writes what one rank holds after a step: digests into the trace, and whole slices where the case asks for a dump.
// It communicates nothing and lies outside of what the ledger counts.
// Source: docs/formats.md, "OUT_DIR".
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/contract/trace.h"
#include "optimized/comm/ledger.h"
#include "optimized/engine/train_step.h"
#include "optimized/engine/training.h"

namespace plumbline::optimized {

class TraceRecorder {
 public:
  // Creates the rank's folder and writes the header.
  TraceRecorder(const contract::Case& spec, int64_t rank, const std::filesystem::path& out_dir);

  // Writes marks only if the case asks for them.
  void Phase(int64_t step, std::string_view phase);
  void Step(const Training& training, int64_t step, const StepResult& result, LedgerEntry ledger);
  void End(int64_t num_steps) { writer_.End(num_steps); }

 private:
  void Dump(const Training& training, int64_t step) const;

  const contract::Case& spec_;
  std::filesystem::path rank_dir_;
  contract::TraceWriter writer_;
};

}  // namespace plumbline::optimized
