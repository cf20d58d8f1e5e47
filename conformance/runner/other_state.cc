// SPDX-License-Identifier: Apache-2.0
#include "conformance/runner/other_state.h"

#include <algorithm>
#include <cmath>

#include "conformance/contract/batch_source.h"

namespace plumbline::conformance {
namespace {

// The next weight of the range, after the largest the smallest; master weights stay in the same eighth.
void ReplaceExact(contract::CaseData& data) {
  const int64_t bound = data.spec.model.exact().weight_bound;
  for (contract::ParameterState& entry : data.state) {
    for (size_t i = 0; i < entry.weight.size(); ++i) {
      const int64_t before = entry.weight[i];
      entry.weight[i] = before == bound ? -bound : before + 1;
      entry.master[i] += 8 * (entry.weight[i] - before);
    }
    std::fill(entry.moment.begin(), entry.moment.end(), 1);
  }
}

// Those of another seed, and moments of the same size.
void ReplaceReal(contract::CaseData& data) {
  const uint64_t other_seed = ~data.spec.seed;
  data.real_state = contract::MakeInitialRealState(data.spec.model, data.spec.config, other_seed);
  if (contract::HasNormHistory(data.spec.config)) data.norm_history = {data.norm_history.count + 1, 0.5, 0.25};
  data.loss_scaler = {data.loss_scaler.scale * 4, data.loss_scaler.steps + 5, 1, data.loss_scaler.hysteresis + 1};
  for (contract::RealParameterState& entry : data.real_state) {
    std::copy_n(entry.master.begin(), entry.moment.size(), entry.moment.begin());
    std::transform(entry.second_moment.begin(), entry.second_moment.end(), entry.master.begin(),
                   entry.second_moment.begin(), [](float, float master) { return std::abs(master); });
  }
}

}  // namespace

void ReplaceState(contract::CaseData& data) {
  if (data.spec.model.is_exact()) {
    ReplaceExact(data);
  } else {
    ReplaceReal(data);
  }
}

}  // namespace plumbline::conformance
