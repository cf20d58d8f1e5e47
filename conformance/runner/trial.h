// SPDX-License-Identifier: Apache-2.0
// What ends in one verdict: an engine on one planned case, with all the runs that its family's checks need.
#pragma once

#include <optional>

#include "conformance/runner/judge.h"
#include "conformance/runner/run_task.h"

namespace plumbline::conformance {

// The truths are finished before a trial's runs are made. It judges when it takes the last of them, and keeps the
// judgement only: a self-test has hundreds of trials.
class Trial : public RunTask {
 public:
  // After all runs have been taken.
  const Judgement& judgement() const { return *judgement_; }

 protected:
  std::optional<Judgement> judgement_;
};

}  // namespace plumbline::conformance
