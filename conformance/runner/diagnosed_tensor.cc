// SPDX-License-Identifier: Apache-2.0
// The part of Diagnosis that is about a tensor: evidence from dumps, states and the reference; place; hypotheses.
#include <algorithm>
#include <cmath>
#include <utility>

#include "conformance/diagnosis/ranking.h"
#include "conformance/diagnosis/region.h"
#include "conformance/diagnosis/unit_factors.h"
#include "conformance/oracle/schedule_formula.h"
#include "conformance/oracle/update_formula.h"
#include "conformance/runner/diagnosis.h"

namespace plumbline::conformance {
namespace {

using contract::TensorKind;

Values ToDouble(const auto& values) { return {values.begin(), values.end()}; }

// Elements that have no value in the truth, nor in the candidate, as after a skipped step: no hypothesis can say
// anything of them. Made zero throughout, they are equal under each.
std::vector<size_t> ForgetElementsWithoutValue(Evidence& evidence) {
  std::vector<size_t> forgotten;
  for (size_t i = 0; i < std::min(evidence.truth.size(), evidence.candidate.size()); ++i) {
    if (!std::isnan(evidence.truth[i]) || !std::isnan(evidence.candidate[i])) continue;
    forgotten.push_back(i);
    TensorState& before = evidence.before;
    for (Values* values : {&evidence.truth, &evidence.candidate, &evidence.gradient, &evidence.used_gradient,
                           &before.master, &before.moment, &before.second_moment}) {
      if (i < values->size()) (*values)[i] = 0;
    }
  }
  return forgotten;
}

std::vector<DumpedSlice> Without(std::vector<DumpedSlice> slices, const std::vector<size_t>& forgotten) {
  for (DumpedSlice& slice : slices) {
    for (const size_t element : forgotten) {
      const int64_t at = static_cast<int64_t>(element) - slice.begin;
      if (at >= 0 && at < static_cast<int64_t>(slice.values.size())) slice.values[static_cast<size_t>(at)] = 0;
    }
  }
  return slices;
}

double Norm(const Values& values) {
  double squares = 0;
  for (double value : values) squares += value * value;
  return std::sqrt(squares);
}

}  // namespace

std::optional<TensorState> Diagnosis::StateBefore(size_t tensor) const {
  if (reference_) {
    if (std::optional<TensorState> before = reference_->Before(tensor)) return before;
  } else if (const Dump* dump = candidate_->dump(expected_run_, step() - 1)) {
    const int64_t numel = contract::Parameters(model_)[tensor].numel();
    const auto whole = [&](TensorKind kind) { return WholeTensor(dump->of(kind, tensor), numel); };
    return TensorState{whole(TensorKind::kMaster), whole(TensorKind::kMoment), whole(TensorKind::kSecondMoment)};
  }
  if (lead_.run->start) {
    const contract::RealParameterState& start = lead_.run->start->state[tensor];
    return TensorState{ToDouble(start.master), ToDouble(start.moment), ToDouble(start.second_moment)};
  }
  if (step() != spec().first_step) return std::nullopt;
  return InitialState(tensor);
}

TensorState Diagnosis::InitialState(size_t tensor) const {
  if (model_.is_exact()) {
    const auto state = contract::MakeInitialState(model_.exact(), spec().config.optimizer, spec().seed);
    return {ToDouble(state[tensor].master), ToDouble(state[tensor].moment), {}};
  }
  const auto state = contract::MakeInitialRealState(model_, spec().config, spec().seed);
  return {ToDouble(state[tensor].master), ToDouble(state[tensor].moment), ToDouble(state[tensor].second_moment)};
}

namespace {

// What the schedule says of this group in this step.
void Schedule(const contract::RunConfig& config, int64_t step, size_t group, UpdateRecipe& recipe) {
  recipe.params.lr = ScheduledLr(config, step)[group].value;
  const Betas betas = ScheduledBetas(config, group, step);
  recipe.params.beta1 = betas.first;
  recipe.params.beta2 = betas.second;
}

}  // namespace

// Of what clipping does not pass over.
double Diagnosis::ClippedNorm(const Dump& dump) const {
  const std::vector<contract::ParameterSpec> parameters = contract::Parameters(model_);
  return GradientNorm(dump, [&](size_t tensor) {
    return model_.is_exact() || !IsExempt(spec().config, GroupOf(spec().config, parameters.at(tensor).name));
  });
}

// All but what the gradient is multiplied by.
UpdateRecipe Diagnosis::RecipeOf(const contract::ParameterSpec& parameter) const {
  const contract::RunConfig& config = spec().config;
  UpdateRecipe recipe = UpdateRecipe::Of(config);
  // Of a run that resumes after a skipped step, as of the skipped one, the state is that of the saving run's beginning.
  const TaskRun& begins = lead_.saved ? *lead_.saved : *lead_.run;
  recipe.t = begins.start ? begins.start->num_updates + 1 : step() + 1;
  if (model_.is_exact()) {
    recipe.weight_bound = model_.exact().weight_bound;
    return recipe;
  }
  const size_t group = GroupOf(config, parameter.name);
  Schedule(config, step(), group, recipe);
  recipe.params.weight_decay = WeightDecayOf(config, group);
  return recipe;
}

// What the whole norm is clipped to. Of a history that began before this run's start nothing is known.
double Diagnosis::LargestNorm() const {
  const contract::RunConfig& config = spec().config;
  if (!contract::HasNormHistory(config)) return config.gradient_clipping;
  if (!lead_.run->start || step() != spec().first_step) return 0;
  return HistoryThreshold(config.adaptive_clipping, lead_.run->start->norm_history);
}

void Diagnosis::AddClipping(Evidence& evidence) const {
  const contract::RunConfig& config = spec().config;
  evidence.clipping = LargestNorm();
  evidence.adaptive_clipping = config.adaptive_clipping;
  evidence.is_exempt = IsExempt(config, GroupOf(config, evidence.parameter.name));
  if (evidence.is_exempt) return;
  evidence.recipe.clip_factor = ClippingOf(evidence.clipping, evidence.whole_norm).factor;
  if (config.adaptive_clipping.kind != contract::AdaptiveClipping::Kind::kUnit) return;
  evidence.recipe.unit_factors =
      UnitFactors(evidence.parameter, config.adaptive_clipping, evidence.used_gradient, evidence.before.master);
}

namespace {

// The numbers of other groups in this step, and of this group in steps that an engine may have counted.
void AddNeighbours(const contract::Case& spec, int64_t step, Evidence& evidence) {
  const contract::RunConfig& config = spec.config;
  const size_t own = GroupOf(config, evidence.parameter.name);
  for (size_t group = 0; group <= config.groups.size(); ++group) {
    if (group == own) continue;
    UpdateRecipe recipe = evidence.recipe;
    Schedule(config, step, group, recipe);
    recipe.params.weight_decay = WeightDecayOf(config, group);
    evidence.neighbours.emplace_back("of group " + std::to_string(group), recipe);
  }
  if (own > 0) {
    UpdateRecipe recipe = evidence.recipe;
    recipe.params.weight_decay = config.params.weight_decay;
    evidence.neighbours.emplace_back("of the optimizer, without the group's", recipe);
  }
  const int64_t accumulation = config.accumulation_steps;
  for (int64_t other : {step + 1, step - 1, step * accumulation, (step + 1) * accumulation - 1, step + 2, step - 2}) {
    if (other < 0 || other == step) continue;
    UpdateRecipe recipe = evidence.recipe;
    Schedule(config, other, own, recipe);
    evidence.neighbours.emplace_back("of step " + std::to_string(other), recipe);
  }
}

}  // namespace

// Gradients have the reference's, or the expected run's, as their truth; what follows the gradient has the formula's,
// from what the engine says that it used.
void Diagnosis::AddTruth(const Found& found, const Dump& dump, Evidence& evidence) const {
  const int64_t numel = evidence.parameter.numel();
  const auto whole = [&](const Dump& of, TensorKind kind) { return WholeTensor(of.of(kind, found.tensor), numel); };
  if (reference_) {
    evidence.gradient = reference_->Truth(TensorKind::kGradient, found.tensor);
    evidence.shares = reference_->Shares(found.tensor);
    evidence.share_tokens = reference_->share_tokens();
    evidence.changed = reference_->Changed(found.tensor);
  }
  if (found.kind != TensorKind::kGradient) {
    evidence.used_gradient = whole(dump, TensorKind::kGradient);
    evidence.gradient = evidence.used_gradient;
  }
  if (!evidence.is_exact) AddClipping(evidence);
  if (lead_.expected) {
    const Dump* expected = candidate_->dump(expected_run_, step());
    if (expected) evidence.truth = whole(*expected, found.kind);
  } else if (found.kind == TensorKind::kGradient) {
    evidence.truth = evidence.gradient;
  } else if (model_.is_exact()) {
    evidence.truth = reference_->Truth(found.kind, found.tensor);
  } else if (evidence.parameter.frozen) {
    evidence.truth = evidence.before.master;
    if (found.kind == TensorKind::kWeight) {
      for (double& value : evidence.truth) value = WorkingWeight(evidence.recipe, value);
    }
  } else if (found.kind == TensorKind::kWeight) {
    evidence.truth = whole(dump, TensorKind::kMaster);
    for (double& value : evidence.truth) value = WorkingWeight(evidence.recipe, value);
  } else {
    evidence.truth = AfterUpdate(evidence.recipe, evidence.before, evidence.used_gradient, found.kind);
  }
}

Diagnosis::Known Diagnosis::EvidenceOf(const Found& found, const Dump& dump) const {
  Known known;
  Evidence& evidence = known.evidence;
  evidence.is_exact = model_.is_exact();
  evidence.parameter = contract::Parameters(model_)[found.tensor];
  evidence.kind = found.kind;
  evidence.num_ranks = spec().config.data_degree;
  evidence.num_accumulation_steps = spec().config.accumulation_steps;
  evidence.whole_norm = ClippedNorm(dump);
  evidence.rank_norms = RankGradientNorms(dump, spec().config.world_size());
  evidence.before = StateBefore(found.tensor).value_or(TensorState{});
  evidence.initial = InitialState(found.tensor);
  evidence.recipe = RecipeOf(evidence.parameter);
  AddTruth(found, dump, evidence);
  if (!evidence.is_exact) AddNeighbours(spec(), step(), evidence);
  if (auto held = Assemble(dump.of(found.kind, found.tensor), evidence.parameter.numel(), evidence.truth)) {
    evidence.candidate = std::move(held->values);
    evidence.held = std::move(held->held);
  }
  known.forgotten = ForgetElementsWithoutValue(evidence);
  if (!evidence.is_exact) {
    constexpr double kRounding = 0x1p-23;  // of fp32, of what is stored; a candidate may be much larger than the truth
    const double stored = std::max(Norm(evidence.truth), Norm(evidence.candidate));
    evidence.noise = found.kind == TensorKind::kGradient && !lead_.expected ? lead_.noise : kRounding * stored;
  }
  return known;
}

reports::DivergenceRecord Diagnosis::FinishTensor(const Found& found, const Dump& dump,
                                                  reports::DivergenceRecord record) const {
  const auto [evidence, forgotten] = EvidenceOf(found, dump);
  record.quantity = contract::Name(found.kind);
  record.tensor = evidence.parameter.name;
  record.layer = LayerOf(record.tensor);
  if (evidence.truth.empty() || evidence.truth.size() != evidence.candidate.size()) {
    record.undiagnosed = reference_ && !reference_->error().empty() ? "the reference: " + reference_->error()
                                                                    : "the dump does not hold the tensor whole";
    return record;
  }
  const double tolerance = DifferenceTolerance(evidence.candidate, evidence.truth, evidence.noise);
  record.region = DescribeRegion(evidence.parameter, evidence.candidate, evidence.truth, tolerance);
  record.ranks = DifferingRanks(Without(dump.of(found.kind, found.tensor), forgotten), evidence.truth, tolerance);
  if (record.ranks.empty()) {
    record.ranks = RanksOfOtherTrace(dump, found.kind, found.tensor, record.tensor);
    record.undiagnosed = record.ranks.empty() ? kNotAgain : kOtherTrace;
    return record;
  }
  Rank(evidence, record);
  return record;
}

}  // namespace plumbline::conformance
