// SPDX-License-Identifier: Apache-2.0
// What ends in one verdict: an engine on one planned case, with all the runs that its family's checks need.
#pragma once

#include <optional>

#include "conformance/runner/judge.h"
#include "conformance/runner/run_task.h"

namespace plumbline::conformance {

// What the diagnosis of a failed trial begins with: the first divergence, and in which run it was seen.
struct Lead {
  Divergence divergence;
  std::optional<TaskRun> run = std::nullopt;    // none: nothing can be run again for it
  std::optional<TaskRun> saved = std::nullopt;  // from whose last checkpoint `run` resumes
  std::optional<TaskRun> expected =
      std::nullopt;  // of the same engine, which `run` is to equal; none: the reference is the truth
  double noise = 0;  // distance from the truth that rounding alone explains, of a gradient
};

// The truths are finished before a trial's runs are made. It judges when it takes the last of them, and keeps the
// judgement only: a self-test has hundreds of trials.
class Trial : public RunTask {
 public:
  bool is_judged() const { return judgement_.has_value(); }
  // After all runs have been taken.
  const Judgement& judgement() const { return *judgement_; }
  const std::optional<Lead>& lead() const { return lead_; }

 protected:
  std::optional<Judgement> judgement_;
  std::optional<Lead> lead_;  // of a trial that failed in a place that is known
};

}  // namespace plumbline::conformance
