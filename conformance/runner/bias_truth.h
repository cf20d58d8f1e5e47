// SPDX-License-Identifier: Apache-2.0
// What the search for a small bias compares with: the gradients in fp64 of many unrelated steps. The LibTorch witness
// computes them, which takes it a fraction of a second each; the reference computes the first, and where the two do not
// agree there is no truth.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "conformance/cases/problem.h"
#include "conformance/oracle/step_sight.h"
#include "conformance/runner/plan.h"
#include "conformance/runner/unrelated_steps.h"
#include "reports/record/record.h"

namespace plumbline::conformance {

class BiasTruth {
 public:
  BiasTruth(const Problem& problem, const PlanOptions& options);

  // To be run by the reference and by the witness; each task of the witness may be a start of its own.
  RunTask& reference_task() { return *reference_; }
  std::vector<RunTask*> witness_tasks();
  void Finish();

  int64_t num_steps() const { return problem_.unrelated_states; }
  const std::string& error() const { return error_; }
  const reports::CheckRecord& truth_check() const { return truth_check_; }
  const std::vector<StepSight>& steps() const { return steps_; }

 private:
  Problem problem_;
  std::unique_ptr<UnrelatedStepsTask> reference_;
  std::vector<std::unique_ptr<UnrelatedStepsTask>> witness_;
  std::vector<StepSight> steps_;
  reports::CheckRecord truth_check_;
  std::string error_;
};

}  // namespace plumbline::conformance
