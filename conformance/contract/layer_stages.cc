// SPDX-License-Identifier: Apache-2.0
#include "conformance/contract/layer_stages.h"

#include <algorithm>

namespace plumbline::contract {

int64_t StageOf(const RunConfig& config, const ParameterSpec& parameter) {
  const bool has_own = parameter.layer != ParameterSpec::kNoLayer && !config.layer_stages.empty();
  return has_own ? config.layer_stages.at(static_cast<size_t>(parameter.layer)) : config.zero_stage;
}

int64_t HighestStage(const RunConfig& config, const ModelSpec& model) {
  int64_t highest = 0;
  for (const ParameterSpec& parameter : Parameters(model)) {
    if (!parameter.frozen) highest = std::max(highest, StageOf(config, parameter));
  }
  return highest;
}

}  // namespace plumbline::contract
