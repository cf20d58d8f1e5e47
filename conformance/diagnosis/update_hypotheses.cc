// SPDX-License-Identifier: Apache-2.0
// Predictions of what an update leaves, each by the recipe with one thing changed, from the gradient that the candidate
// says it used.
#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "conformance/diagnosis/displacement.h"
#include "conformance/diagnosis/hypothesis.h"
#include "conformance/diagnosis/unit_factors.h"
#include "conformance/oracle/storage_rounding.h"

namespace plumbline::conformance {
namespace {

using contract::OptimizerKind;
using contract::TensorKind;

constexpr double kClipEpsilon = 1e-6;

bool HasCorrections(const Evidence& evidence) {
  const OptimizerKind kind = evidence.recipe.optimizer;
  return kind == OptimizerKind::kAdamW || kind == OptimizerKind::kAdam || kind == OptimizerKind::kLamb;
}
bool IsModular(const Evidence& evidence) { return evidence.is_exact; }

Prediction With(const Evidence& evidence, std::string what, const std::function<void(UpdateRecipe&)>& change) {
  UpdateRecipe recipe = evidence.recipe;
  change(recipe);
  return {std::move(what), AfterUpdate(recipe, evidence.before, evidence.used_gradient, evidence.kind)};
}

Prediction From(const Evidence& evidence, std::string what, const TensorState& before) {
  return {std::move(what), AfterUpdate(evidence.recipe, before, evidence.used_gradient, evidence.kind)};
}

double ClipFactor(double limit, double norm) { return std::min(1.0, limit / (norm + kClipEpsilon)); }

double NormOf(const Values& values, size_t begin, size_t end) {
  double squares = 0;
  for (size_t i = begin; i < end; ++i) squares += values[i] * values[i];
  return std::sqrt(squares);
}

Values Bf16(Values values) {
  for (double& value : values) value = RoundToStorage(value, contract::DType::kBF16);
  return values;
}

// The update of each part by a recipe of its own.
Prediction ByParts(const Evidence& evidence, std::string what,
                   const std::function<void(UpdateRecipe&, size_t part)>& change) {
  Prediction prediction{std::move(what), evidence.truth};
  for (size_t part = 0; part < evidence.held.size(); ++part) {
    const Prediction of_part = With(evidence, "", [&](UpdateRecipe& recipe) { change(recipe, part); });
    const auto begin = static_cast<std::ptrdiff_t>(evidence.held[part].begin);
    const auto end = static_cast<std::ptrdiff_t>(evidence.held[part].end);
    std::copy(of_part.values.begin() + begin, of_part.values.begin() + end, prediction.values.begin() + begin);
  }
  return prediction;
}

std::string Signed(int64_t number) { return (number > 0 ? "+" : "") + std::to_string(number); }

}  // namespace

Predictions NotUpdated(const Evidence& evidence) {
  const TensorState& before = evidence.before;
  const Values& old = evidence.kind == TensorKind::kMoment         ? before.moment
                      : evidence.kind == TensorKind::kSecondMoment ? before.second_moment
                                                                   : before.master;
  if (old.size() != evidence.truth.size() || evidence.kind == TensorKind::kWeight) return {};
  return {{"", old}};
}

Predictions LateWeight(const Evidence& evidence) {
  if (evidence.kind != TensorKind::kWeight || evidence.before.master.size() != evidence.truth.size()) return {};
  Values late = evidence.before.master;
  for (double& value : late) value = WorkingWeight(evidence.recipe, value);
  return {{"", late}};
}

Predictions StepCounter(const Evidence& evidence) {
  Predictions predictions;
  const int64_t t = evidence.recipe.t;
  const auto add = [&](std::string what, int64_t other) {
    if (other == t || other < 0 || (other == 0 && !IsModular(evidence))) return;
    predictions.push_back(With(evidence, std::move(what), [&](UpdateRecipe& recipe) { recipe.t = other; }));
  };
  for (int64_t by : {1, -1, 2, -2}) add("t " + Signed(by), t + by);
  add("t begins anew", 1);
  add("t times the accumulation steps", t * evidence.num_accumulation_steps);
  add("t counts every micro-batch", (t - 1) * evidence.num_accumulation_steps + 1);
  // A counter that advances once for each tensor, group or part: the offset is not known, and is fitted.
  constexpr int64_t kMaxFitted = 64;
  for (int64_t by = 3; by <= kMaxFitted; ++by) {
    add("t " + Signed(by), t + by);
    if (!predictions.empty() && predictions.back().what == "t " + Signed(by)) predictions.back().num_fitted = 1;
  }
  for (int64_t first = 0; evidence.held.size() > 1 && first < 2; ++first) {
    predictions.push_back(ByParts(evidence, "t advances with each part", [&](UpdateRecipe& recipe, size_t part) {
      recipe.t = t + first + static_cast<int64_t>(part);
    }));
  }
  return predictions;
}

Predictions BiasCorrection(const Evidence& evidence) {
  if (!HasCorrections(evidence)) return {};
  return {With(evidence, "of both moments",
               [](UpdateRecipe& recipe) { recipe.corrects_first = recipe.corrects_second = false; }),
          With(evidence, "of the first moment", [](UpdateRecipe& recipe) { recipe.corrects_first = false; }),
          With(evidence, "of the second moment", [](UpdateRecipe& recipe) { recipe.corrects_second = false; })};
}

Predictions ClippingMissing(const Evidence& evidence) {
  if (!(evidence.recipe.clip_factor < 1)) return {};
  return {With(evidence, "", [](UpdateRecipe& recipe) { recipe.clip_factor = 1; })};
}

Predictions ClippingTwice(const Evidence& evidence) {
  if (!(evidence.recipe.clip_factor < 1)) return {};
  return {With(evidence, "", [](UpdateRecipe& recipe) { recipe.clip_factor *= recipe.clip_factor; })};
}

Predictions ClippingInverted(const Evidence& evidence) {
  if (!(evidence.clipping > 0) || !(evidence.whole_norm > 0) || evidence.is_exempt) return {};
  const double factor = std::max(1.0, evidence.clipping / (evidence.whole_norm + kClipEpsilon));
  if (factor == evidence.recipe.clip_factor) return {};
  return {With(evidence, "", [&](UpdateRecipe& recipe) { recipe.clip_factor = factor; })};
}

Predictions ClippingNorm(const Evidence& evidence) {
  if (!(evidence.clipping > 0) || evidence.is_exempt) return {};
  const Values& gradient = evidence.used_gradient;
  const double limit = evidence.clipping;
  Predictions predictions = {
      With(evidence, "of this tensor",
           [&](UpdateRecipe& recipe) { recipe.clip_factor = ClipFactor(limit, NormOf(gradient, 0, gradient.size())); }),
      ByParts(evidence, "of each rank's shard",
              [&](UpdateRecipe& recipe, size_t part) {
                const auto rank = static_cast<size_t>(evidence.held[part].rank);
                if (rank < evidence.rank_norms.size())
                  recipe.clip_factor = ClipFactor(limit, evidence.rank_norms[rank]);
              }),
      ByParts(evidence, "of each rank's part of this tensor", [&](UpdateRecipe& recipe, size_t part) {
        const HeldRange& range = evidence.held[part];
        recipe.clip_factor =
            ClipFactor(limit, NormOf(gradient, static_cast<size_t>(range.begin), static_cast<size_t>(range.end)));
      })};
  const double without_epsilon = std::min(1.0, limit / evidence.whole_norm);
  predictions.push_back(
      With(evidence, "without epsilon", [&](UpdateRecipe& recipe) { recipe.clip_factor = without_epsilon; }));
  const double replicas = std::sqrt(static_cast<double>(evidence.num_ranks));
  for (double factor : {replicas, 1 / replicas}) {
    if (factor == 1) continue;
    predictions.push_back(
        With(evidence, factor > 1 ? "summed over ranks that hold the same" : "averaged over ranks",
             [&](UpdateRecipe& recipe) { recipe.clip_factor = ClipFactor(limit, evidence.whole_norm * factor); }));
  }
  return predictions;
}

namespace {

bool ClipsUnits(const Evidence& evidence) {
  return evidence.adaptive_clipping.kind == contract::AdaptiveClipping::Kind::kUnit;
}

Prediction WithUnits(const Evidence& evidence, std::string what, const contract::ParameterSpec& parameter,
                     const contract::AdaptiveClipping& rule) {
  return With(evidence, std::move(what), [&](UpdateRecipe& recipe) {
    recipe.unit_factors = UnitFactors(parameter, rule, evidence.used_gradient, evidence.before.master);
  });
}

}  // namespace

Predictions ExemptClipped(const Evidence& evidence) {
  if (!evidence.is_exempt) return {};
  if (ClipsUnits(evidence)) return {WithUnits(evidence, "", evidence.parameter, evidence.adaptive_clipping)};
  if (!(evidence.clipping > 0)) return {};
  return {With(evidence, "",
               [&](UpdateRecipe& recipe) { recipe.clip_factor = ClipFactor(evidence.clipping, evidence.whole_norm); })};
}

Predictions UnitNorm(const Evidence& evidence) {
  if (!ClipsUnits(evidence) || evidence.is_exempt) return {};
  using Shape = contract::UnitShape;
  constexpr std::pair<Shape, const char*> kShapes[] = {
      {Shape::kWhole, "of whole tensors"}, {Shape::kRows, "of rows"}, {Shape::kColumns, "of columns"}};
  Predictions predictions;
  for (const auto& [shape, what] : kShapes) {
    contract::ParameterSpec parameter = evidence.parameter;
    if (shape == parameter.units || (parameter.is_vector && shape == Shape::kRows)) continue;
    parameter.units = shape;
    predictions.push_back(WithUnits(evidence, what, parameter, evidence.adaptive_clipping));
  }
  contract::AdaptiveClipping rule = evidence.adaptive_clipping;
  rule.eps = 0;
  predictions.push_back(WithUnits(evidence, "without the floor of weights", evidence.parameter, rule));
  predictions.push_back(With(evidence, "not at all", [](UpdateRecipe& recipe) { recipe.unit_factors.clear(); }));
  if (evidence.held.size() < 2) return predictions;
  predictions.push_back(ByParts(evidence, "of each rank's part", [&](UpdateRecipe& recipe, size_t part) {
    const HeldRange& range = evidence.held[part];
    recipe.unit_factors =
        UnitFactors(evidence.parameter, evidence.adaptive_clipping, evidence.used_gradient, evidence.before.master,
                    static_cast<size_t>(range.begin), static_cast<size_t>(range.end));
  }));
  return predictions;
}

namespace {

Predictions Rates(const Evidence& evidence, bool of_groups) {
  Predictions predictions;
  for (const auto& [what, neighbour] : evidence.neighbours) {
    const bool is_group = what.find("group") != std::string::npos;
    if (is_group != of_groups) continue;
    const contract::OptimizerParams& own = evidence.recipe.params;
    const bool same_betas = neighbour.params.beta1 == own.beta1 && neighbour.params.beta2 == own.beta2;
    if (!same_betas) {
      predictions.push_back(
          With(evidence, what + ", and its betas", [&](UpdateRecipe& recipe) { recipe.params = neighbour.params; }));
    }
    if (neighbour.params.lr == own.lr) continue;
    predictions.push_back(With(evidence, what, [&](UpdateRecipe& recipe) { recipe.params.lr = neighbour.params.lr; }));
    if (of_groups && neighbour.params.weight_decay != own.weight_decay) {
      predictions.push_back(
          With(evidence, what + ", and its decay", [&](UpdateRecipe& recipe) { recipe.params = neighbour.params; }));
    }
  }
  return predictions;
}

}  // namespace

Predictions RateOfOtherGroup(const Evidence& evidence) { return Rates(evidence, true); }

Predictions RateOfOtherStep(const Evidence& evidence) { return Rates(evidence, false); }

Predictions DecayMissing(const Evidence& evidence) {
  if (evidence.recipe.params.weight_decay == 0) return {};
  return {With(evidence, "", [](UpdateRecipe& recipe) { recipe.decay = UpdateRecipe::Decay::kNone; })};
}

// Of the optimizers that know both forms.
Predictions DecayForm(const Evidence& evidence) {
  using Decay = UpdateRecipe::Decay;
  const OptimizerKind kind = evidence.recipe.optimizer;
  const bool has_both = kind == OptimizerKind::kAdamW || kind == OptimizerKind::kAdam || kind == OptimizerKind::kLion;
  if (!has_both || evidence.recipe.params.weight_decay == 0) return {};
  const bool coupled = evidence.recipe.decay == Decay::kCoupled;
  return {With(evidence, coupled ? "taken from the weights" : "added to the gradient",
               [&](UpdateRecipe& recipe) { recipe.decay = coupled ? Decay::kDecoupled : Decay::kCoupled; })};
}

Predictions DecayOfOtherGroup(const Evidence& evidence) {
  Predictions predictions;
  for (const auto& [what, neighbour] : evidence.neighbours) {
    if (what.find("group") == std::string::npos) continue;
    const double decay = neighbour.params.weight_decay;
    if (decay != evidence.recipe.params.weight_decay) {
      predictions.push_back(With(evidence, what, [&](UpdateRecipe& recipe) { recipe.params.weight_decay = decay; }));
    }
    // A parameter that was put into another group gets all of that group's numbers.
    if (decay != evidence.recipe.params.weight_decay && neighbour.params.lr != evidence.recipe.params.lr) {
      predictions.push_back(With(evidence, what + ", and its rate", [&](UpdateRecipe& recipe) {
        recipe.params.weight_decay = decay;
        recipe.params.lr = neighbour.params.lr;
      }));
    }
  }
  return predictions;
}

Predictions SwappedParameters(const Evidence& evidence) {
  if (!contract::HasBetas(evidence.recipe.optimizer)) return {};
  using Params = contract::OptimizerParams;
  struct Named {
    const char* name;
    double Params::*field;
  };
  constexpr Named kFields[] = {
      {"lr", &Params::lr}, {"beta1", &Params::beta1}, {"beta2", &Params::beta2}, {"eps", &Params::eps}};
  Predictions predictions;
  for (size_t i = 0; i < std::size(kFields); ++i) {
    for (size_t j = i + 1; j < std::size(kFields); ++j) {
      predictions.push_back(With(
          evidence, std::string(kFields[i].name) + " and " + kFields[j].name,
          [&](UpdateRecipe& recipe) { std::swap(recipe.params.*kFields[i].field, recipe.params.*kFields[j].field); }));
    }
  }
  return predictions;
}

Predictions EpsilonPlace(const Evidence& evidence) {
  if (!HasCorrections(evidence)) return {};
  return {With(evidence, "inside the root",
               [](UpdateRecipe& recipe) { recipe.epsilon = UpdateRecipe::Epsilon::kInsideRoot; }),
          With(evidence, "before the correction of the bias",
               [](UpdateRecipe& recipe) { recipe.epsilon = UpdateRecipe::Epsilon::kBeforeCorrection; }),
          With(evidence, "missing", [](UpdateRecipe& recipe) { recipe.params.eps = 0; })};
}

Predictions MomentumForm(const Evidence& evidence) {
  if (evidence.recipe.optimizer != OptimizerKind::kSgd || !(evidence.recipe.params.momentum > 0)) return {};
  const bool nesterov = evidence.recipe.params.nesterov;
  return {With(evidence, nesterov ? "not Nesterov's" : "Nesterov's",
               [&](UpdateRecipe& recipe) { recipe.params.nesterov = !nesterov; }),
          With(evidence, "the gradient alone", [](UpdateRecipe& recipe) { recipe.params.momentum = 0; })};
}

Predictions RatioOfNorms(const Evidence& evidence) {
  if (evidence.recipe.optimizer != OptimizerKind::kLamb) return {};
  using Ratio = UpdateRecipe::Ratio;
  Predictions predictions = {
      With(evidence, "missing", [](UpdateRecipe& recipe) { recipe.ratio = Ratio::kNone; }),
      With(evidence, "without its limits", [](UpdateRecipe& recipe) { recipe.ratio = Ratio::kUnlimited; })};
  if (evidence.held.size() < 2) return predictions;
  predictions.push_back(With(evidence, "of each rank's part", [&](UpdateRecipe& recipe) {
    for (const HeldRange& range : evidence.held) {
      recipe.ratio_parts.emplace_back(static_cast<size_t>(range.begin), static_cast<size_t>(range.end));
    }
  }));
  return predictions;
}

Predictions LostState(const Evidence& evidence) {
  Predictions predictions;
  const auto lose = [&](const char* what, bool first, bool second) {
    TensorState before = evidence.before;
    if (first) std::fill(before.moment.begin(), before.moment.end(), 0.0);
    if (second) std::fill(before.second_moment.begin(), before.second_moment.end(), 0.0);
    if (first && before.moment.empty()) return;
    if (second && before.second_moment.empty()) return;
    predictions.push_back(From(evidence, what, before));
  };
  lose("first moments", true, false);
  lose("second moments", false, true);
  lose("both moments", true, true);
  if (evidence.initial.master.size() == evidence.before.master.size()) {
    TensorState before = evidence.before;
    before.master = evidence.initial.master;
    predictions.push_back(From(evidence, "master weights of the beginning", before));
    predictions.push_back(From(evidence, "all of it as at the beginning", evidence.initial));
  }
  if (IsModular(evidence)) {
    TensorState before = evidence.before;
    for (double& value : before.master) value = 8 * std::floor(value / 8);
    predictions.push_back(From(evidence, "master weights made from working weights", before));
  }
  return predictions;
}

Predictions ShiftedState(const Evidence& evidence) {
  Predictions predictions;
  for (const Displacement& displacement : Displacements(evidence)) {
    const TensorState before{Displaced(evidence.before.master, displacement),
                             Displaced(evidence.before.moment, displacement),
                             Displaced(evidence.before.second_moment, displacement)};
    predictions.push_back(From(evidence, displacement.what, before));
    predictions.back().num_fitted = displacement.num_fitted;
  }
  return predictions;
}

Predictions LowPrecisionState(const Evidence& evidence) {
  if (evidence.is_exact) return {};
  TensorState before = evidence.before;
  before.master = Bf16(before.master);
  Predictions predictions = {From(evidence, "master weights before the update", before)};
  if (evidence.kind != TensorKind::kWeight) predictions.push_back({"after the update", Bf16(evidence.truth)});
  before = evidence.before;
  before.moment = Bf16(before.moment);
  before.second_moment = Bf16(before.second_moment);
  predictions.push_back(From(evidence, "moments before the update", before));
  return predictions;
}

}  // namespace plumbline::conformance
