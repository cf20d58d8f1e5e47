// SPDX-License-Identifier: Apache-2.0
// See parameter_groups.h.
#include "optimized/optimizer/parameter_groups.h"

#include <fnmatch.h>

namespace plumbline::optimized {
GroupOptions OptionsOf(const contract::RunConfig& config, const std::string& parameter_name) {
  GroupOptions options{config.params.lr, config.params.weight_decay, {config.params.beta1, config.params.beta2}};
  for (const contract::ParameterGroup& group : config.groups) {
    if (fnmatch(group.match.c_str(), parameter_name.c_str(), 0) != 0) continue;
    if (group.lr) options.lr = *group.lr;
    if (group.weight_decay) options.weight_decay = *group.weight_decay;
    if (group.betas) options.betas = *group.betas;
    options.clips = group.clip;
    break;
  }
  return options;
}

double ClipCoefficient(double clipping, double norm) {
  if (!(clipping > 0)) return 1;
  const double coefficient = clipping / (norm + 1e-6);
  return coefficient < 1 ? coefficient : 1;
}

}  // namespace plumbline::optimized
