// SPDX-License-Identifier: Apache-2.0
// What a verification is told. Nothing is decided here.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "conformance/engines/engine_program.h"
#include "conformance/runner/defect_list.h"
#include "conformance/runner/plan.h"

namespace plumbline::conformance {

// The programs that this build holds.
struct EngineSet {
  std::filesystem::path reference;
  std::filesystem::path optimized;
  std::filesystem::path torch_eager;
  std::filesystem::path optimized_defects;  // the switchable copy of `optimized`
  std::filesystem::path processes = {};     // `optimized` with ranks that are processes
};

struct VerifyOptions {
  PlanOptions plan;
  EngineSet engines;
  std::optional<EngineProgram> foreign_engine;  // judged in the place of `optimized`
  std::filesystem::path text;
  std::filesystem::path work_dir;      // made by the caller, empty, and removed by it
  std::filesystem::path failures_dir;  // case and traces of a failed case are moved to here; made when needed
  int jobs = 2;
  bool run_cases = true;
  bool run_defects = true;
  bool all_defects = false;  // else those of kSmokeDefects
  // Tried in the place of the planted ones; `optimized_defects` is then the program that has them.
  std::optional<std::vector<ListedDefect>> listed_defects;
  double listed_timeout_s = 20;                // of a case that one of them is tried on
  std::optional<size_t> listed_cases_at_most;  // they, and the clean twin, are tried on the first cases only
  bool first_kill = false;  // a defect's runs end with the first that a check it is meant for catches
  bool require = false;
  bool keep = false;           // the folders of cases that did not fail stay in work_dir
  bool verdicts_only = false;  // leave out what is done about failures: runs again, diagnosis, making them smaller
  double shrink_s = 0;         // seconds for making failed cases smaller; 0: not
  std::vector<std::string> expected_unsupported;  // shell patterns over ids
  std::string reproduce_prefix;                   // "./plumbline verify --seed 1"; of plan.lone the whole line
  // The line that runs a case file; needed with shrink_s.
  std::function<std::string(const std::filesystem::path&)> line_of_case_file;
};

}  // namespace plumbline::conformance
