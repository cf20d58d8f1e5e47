// SPDX-License-Identifier: Apache-2.0
// Implements update_recipe.h, element by element.
#include "conformance/diagnosis/update_recipe.h"

#include <cmath>

#include "conformance/oracle/storage_rounding.h"

namespace plumbline::conformance {
namespace {

using contract::OptimizerKind;
using contract::TensorKind;

struct Element {
  double master = 0;
  double moment = 0;
  double second_moment = 0;
};

double Mod(double x, double modulus) { return x - modulus * std::floor(x / modulus); }

double MasterModulus(const UpdateRecipe& recipe) { return 8.0 * static_cast<double>(2 * recipe.weight_bound + 1); }

Element StepModular(const UpdateRecipe& recipe, const Element& before, double gradient) {
  constexpr double kMomentBound = 14;
  const double modulus = MasterModulus(recipe);
  if (recipe.optimizer == OptimizerKind::kModularSgd) return {Mod(before.master - gradient, modulus), 0, 0};
  const auto t = static_cast<double>(recipe.t);
  const double moment = Mod(before.moment + gradient + t + kMomentBound, 2 * kMomentBound + 1) - kMomentBound;
  return {Mod(before.master - moment - t, modulus), moment, 0};
}

Element StepAdamW(const UpdateRecipe& recipe, const Element& before, double gradient) {
  const contract::OptimizerParams& params = recipe.params;
  const double decay = recipe.decay == UpdateRecipe::Decay::kNone ? 0 : params.weight_decay;
  const bool coupled = recipe.decay == UpdateRecipe::Decay::kCoupled;
  const double g = recipe.clip_factor * gradient + (coupled ? decay * before.master : 0);
  Element after;
  after.moment = params.beta1 * before.moment + (1 - params.beta1) * g;
  after.second_moment = params.beta2 * before.second_moment + (1 - params.beta2) * g * g;
  const auto t = static_cast<double>(recipe.t);
  const double first = recipe.corrects_first ? 1 - std::pow(params.beta1, t) : 1;
  const double second = recipe.corrects_second ? 1 - std::pow(params.beta2, t) : 1;
  double denominator = std::sqrt(after.second_moment / second) + params.eps;
  if (recipe.epsilon == UpdateRecipe::Epsilon::kInsideRoot) {
    denominator = std::sqrt(after.second_moment / second + params.eps);
  } else if (recipe.epsilon == UpdateRecipe::Epsilon::kBeforeCorrection) {
    denominator = (std::sqrt(after.second_moment) + params.eps) / std::sqrt(second);
  }
  const double kept = coupled ? before.master : before.master * (1 - params.lr * decay);
  after.master = kept - params.lr * (after.moment / first) / denominator;
  return after;
}

Element StepSgd(const UpdateRecipe& recipe, const Element& before, double gradient) {
  const contract::OptimizerParams& params = recipe.params;
  const double decay = recipe.decay == UpdateRecipe::Decay::kNone ? 0 : params.weight_decay;
  const double g = recipe.clip_factor * gradient + decay * before.master;
  Element after;
  after.moment = params.momentum > 0 && recipe.t > 1 ? params.momentum * before.moment + g : g;
  const double direction = recipe.nesterov ? g + params.momentum * after.moment : after.moment;
  after.master = before.master - params.lr * direction;
  return after;
}

Element Step(const UpdateRecipe& recipe, const Element& before, double gradient) {
  switch (recipe.optimizer) {
    case OptimizerKind::kAdamW:
      return StepAdamW(recipe, before, gradient);
    case OptimizerKind::kSgd:
      return StepSgd(recipe, before, gradient);
    case OptimizerKind::kModularMomentum:
    case OptimizerKind::kModularSgd:
      break;
  }
  return StepModular(recipe, before, gradient);
}

double At(const std::vector<double>& values, size_t i) { return i < values.size() ? values[i] : 0; }

}  // namespace

double WorkingWeight(const UpdateRecipe& recipe, double master) {
  const bool is_modular =
      recipe.optimizer == OptimizerKind::kModularMomentum || recipe.optimizer == OptimizerKind::kModularSgd;
  if (is_modular) return std::floor(master / 8) - static_cast<double>(recipe.weight_bound);
  return RoundToStorage(static_cast<float>(master), recipe.storage);
}

std::vector<double> AfterUpdate(const UpdateRecipe& recipe, const TensorState& before,
                                const std::vector<double>& gradient, TensorKind kind) {
  if (kind == TensorKind::kGradient) return gradient;
  std::vector<double> values;
  values.reserve(gradient.size());
  for (size_t i = 0; i < gradient.size(); ++i) {
    const Element after =
        Step(recipe, {At(before.master, i), At(before.moment, i), At(before.second_moment, i)}, gradient[i]);
    values.push_back(kind == TensorKind::kMoment         ? after.moment
                     : kind == TensorKind::kSecondMoment ? after.second_moment
                     : kind == TensorKind::kMaster       ? after.master
                                                         : WorkingWeight(recipe, after.master));
  }
  return values;
}

}  // namespace plumbline::conformance
