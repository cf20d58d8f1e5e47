// SPDX-License-Identifier: Apache-2.0
// What is known about one tensor at the first divergence: what the engine made, what the truth is, and from what both
// were made. Everything is a plain vector of fp64 numbers, which hold every type that is dumped; hypotheses are pure
// functions of this. How it is gathered (extra runs of the reference) is the runner's business.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "conformance/contract/model_spec.h"
#include "conformance/contract/run_config.h"
#include "conformance/contract/trace.h"
#include "conformance/diagnosis/update_recipe.h"

namespace plumbline::conformance {

using Values = std::vector<double>;

// Elements [begin, end) of the tensor as one rank of the candidate holds them.
struct HeldRange {
  int64_t rank = 0;
  int64_t begin = 0;
  int64_t end = 0;
};

// A gradient, or a batch's share of one, that the reference computed under a named change: "labels of the next
// micro-batch". `hypothesis` is the name under which it is reported.
struct ChangedGradient {
  std::string hypothesis;
  std::string what;
  Values values;
};

struct Evidence {
  bool is_exact = true;
  // A number of the trace instead of a tensor: one element. `gradient` and `shares` are then the number's own, and
  // `changed` holds what the number would be under any hypothesis by name.
  bool is_number = false;
  contract::ParameterSpec parameter;
  contract::TensorKind kind = contract::TensorKind::kGradient;
  int64_t num_ranks = 1;
  int64_t num_accumulation_steps = 1;

  Values truth;                 // of `kind`, after the step
  Values candidate;             // the same
  std::vector<HeldRange> held;  // who holds which part of `candidate`: sorted, covering, disjoint

  // The truth's gradient; its shares by micro-batch, [accumulation step * num_ranks + rank], which add up to it, and
  // the weighted tokens of each. Empty where they are not known.
  Values gradient;
  std::vector<Values> shares;
  std::vector<double> share_tokens;
  std::vector<ChangedGradient> changed;

  // Of kinds after the gradient. `used_gradient` is what the candidate says that it used.
  Values used_gradient;
  TensorState before;
  TensorState initial;                                           // of the run's first step, where that is another
  UpdateRecipe recipe;                                           // the right one
  std::vector<std::pair<std::string, UpdateRecipe>> neighbours;  // of other groups and steps: "of group 1", "of step 3"
  double whole_norm = 0;                                         // of all that is not exempt, before clipping
  std::vector<double> rank_norms;                                // of what each rank holds of it
  double clipping = 0;                                           // the limit of the norm, 0 for none
  contract::AdaptiveClipping adaptive_clipping = {};
  bool is_exempt = false;  // from clipping

  // How far from the truth, in norm, rounding alone can put a right engine; 0 in family exact.
  double noise = 0;
};

}  // namespace plumbline::conformance
