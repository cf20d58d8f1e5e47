// SPDX-License-Identifier: Apache-2.0
#include "conformance/runner/truths.h"

#include <vector>

#include "conformance/runner/bias_trial.h"
#include "conformance/runner/case_hands.h"
#include "conformance/runner/metamorphic_trial.h"
#include "conformance/runner/real_trial.h"

namespace plumbline::conformance {

Truths::Truths(const CaseList& list, const NeededTruths& needed, const PlanOptions& options,
               const contract::TokenSource& source)
    : source_(source) {
  for (const auto& [index, storages] : needed) {
    const Problem& problem = list.problems[static_cast<size_t>(index)];
    if (problem.model.is_exact()) {
      exact_[index] = std::make_unique<ExactTruthTask>(problem, options);
    } else if (problem.unrelated_states > 0) {
      bias_[index] = std::make_unique<BiasTruth>(problem, options);
    } else {
      real_[index] = std::make_unique<RealTruth>(problem, storages, options, source);
    }
  }
}

void Truths::ScheduleTrajectories(const Engine& reference, Schedule& schedule) {
  for (auto& [problem, truth] : real_) schedule.Add(reference.program, reference.description, {&truth->trajectory()});
}

void Truths::ScheduleRest(const Engine& reference, const Engine& plain, int jobs, Schedule& schedule) {
  std::vector<std::vector<RunTask*>> hands(NumHands(real_.size(), jobs));
  size_t dealt = 0;
  for (auto& [problem, truth] : real_) {
    truth->MakeLines(plain.description);
    std::vector<RunTask*>& hand = hands[dealt++ % hands.size()];
    const std::vector<RunTask*> lines = truth->plain_lines();
    hand.insert(hand.end(), lines.begin(), lines.end());
  }
  for (const std::vector<RunTask*>& hand : hands) {
    if (!hand.empty()) schedule.Add(plain.program, plain.description, hand);
  }
  for (auto& [problem, truth] : real_) {
    schedule.Add(reference.program, reference.description, truth->truth_lines());
  }
  for (auto& [problem, truth] : bias_) {
    for (RunTask* task : truth->witness_tasks()) schedule.Add(plain.program, plain.description, {task}, /*keep=*/false);
    schedule.Add(reference.program, reference.description, {&truth->reference_task()}, /*keep=*/false);
  }
  for (auto& [problem, truth] : exact_) schedule.Add(reference.program, reference.description, {truth.get()});
}

void Truths::Finish() {
  for (auto& [problem, truth] : real_) truth->Finish();
  for (auto& [problem, truth] : bias_) truth->Finish();
  for (auto& [problem, truth] : exact_) truth->Finish();
}

std::unique_ptr<Trial> Truths::MakeTrial(const PlannedCase& entry,
                                         const contract::EngineDescription& description) const {
  if (entry.relation) {
    return std::make_unique<MetamorphicTrial>(*entry.relation, entry.spec, description, source_);
  }
  if (entry.spec.model.is_exact()) {
    return std::make_unique<ExactTrial>(entry.spec, description, *exact_.at(entry.problem));
  }
  if (const auto bias = bias_.find(entry.problem); bias != bias_.end()) {
    return std::make_unique<BiasTrial>(entry.spec, description, *bias->second);
  }
  const Beside beside = entry.role == Role::kProcesses ? Beside::kThreads : Beside::kNothing;
  return std::make_unique<RealTrial>(entry.spec, description, *real_.at(entry.problem), beside);
}

}  // namespace plumbline::conformance
