// SPDX-License-Identifier: Apache-2.0
// All runs of a verification, in one list: which engine runs which case from which folder into which. Writes the case
// folders.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "conformance/contract/batch_source.h"
#include "conformance/contract/case_file.h"
#include "conformance/runner/plan.h"
#include "conformance/runner/run_pool.h"
#include "conformance/runner/truth.h"

namespace plumbline::conformance {

enum class RunPurpose { kTruth, kCase, kDefect };

struct ScheduledRun {
  RunPurpose purpose = RunPurpose::kCase;
  size_t owner = 0;  // number of the problem, of the planned case, or of the defect
  size_t index = 0;  // of the truth run or of the defect's case
  contract::Case spec;
  std::filesystem::path case_dir;
  std::filesystem::path out_dir;
  const contract::EngineDescription* description = nullptr;
};

class Schedule {
 public:
  Schedule(const contract::TokenSource& source, std::filesystem::path work_dir);

  // Adds a start of `engine` for the given runs; case_dir and out_dir are filled in, and the case folders are written.
  void Add(const EngineProgram& engine, const contract::EngineDescription& description, std::vector<ScheduledRun> runs);

  const std::vector<ScheduledRun>& runs() const { return runs_; }
  const std::vector<RunUnit>& units() const { return units_; }

 private:
  std::filesystem::path CaseDir(const contract::Case& spec);
  const contract::CaseData& Data(const contract::Case& spec);

  const contract::TokenSource& source_;
  std::filesystem::path work_dir_;
  std::vector<ScheduledRun> runs_;
  std::vector<RunUnit> units_;
  std::map<std::string, std::filesystem::path> case_dirs_;     // by case.json
  std::map<std::string, contract::CaseData> data_by_problem_;  // by model, seed, steps, batch and optimizer
};

}  // namespace plumbline::conformance
