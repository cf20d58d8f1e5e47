// SPDX-License-Identifier: Apache-2.0
// `plumbline verify`: runs the truths, the cases and the planted defects, judges them, and returns the record.
// It writes below work_dir only; what the user sees (table, record.json, junit.xml) is made from the record by others.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "conformance/engines/engine_program.h"
#include "conformance/runner/defect_list.h"
#include "conformance/runner/plan.h"
#include "reports/record/record.h"

namespace plumbline::conformance {

// The programs that this build holds.
struct EngineSet {
  std::filesystem::path reference;
  std::filesystem::path optimized;
  std::filesystem::path torch_eager;
  std::filesystem::path optimized_defects;  // the switchable copy of `optimized`
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
  bool verdicts_only = false;  // leave out what is done about failures: runs again, diagnosis, making them smaller
  double shrink_s = 0;         // seconds for making failed cases smaller; 0: not
  std::vector<std::string> expected_unsupported;  // shell patterns over ids
  std::string reproduce_prefix;                   // "./plumbline verify --seed 1"; of plan.lone the whole line
  // The line that runs a case file; needed with shrink_s.
  std::function<std::string(const std::filesystem::path&)> line_of_case_file;
};

struct VerifyProgress {
  std::string_view phase;  // "cases (3 of 3)"; the counts and times are its own
  int64_t done = 0;
  int64_t total = 0;
  double elapsed_s = 0;
  std::string last;  // what has just ended
  // While the case `last` is made smaller: `done` smaller ones have been tried, of an unknown number.
  std::optional<double> shrink_left_s;
};

// Throws contract::Error for what is wrong before any case can be judged (text, engine program, folders). `progress` is
// called from several threads, one call at a time.
reports::Record Verify(const VerifyOptions& options, std::stop_token stop,
                       const std::function<void(const VerifyProgress&)>& progress);

}  // namespace plumbline::conformance
