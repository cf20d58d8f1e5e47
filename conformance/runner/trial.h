// SPDX-License-Identifier: Apache-2.0
// What ends in one verdict: an engine on one planned case, with all the runs that its family's checks need.
#pragma once

#include <optional>

#include "conformance/runner/judge.h"
#include "conformance/runner/lead.h"
#include "conformance/runner/run_task.h"

namespace plumbline::conformance {

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
