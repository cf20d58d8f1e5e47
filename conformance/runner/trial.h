// SPDX-License-Identifier: Apache-2.0
// What ends in one verdict: an engine on one planned case, with all the runs that its family's checks need.
#pragma once

#include <memory>
#include <string>

#include "conformance/runner/judge.h"
#include "conformance/runner/run_task.h"

namespace plumbline::conformance {

class Trial : public RunTask {
 public:
  // After all runs have been taken, and those of the truth.
  virtual Judgement Judge() const = 0;
};

}  // namespace plumbline::conformance
