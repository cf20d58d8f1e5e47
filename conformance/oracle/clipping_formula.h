// SPDX-License-Identifier: Apache-2.0
// What a gradient is multiplied by before an update, in fp64, from the words of docs/semantics.md, "Clipping", with a
// bound for engines that sum norms in fp32 in any order. Shared with no engine.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "conformance/contract/model_spec.h"
#include "conformance/contract/norm_history.h"
#include "conformance/contract/run_config.h"
#include "conformance/oracle/bounded.h"

namespace plumbline::conformance {

struct Clipping {
  double factor = 1;
  double relative_bound = 0;
};

// By one largest norm. `norm` is the reported one.
Clipping ClippingOf(double threshold, double norm);

// The largest relative error of the norm of so many elements, summed in fp32 in any order.
double NormBound(int64_t numel);

// The unit that a row-major index of the parameter is in: 0 ... num_units() - 1.
int64_t UnitOf(const contract::ParameterSpec& parameter, int64_t index);

// Of each unit of a parameter, from its gradient and its master weights before the update.
std::vector<Clipping> UnitClippings(const contract::ParameterSpec& parameter, const contract::AdaptiveClipping& rule,
                                    std::span<const double> gradient, std::span<const float> master);

// By history: the threshold in a step that begins with this history; 0 while nothing is clipped.
double HistoryThreshold(const contract::AdaptiveClipping& rule, const contract::NormHistory& before);

// Mean and variance after a step that was not skipped. `norm` is the reported one, which is the one that counts. Both
// are kept in fp64, and bounded so.
struct BoundedHistory {
  Bounded mean;
  Bounded variance;
};
BoundedHistory NextHistory(const contract::AdaptiveClipping& rule, const contract::NormHistory& before, double norm);

}  // namespace plumbline::conformance
