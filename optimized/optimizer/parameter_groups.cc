// SPDX-License-Identifier: Apache-2.0
// See parameter_groups.h.
#include "optimized/optimizer/parameter_groups.h"

#include <fnmatch.h>

#include <algorithm>
#include <cmath>

#include "conformance/contract/error.h"

namespace plumbline::optimized {
namespace {

// gamma of docs/semantics.md. Steps 0 and 1 both give 0.
double WarmupShare(const contract::Schedule& schedule, int64_t step) {
  const int64_t length = std::max<int64_t>(2, schedule.warmup_num_steps);
  const int64_t k = step - 1;
  if (k < 0) return 0;
  if (k >= length) return 1;
  if (schedule.linear) return static_cast<double>(k) / static_cast<double>(length);
  return std::log(static_cast<double>(k + 1)) / std::log(static_cast<double>(length));
}

}  // namespace

GroupOptions OptionsOf(const contract::RunConfig& config, const std::string& parameter_name) {
  GroupOptions options{config.params.lr, config.params.weight_decay};
  for (const contract::ParameterGroup& group : config.groups) {
    if (fnmatch(group.match.c_str(), parameter_name.c_str(), 0) != 0) continue;
    if (group.lr) options.lr = *group.lr;
    if (group.weight_decay) options.weight_decay = *group.weight_decay;
    break;
  }
  return options;
}

double LearningRate(const contract::RunConfig& config, double group_lr, int64_t step) {
  const contract::Schedule& schedule = config.schedule;
  if (schedule.kind == contract::Schedule::Kind::kConstant) return group_lr;
  const double lr =
      schedule.warmup_min_lr + (schedule.warmup_max_lr - schedule.warmup_min_lr) * WarmupShare(schedule, step);
  if (group_lr == config.params.lr) return lr;
  if (config.params.lr == 0) {
    contract::Fail(contract::ErrorCode::kInvalidArgument,
                   "optimizer.params.lr is 0; allowed with a scheduler and a group's own lr: not 0");
  }
  return lr * (group_lr / config.params.lr);
}

double ClipCoefficient(double clipping, double norm) {
  if (!(clipping > 0)) return 1;
  const double coefficient = clipping / (norm + 1e-6);
  return coefficient < 1 ? coefficient : 1;
}

}  // namespace plumbline::optimized
