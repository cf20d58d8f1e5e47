// SPDX-License-Identifier: Apache-2.0
// From the judgements of the cases that a planted defect was tried on to its line in the kill table.
#pragma once

#include <string>
#include <vector>

#include "conformance/runner/judge.h"
#include "reports/record/record.h"

namespace plumbline::conformance {

struct DefectFinding {
  std::string case_id;
  Judgement judgement;
};

// The finding that is told of a defect: the first FAIL, else the first ERROR, else the first of another verdict.
const DefectFinding* ToldFinding(const std::vector<DefectFinding>& findings);

// Caught if a case is FAIL, or ERROR by the engine's own doing; a time-out, a missing truth or device, VACUOUS,
// UNSUPPORTED and NOT_RUN catch nothing. caught_by names every check that failed in any case, and "engine" where the
// engine itself stopped. Step, tensor and message are of the first FAIL, else the first ERROR.
reports::DefectRecord JudgeDefect(const std::string& id, const std::string& title,
                                  const std::vector<DefectFinding>& findings);

}  // namespace plumbline::conformance
