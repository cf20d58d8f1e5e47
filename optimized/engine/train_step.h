// SPDX-License-Identifier: Apache-2.0
// One training step of one rank: micro-batches, reduction, update, gathering of weights. A reader who follows TrainStep
// from top to bottom has seen everything that happens in a step, in order. Writes no trace.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "optimized/engine/training.h"

namespace plumbline::optimized {

// Of this rank. What TrainStep cannot see is filled in by its caller.
struct StepTimings {
  double step_us = 0;
  double comm_wait_us = 0;  // inside posts and waits: communication that computing did not hide
};

struct StepResult {
  // Of the global batch, equal on all ranks.
  double loss = 0;
  int64_t tokens = 0;
  double gradient_norm = 0;  // real families: before clipping; NaN or infinite in a skipped step
  bool skipped = false;      // nothing was updated
  StepTimings timings;
};

// Called at the beginning of each "forward", "backward", "reduce" and "step".
using PhaseMark = std::function<void(std::string_view phase)>;

// step counts from 0. Errors: those of the communicator; in family exact Internal for a gradient that is not an
// integer.
StepResult TrainStep(Training& training, int64_t step, const PhaseMark& mark);

}  // namespace plumbline::optimized
