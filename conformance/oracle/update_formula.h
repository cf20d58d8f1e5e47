// SPDX-License-Identifier: Apache-2.0
// One update of one element in fp64, from the words of docs/semantics.md, with a bound on how far an engine may be from
// it that stores in fp32 and computes in fp32 or better: each rounding is counted, for every order of evaluation that
// is listed in docs/tolerance.md, "The update". Shared with no engine.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "conformance/contract/run_config.h"
#include "conformance/oracle/bounded.h"
#include "conformance/oracle/clipping_formula.h"

namespace plumbline::conformance {

// Index in RealStep::lr: 0 for the default group, 1 + i for param_groups[i].
size_t GroupOf(const contract::RunConfig& config, const std::string& parameter);

// Whether clipping passes the group over.
bool IsExempt(const contract::RunConfig& config, size_t group);

// weight_decay of a group by that index: its own, or the optimizer's.
double WeightDecayOf(const contract::RunConfig& config, size_t group);

// Everything that the elements of one tensor share.
struct UpdateRule {
  contract::OptimizerKind optimizer = contract::OptimizerKind::kAdamW;
  contract::OptimizerParams params;  // lr, betas and weight_decay are the group's in this step
  double beta1_units = 1;            // roundings of beta1, relative to it
  Clipping clipping;                 // of the tensor, or of the element's unit
  int64_t t = 1;                     // number of this update
  Bounded ratio = {1, 0};            // LAMB's, of the tensor's norms
};

// One element before the update, and its gradient before clipping.
struct UpdateInput {
  double master = 0;
  double moment = 0;
  double second_moment = 0;
  double gradient = 0;
};

Bounded NextMoment(const UpdateRule& rule, const UpdateInput& before);
Bounded NextSecondMoment(const UpdateRule& rule, const UpdateInput& before);

// From the moments that the engine itself stored in this update, so that their errors are not counted twice. The
// formula can then be held to far less than a step of size lr.
Bounded NextMaster(const UpdateRule& rule, const UpdateInput& before, double moment, double second_moment);

// LAMB's u of one element, from the moments that the engine stored.
Bounded LambDirection(const UpdateRule& rule, const UpdateInput& before, double moment, double second_moment);

// LAMB's ratio of norms, from the master weights before the update and the tensor's directions.
Bounded LambRatio(const contract::OptimizerParams& params, std::span<const float> master,
                  std::span<const Bounded> directions);

}  // namespace plumbline::conformance
