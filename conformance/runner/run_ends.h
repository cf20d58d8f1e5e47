// SPDX-License-Identifier: Apache-2.0
// How the runs of one trial ended, as one judgement, for every family. Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "conformance/engines/run_cases.h"
#include "conformance/runner/judge.h"

namespace plumbline::conformance {

struct RunEnd {
  const CaseOutcome* outcome = nullptr;
  std::string name = {};                         // the message names it: "run resumed: ..."; empty: the case's own run
  std::optional<size_t> resumes = std::nullopt;  // the run that it resumes from
};

// Of the runs that did not end well, the first of the worst, with its number: what this machine lacks for one, or what
// the engine does not support, hides no crash of another. A run that resumes from one that did not end well had no
// checkpoint: its end says nothing. Nothing where all ended well.
std::optional<Judgement> JudgeEnds(const std::vector<RunEnd>& runs);

// "again" for the run "exact/x/again" of the case "exact/x"; empty for the case's own run.
std::string NameOfRun(const std::string& run_id, const std::string& case_id);

}  // namespace plumbline::conformance
