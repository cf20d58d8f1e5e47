// SPDX-License-Identifier: Apache-2.0
#include "conformance/runner/other_state.h"

#include <algorithm>
#include <cmath>

#include "conformance/contract/batch_source.h"

namespace plumbline::conformance {

std::vector<contract::RealParameterState> MakeOtherState(const contract::Case& spec) {
  const uint64_t other_seed = ~spec.seed;
  std::vector<contract::RealParameterState> state =
      contract::MakeInitialRealState(spec.model.gpt2(), spec.config, other_seed);
  for (contract::RealParameterState& entry : state) {
    std::copy_n(entry.master.begin(), entry.moment.size(), entry.moment.begin());
    std::transform(entry.master.begin(), entry.master.begin() + static_cast<std::ptrdiff_t>(entry.second_moment.size()),
                   entry.second_moment.begin(), [](float value) { return std::abs(value); });
  }
  return state;
}

}  // namespace plumbline::conformance
