// SPDX-License-Identifier: Apache-2.0
// The phase after all verdicts in which failed cases are made smaller (conformance/cases/shrink.h): of each distinct
// reason the first case, as long as there is time. The smallest is written into a case file, and that file is run once
// more, by what `verify --case-file` runs, before its line is told. Changes no verdict; where nothing failed it is not
// started.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "conformance/contract/batch_source.h"
#include "conformance/runner/judge.h"
#include "conformance/runner/lone_judge.h"
#include "conformance/runner/plan.h"
#include "conformance/runner/truths.h"
#include "reports/record/record.h"

namespace plumbline::conformance {

// A case of the candidate that may have failed.
struct ShrinkSubject {
  const PlannedCase* entry = nullptr;
  Judgement judgement;
  std::optional<reports::ShrunkRecord>* record = nullptr;  // is set if the case was tried
};

struct ShrinkSetting {
  LoneJudge::Engines engines;
  const contract::TokenSource& source;
  const Truths& truths;                // of the subjects' problems
  std::filesystem::path work_dir;      // made when needed
  std::filesystem::path failures_dir;  // shrunk.json goes into FOLDER_OF_CASE below it
  int jobs = 1;
  double budget_s = 0;  // for all subjects together, without the last run of each
  // Runs the case file as the command line does.
  std::function<reports::CaseRecord(const std::filesystem::path& case_file)> run_file;
  // The command line that does it.
  std::function<std::string(const std::filesystem::path& case_file)> line_of;
  std::function<void(const std::string& id, int64_t tried, double left_s)> progress;
};

// At most so many cases: who has more distinct failures has a broken engine.
inline constexpr size_t kMaxShrunk = 5;

// What the machine lacks ends the phase, and is told in the record; nothing is thrown for it.
void ShrinkFailures(const ShrinkSetting& setting, const std::vector<ShrinkSubject>& subjects, std::stop_token stop);

}  // namespace plumbline::conformance
