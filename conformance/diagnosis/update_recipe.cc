// SPDX-License-Identifier: Apache-2.0
// Implements update_recipe.h, element by element.
#include "conformance/diagnosis/update_recipe.h"

#include <algorithm>
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

double DecayOf(const UpdateRecipe& recipe) {
  return recipe.decay == UpdateRecipe::Decay::kNone ? 0 : recipe.params.weight_decay;
}

void AddToMoments(const UpdateRecipe& recipe, double gradient, Element& element) {
  const contract::OptimizerParams& params = recipe.params;
  element.moment = params.beta1 * element.moment + (1 - params.beta1) * gradient;
  element.second_moment = params.beta2 * element.second_moment + (1 - params.beta2) * gradient * gradient;
}

// The corrected first moment over the root of the second.
double Quotient(const UpdateRecipe& recipe, const Element& after) {
  const contract::OptimizerParams& params = recipe.params;
  const auto t = static_cast<double>(recipe.t);
  const double first = recipe.corrects_first ? 1 - std::pow(params.beta1, t) : 1;
  const double second = recipe.corrects_second ? 1 - std::pow(params.beta2, t) : 1;
  double denominator = std::sqrt(after.second_moment / second) + params.eps;
  if (recipe.epsilon == UpdateRecipe::Epsilon::kInsideRoot) {
    denominator = std::sqrt(after.second_moment / second + params.eps);
  } else if (recipe.epsilon == UpdateRecipe::Epsilon::kBeforeCorrection) {
    denominator = (std::sqrt(after.second_moment) + params.eps) / std::sqrt(second);
  }
  return after.moment / first / denominator;
}

Element StepAdam(const UpdateRecipe& recipe, const Element& before, double clipped) {
  const bool coupled = recipe.decay == UpdateRecipe::Decay::kCoupled;
  const double decay = DecayOf(recipe);
  Element after = before;
  AddToMoments(recipe, clipped + (coupled ? decay * before.master : 0), after);
  const double kept = coupled ? before.master : before.master * (1 - recipe.params.lr * decay);
  after.master = kept - recipe.params.lr * Quotient(recipe, after);
  return after;
}

Element StepLion(const UpdateRecipe& recipe, const Element& before, double clipped) {
  const contract::OptimizerParams& params = recipe.params;
  const double decay = DecayOf(recipe);
  const bool coupled = recipe.decay == UpdateRecipe::Decay::kCoupled;
  const double g = clipped + (coupled ? decay * before.master : 0);
  const double argument = params.beta1 * before.moment + (1 - params.beta1) * g;
  const double sign = argument > 0 ? 1 : argument < 0 ? -1 : 0;
  const double kept = coupled ? before.master : before.master * (1 - params.lr * decay);
  return {kept - params.lr * sign, params.beta2 * before.moment + (1 - params.beta2) * g, 0};
}

Element StepSgd(const UpdateRecipe& recipe, const Element& before, double clipped) {
  const contract::OptimizerParams& params = recipe.params;
  const double g = clipped + DecayOf(recipe) * before.master;
  Element after;
  after.moment = params.momentum > 0 && recipe.t > 1 ? params.momentum * before.moment + g : g;
  const double direction = params.nesterov ? g + params.momentum * after.moment : after.moment;
  after.master = before.master - params.lr * direction;
  return after;
}

Element Step(const UpdateRecipe& recipe, const Element& before, double gradient, double factor) {
  switch (recipe.optimizer) {
    case OptimizerKind::kAdamW:
    case OptimizerKind::kAdam:
      return StepAdam(recipe, before, factor * gradient);
    case OptimizerKind::kLion:
      return StepLion(recipe, before, factor * gradient);
    case OptimizerKind::kSgd:
      return StepSgd(recipe, before, factor * gradient);
    case OptimizerKind::kLamb:  // of whole tensors, below
    case OptimizerKind::kModularMomentum:
    case OptimizerKind::kModularSgd:
      break;
  }
  return StepModular(recipe, before, gradient);
}

// Of [begin, end): what the directions are multiplied by.
double RatioOf(const UpdateRecipe& recipe, const std::vector<Element>& before, const std::vector<double>& directions,
               size_t begin, size_t end) {
  if (recipe.ratio == UpdateRecipe::Ratio::kNone) return 1;
  double weights = 0, updates = 0;
  for (size_t i = begin; i < end; ++i) {
    weights += before[i].master * before[i].master;
    updates += directions[i] * directions[i];
  }
  if (weights == 0 || updates == 0) return 1;
  const double ratio = std::sqrt(weights / updates);
  if (recipe.ratio == UpdateRecipe::Ratio::kUnlimited) return ratio;
  return std::clamp(ratio, recipe.params.min_coeff, recipe.params.max_coeff);
}

std::vector<Element> StepLamb(const UpdateRecipe& recipe, const std::vector<Element>& before,
                              const std::vector<double>& clipped) {
  std::vector<Element> after = before;
  std::vector<double> directions;
  for (size_t i = 0; i < before.size(); ++i) {
    AddToMoments(recipe, clipped[i], after[i]);
    directions.push_back(Quotient(recipe, after[i]) + DecayOf(recipe) * before[i].master);
  }
  std::vector<std::pair<size_t, size_t>> parts = recipe.ratio_parts;
  if (parts.empty()) parts.emplace_back(0, before.size());
  for (const auto& [begin, end] : parts) {
    const double ratio = RatioOf(recipe, before, directions, begin, end);
    for (size_t i = begin; i < end; ++i) after[i].master -= recipe.params.lr * ratio * directions[i];
  }
  return after;
}

double At(const std::vector<double>& values, size_t i) { return i < values.size() ? values[i] : 0; }

}  // namespace

double WorkingWeight(const UpdateRecipe& recipe, double master) {
  if (contract::IsModular(recipe.optimizer)) return std::floor(master / 8) - static_cast<double>(recipe.weight_bound);
  return RoundToStorage(static_cast<float>(master), recipe.storage);
}

UpdateRecipe UpdateRecipe::Of(const contract::RunConfig& config) {
  UpdateRecipe recipe;
  recipe.optimizer = config.optimizer;
  recipe.storage = config.storage;
  recipe.params = config.params;
  if (config.optimizer == OptimizerKind::kAdam) recipe.decay = Decay::kCoupled;
  return recipe;
}

std::vector<double> AfterUpdate(const UpdateRecipe& recipe, const TensorState& before,
                                const std::vector<double>& gradient, TensorKind kind) {
  if (kind == TensorKind::kGradient) return gradient;
  std::vector<Element> elements;
  std::vector<double> clipped;
  for (size_t i = 0; i < gradient.size(); ++i) {
    const double factor = i < recipe.unit_factors.size() ? recipe.unit_factors[i] : recipe.clip_factor;
    elements.push_back({At(before.master, i), At(before.moment, i), At(before.second_moment, i)});
    clipped.push_back(factor * gradient[i]);
    if (recipe.optimizer != OptimizerKind::kLamb) elements[i] = Step(recipe, elements[i], gradient[i], factor);
  }
  if (recipe.optimizer == OptimizerKind::kLamb) elements = StepLamb(recipe, elements, clipped);
  std::vector<double> values;
  values.reserve(elements.size());
  for (const Element& after : elements) {
    values.push_back(kind == TensorKind::kMoment         ? after.moment
                     : kind == TensorKind::kSecondMoment ? after.second_moment
                     : kind == TensorKind::kMaster       ? after.master
                                                         : WorkingWeight(recipe, after.master));
  }
  return values;
}

}  // namespace plumbline::conformance
