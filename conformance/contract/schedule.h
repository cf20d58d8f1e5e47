// SPDX-License-Identifier: Apache-2.0
// How the learning rate moves from step to step: the data of a `scheduler`, resolved. What the numbers mean is in
// docs/semantics.md, "Schedules"; each engine computes it for itself.
#pragma once

#include <cstdint>

namespace plumbline::contract {

// Of OneCycle alone.
struct Cycle {
  double min_lr = 0;
  double max_lr = 0;
  double decay_lr_rate = 0;  // per decay_steps steps after the cycle
  int64_t first_steps = 2000;
  int64_t second_steps = 2000;
  int64_t first_stairs = 0;  // 0: the rate moves in every step
  int64_t second_stairs = 0;
  int64_t decay_steps = 0;  // 0: no decay
  bool moves_momentum = true;
  double min_momentum = 0.8;
  double max_momentum = 0.9;

  friend bool operator==(const Cycle&, const Cycle&) = default;
};

struct Schedule {
  enum class Kind { kConstant, kWarmup, kWarmupDecay, kWarmupCosine, kOneCycle };

  Kind kind = Kind::kConstant;
  double warmup_min_lr = 0;  // kWarmup, kWarmupDecay
  double warmup_max_lr = 1e-3;
  int64_t warmup_num_steps = 1000;  // and kWarmupCosine
  bool linear = false;              // else logarithmic; and kWarmupCosine
  int64_t total_num_steps = 0;      // kWarmupDecay, kWarmupCosine
  double warmup_min_ratio = 0;      // kWarmupCosine: shares of a group's own rate
  double cos_min_ratio = 1e-4;
  Cycle cycle = {};

  friend bool operator==(const Schedule&, const Schedule&) = default;
};

}  // namespace plumbline::contract
