// SPDX-License-Identifier: Apache-2.0
#include "conformance/runner/bias_truth.h"

#include <algorithm>
#include <iterator>

#include "conformance/oracle/truth_check.h"
#include "conformance/runner/real_runs.h"

namespace plumbline::conformance {

using contract::DType;

BiasTruth::BiasTruth(const Problem& problem, const PlanOptions& options) : problem_(problem) {
  // A start costs the witness about as much as a few steps.
  constexpr int64_t kStepsPerStart = 16;
  const std::string id = "truth/" + problem.name;
  reference_ = std::make_unique<UnrelatedStepsTask>(CaseOf(problem, id + "/reference", problem.plain, options), 0, 1,
                                                    DType::kBF16);
  const contract::Case base = CaseOf(problem, id + "/witness-fp64", PlainLayout(problem, DType::kF64), options);
  for (int64_t first = 0; first < num_steps(); first += kStepsPerStart) {
    witness_.push_back(
        std::make_unique<UnrelatedStepsTask>(base, first, std::min(kStepsPerStart, num_steps() - first), DType::kBF16));
  }
}

std::vector<RunTask*> BiasTruth::witness_tasks() {
  std::vector<RunTask*> tasks;
  for (const auto& task : witness_) tasks.push_back(task.get());
  return tasks;
}

void BiasTruth::Finish() {
  error_ = reference_->error();
  for (const auto& task : witness_) {
    if (error_.empty()) error_ = task->error();
  }
  if (!error_.empty()) return;
  for (const auto& task : witness_) std::ranges::move(task->TakeSights(), std::back_inserter(steps_));
  const RealResult result =
      CheckTruth(problem_.model, problem_.plain.train_batch_size, reference_->TakeSights(), steps_);
  truth_check_ = result.check;
  if (truth_check_.outcome != reports::CheckOutcome::kPass) error_ = WhyNoTruth(result);
}

}  // namespace plumbline::conformance
