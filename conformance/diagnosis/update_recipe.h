// SPDX-License-Identifier: Apache-2.0
// One update of a whole tensor in real arithmetic, with the places where engines go wrong as fields. The defaults are
// docs/semantics.md and docs/exact-family.md. For predictions only: what an engine may differ by is judged by
// conformance/oracle/update_formula.h, with which this shares nothing.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "conformance/contract/dtype.h"
#include "conformance/contract/run_config.h"
#include "conformance/contract/trace.h"

namespace plumbline::conformance {

// Empty where the optimizer keeps no such thing.
struct TensorState {
  std::vector<double> master;
  std::vector<double> moment;
  std::vector<double> second_moment;
};

struct UpdateRecipe {
  enum class Decay { kDecoupled, kCoupled, kNone };
  enum class Epsilon { kOutsideRoot, kInsideRoot, kBeforeCorrection };
  enum class Ratio { kOfNorms, kUnlimited, kNone };

  contract::OptimizerKind optimizer = contract::OptimizerKind::kModularMomentum;
  contract::OptimizerParams params;  // lr and weight_decay are the group's, lr of this step
  contract::DType storage = contract::DType::kF32;
  int64_t weight_bound = 1;          // family exact
  double clip_factor = 1;            // what the gradient is multiplied by
  std::vector<double> unit_factors;  // of each element, instead; empty: the same for all
  int64_t t = 1;                     // the number of this update
  bool corrects_first = true;        // Adam's m / (1 - beta1^t)
  bool corrects_second = true;       // v / (1 - beta2^t)
  Decay decay = Decay::kDecoupled;   // of AdamW, Adam and Lion; kNone is known to all
  Epsilon epsilon = Epsilon::kOutsideRoot;
  Ratio ratio = Ratio::kOfNorms;  // LAMB's
  // Parts that norms are taken of instead of the whole tensor: [begin, end).
  std::vector<std::pair<size_t, size_t>> ratio_parts;

  // With the decay where the optimizer has it.
  static UpdateRecipe Of(const contract::RunConfig& config);
};

// `kind` of the tensor after the update; kGradient is the gradient itself. Moments are not rounded to fp32.
std::vector<double> AfterUpdate(const UpdateRecipe& recipe, const TensorState& before,
                                const std::vector<double>& gradient, contract::TensorKind kind);

// The working weight of this master weight.
double WorkingWeight(const UpdateRecipe& recipe, double master);

}  // namespace plumbline::conformance
