// SPDX-License-Identifier: Apache-2.0
// The truths of all problems that a verification needs, of every family, in the two phases in which they are run: the
// trajectories that others begin at, then all else. Trials follow when both are over.
#pragma once

#include <map>
#include <memory>
#include <set>

#include "conformance/cases/problem.h"
#include "conformance/runner/bias_truth.h"
#include "conformance/runner/exact_trial.h"
#include "conformance/runner/plan.h"
#include "conformance/runner/real_truth.h"
#include "conformance/runner/schedule.h"
#include "conformance/runner/trial.h"

namespace plumbline::conformance {

// An engine that answered `describe`.
struct Engine {
  EngineProgram program;
  contract::EngineDescription description;
};

// The problems of a list, by number, and in which storage types their cases are judged.
using NeededTruths = std::map<int, std::set<contract::DType>>;

class Truths {
 public:
  // References must outlive it.
  Truths(const CaseList& list, const NeededTruths& needed, const PlanOptions& options,
         const contract::TokenSource& source);

  bool NeedsPlainEngine() const { return !real_.empty() || !bias_.empty(); }

  // Phase one, then phase two when its runs are over, then Finish when those are. `jobs`: engines that run at once; the
  // plain one starts a few times for all problems, since a start costs as much as half of what a small problem needs.
  void ScheduleTrajectories(const Engine& reference, Schedule& schedule);
  void ScheduleRest(const Engine& reference, const Engine& plain, int jobs, Schedule& schedule);
  void Finish();

  // After Finish. A case that is judged by a relation needs no truth.
  std::unique_ptr<Trial> MakeTrial(const PlannedCase& entry, const contract::EngineDescription& description) const;

 private:
  const contract::TokenSource& source_;
  std::map<int, std::unique_ptr<ExactTruthTask>> exact_;  // by problem
  std::map<int, std::unique_ptr<RealTruth>> real_;
  std::map<int, std::unique_ptr<BiasTruth>> bias_;
};

}  // namespace plumbline::conformance
