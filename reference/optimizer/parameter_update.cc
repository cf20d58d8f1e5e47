// SPDX-License-Identifier: Apache-2.0
// Implements parameter_update.h.
#include "reference/optimizer/parameter_update.h"

#include <string>

#include "conformance/contract/error.h"
#include "reference/optimizer/adam.h"
#include "reference/optimizer/adamw.h"
#include "reference/optimizer/lamb.h"
#include "reference/optimizer/lion.h"
#include "reference/optimizer/sgd.h"

namespace plumbline::reference {
namespace {

ParameterState UpdateBySgd(const Matrix& gradient, const ParameterState& before, int64_t t, double lr,
                           double weight_decay, const contract::OptimizerParams& params) {
  if (params.momentum == 0) return {Matrix(), Matrix(), Sgd(gradient, before.master, lr, weight_decay)};
  const SgdMomentumResult result =
      SgdMomentum(gradient, before.moment, before.master, t, lr, weight_decay, params.momentum, params.nesterov);
  return {result.moment, Matrix(), result.master};
}

[[noreturn]] void RejectOptimizer(contract::OptimizerKind optimizer) {
  contract::Fail(contract::ErrorCode::kUnsupported,
                 "config.optimizer.type is number " + std::to_string(static_cast<int>(optimizer)) +
                     "; the reference knows AdamW, Adam, Lamb, Lion, SGD in real families");
}

}  // namespace

ParameterState UpdateParameter(contract::OptimizerKind optimizer, const Matrix& gradient, const ParameterState& before,
                               int64_t t, double lr, double weight_decay, const contract::OptimizerParams& params) {
  const auto& [moment, second_moment, master] = before;
  switch (optimizer) {
    case contract::OptimizerKind::kAdamW: {
      const AdamWResult result = AdamW(gradient, moment, second_moment, master, t, lr, weight_decay, params);
      return {result.moment, result.second_moment, result.master};
    }
    case contract::OptimizerKind::kAdam: {
      const AdamWResult result = Adam(gradient, moment, second_moment, master, t, lr, weight_decay, params);
      return {result.moment, result.second_moment, result.master};
    }
    case contract::OptimizerKind::kLamb: {
      const LambResult result = Lamb(gradient, moment, second_moment, master, t, lr, weight_decay, params);
      return {result.moment, result.second_moment, result.master};
    }
    case contract::OptimizerKind::kLion: {
      const LionResult result = Lion(gradient, moment, master, lr, weight_decay, params);
      return {result.moment, Matrix(), result.master};
    }
    case contract::OptimizerKind::kSgd:
      return UpdateBySgd(gradient, before, t, lr, weight_decay, params);
    case contract::OptimizerKind::kModularMomentum:
    case contract::OptimizerKind::kModularSgd:
      break;
  }
  RejectOptimizer(optimizer);
}

}  // namespace plumbline::reference
