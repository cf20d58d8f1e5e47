// SPDX-License-Identifier: Apache-2.0
#include "conformance/runner/defect_judge.h"

#include <algorithm>

namespace plumbline::conformance {
namespace {

using reports::Verdict;

// Findings of checks tell more than an engine that stopped, and that more than a case without a verdict.
int Weight(Verdict verdict) {
  switch (verdict) {
    case Verdict::kFail:
      return 3;
    case Verdict::kError:
      return 2;
    case Verdict::kPass:
      return 0;
    default:
      return 1;
  }
}

void AddName(std::vector<std::string>& names, const std::string& name) {
  if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
}

}  // namespace

const DefectFinding* ToldFinding(const std::vector<DefectFinding>& findings) {
  const DefectFinding* told = nullptr;
  int weight = Weight(Verdict::kPass);
  for (const DefectFinding& finding : findings) {
    if (Weight(finding.judgement.verdict) <= weight) continue;
    weight = Weight(finding.judgement.verdict);
    told = &finding;
  }
  return told;
}

reports::DefectRecord JudgeDefect(const std::string& id, const std::string& title,
                                  const std::vector<DefectFinding>& findings) {
  reports::DefectRecord record;
  record.id = id;
  record.title = title;
  for (const DefectFinding& finding : findings) {
    const Judgement& judgement = finding.judgement;
    for (const reports::CheckRecord& check : judgement.checks) {
      if (check.outcome == reports::CheckOutcome::kFail) AddName(record.caught_by, check.name);
    }
    if (judgement.engine_failed) AddName(record.caught_by, "engine");
    record.caught |= judgement.verdict == Verdict::kFail || judgement.engine_failed;
  }
  if (const DefectFinding* told = ToldFinding(findings)) {
    const Judgement& judgement = told->judgement;
    record.verdict = judgement.verdict;
    record.message = told->case_id + ": " + judgement.message;
    record.first_step = judgement.divergence ? judgement.divergence->step : -1;
    record.tensor = judgement.divergence ? judgement.divergence->tensor : "";
  }
  return record;
}

}  // namespace plumbline::conformance
