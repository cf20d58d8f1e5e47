// SPDX-License-Identifier: Apache-2.0
#include "conformance/oracle/norm_reductions.h"

#include "conformance/contract/layer_stages.h"
#include "conformance/oracle/update_formula.h"

namespace plumbline::conformance {

std::vector<int64_t> NormReductions(const contract::ModelSpec& model, const contract::RunConfig& config) {
  constexpr int64_t kSumBytes = 21 * 8;  // a sum of squares without rounding, and what is not finite in it
  if (model.is_exact() || contract::HighestStage(config, model) == 0 || config.data_degree == 1) return {};
  int64_t num_trained = 0;
  int64_t num_units = 0;
  for (const contract::ParameterSpec& parameter : contract::Parameters(model)) {
    if (parameter.frozen) continue;
    ++num_trained;
    if (!IsExempt(config, GroupOf(config, parameter.name))) num_units += parameter.num_units();
  }
  std::vector<int64_t> bytes = {kSumBytes};
  // Of gradients and of weights; of weights and of updates.
  if (config.adaptive_clipping.kind == contract::AdaptiveClipping::Kind::kUnit)
    bytes.push_back(2 * kSumBytes * num_units);
  if (config.optimizer == contract::OptimizerKind::kLamb) bytes.push_back(2 * kSumBytes * num_trained);
  return bytes;
}

}  // namespace plumbline::conformance
