// SPDX-License-Identifier: Apache-2.0
#include "conformance/runner/run_ends.h"

#include <utility>

namespace plumbline::conformance {
namespace {

using reports::Verdict;

// Of verdicts without any check.
int Weight(Verdict verdict) {
  if (verdict == Verdict::kNotRun) return 0;
  return verdict == Verdict::kUnsupported ? 1 : 2;
}

bool EndedWell(const RunEnd& run) { return run.outcome->kind == CaseOutcome::Kind::kOk; }

}  // namespace

std::optional<Judgement> JudgeEnds(const std::vector<RunEnd>& runs) {
  std::optional<Judgement> worst;
  for (size_t i = 0; i < runs.size(); ++i) {
    const RunEnd& run = runs[i];
    if (EndedWell(run) || (run.resumes && !EndedWell(runs[*run.resumes]))) continue;
    Judgement judgement = FromOutcome(*run.outcome);
    if (worst && Weight(judgement.verdict) <= Weight(worst->verdict)) continue;
    judgement.diverged_run = i;
    if (!run.name.empty()) judgement.message = "run " + run.name + ": " + judgement.message;
    worst = std::move(judgement);
  }
  return worst;
}

std::string NameOfRun(const std::string& run_id, const std::string& case_id) {
  return run_id == case_id ? "" : run_id.substr(case_id.size() + 1);
}

}  // namespace plumbline::conformance
