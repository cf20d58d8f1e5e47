// SPDX-License-Identifier: Apache-2.0
// Whether shares of a gradient were added in fp32 where storage is bf16 or fp16. A share of one micro-batch on one
// rank may have passed through it; the sum of several of them needs bits that storage does not have, in most elements.
// Where (nearly) all elements of a tensor lack them, the sum was kept, reduced or stored in it. How many may is derived
// in docs/tolerance.md, "Where gradients are added". Looks at bits, not at how large an error is.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "conformance/contract/model_spec.h"
#include "conformance/contract/run_config.h"
#include "conformance/oracle/real_check.h"
#include "conformance/oracle/step_sight.h"

namespace plumbline::conformance {

// Chance of a false alarm of one comparison (of one tensor).
inline constexpr double kAccumulationFalseAlarmRate = 1e-9;
// The largest chance that storage holds the fp32 sum of two shares or more that it holds.
inline constexpr double kMostSumsInStorage = 0.75;

// Storage has 16 bits, and a gradient has several shares: micro-batches, ranks, or both.
bool AddsShares(const contract::RunConfig& config);

// Elements of one tensor over all steps.
struct BitCount {
  int64_t not_zero = 0;
  int64_t in_storage = 0;  // of these; a number that is not finite is none
  int64_t distinct = 0;    // magnitudes: the effective sample size

  double share() const;       // in_storage of not_zero
  double log_chance() const;  // upper bound of the natural logarithm of the chance of so many or more, 0 for likely
  bool could_be_unlikely() const;  // if storage held all of them
};

BitCount CountBits(std::span<const StepSight> sights, size_t tensor);

// Canonical indexes of the trained tensors of whose elements each has several shares, whatever the batch: all but
// pos.weight and an embedding that is not tied, whose rows get shares from where their tokens are, and unused.weight.
std::vector<size_t> TensorsWithManyShares(const contract::ModelSpec& model);

// "accumulation", for a config that AddsShares. plain: single steps in storage of an engine that adds several shares in
// fp32; a tensor in which storage holds more than kMostSumsInStorage of its elements is not judged.
RealResult CheckAccumulation(const contract::ModelSpec& model, std::span<const StepSight> plain,
                             std::span<const StepSight> candidate);

}  // namespace plumbline::conformance
