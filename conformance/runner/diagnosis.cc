// SPDX-License-Identifier: Apache-2.0
#include "conformance/runner/diagnosis.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "conformance/diagnosis/ranking.h"
#include "conformance/diagnosis/region.h"
#include "conformance/oracle/update_formula.h"

namespace plumbline::conformance {
namespace {

using contract::TensorKind;

std::optional<TensorKind> KindOf(const std::string& quantity) {
  for (TensorKind kind : contract::kTensorKinds) {
    if (quantity == contract::Name(kind)) return kind;
  }
  return std::nullopt;
}

constexpr const char* kReplicas = "replicas";
constexpr const char* kLoss = "loss";
constexpr const char* kRate = "lr";
constexpr const char* kNorm = "gradient_norm";

// Numbers of the trace that hypotheses speak of.
bool IsNumber(const std::string& quantity) { return quantity == kLoss || quantity == kRate || quantity == kNorm; }

Values ToDouble(const auto& values) { return {values.begin(), values.end()}; }

double Norm(const Values& values) {
  double squares = 0;
  for (double value : values) squares += value * value;
  return std::sqrt(squares);
}

// The run as it is run again: up to the step.
TaskRun UpTo(TaskRun run, int64_t step, const std::string& suffix) {
  run.spec.id += suffix;
  run.spec.steps = std::min(run.spec.steps, step + 1 - run.spec.first_step);
  run.resumes.reset();
  return run;
}

// The number after `word` in the text, or -1.
int64_t NumberAfter(const std::string& text, const std::string& word) {
  const size_t at = text.find(word);
  if (at == std::string::npos) return -1;
  int64_t number = -1;
  std::from_chars(text.data() + at + word.size(), text.data() + text.size(), number);
  return number;
}

// Each rank's dump of all gradients, as one norm; parts that several ranks hold count once.
double GradientNorm(const Dump& dump) {
  double squares = 0;
  for (const auto& slices : dump.slices[static_cast<int>(TensorKind::kGradient)]) {
    int64_t covered = 0;
    for (const DumpedSlice& slice : slices) {
      if (slice.begin < covered) continue;
      for (double value : slice.values) squares += value * value;
      covered = slice.begin + static_cast<int64_t>(slice.values.size());
    }
  }
  return std::sqrt(squares);
}

// The norm of the gradients that each rank holds.
std::vector<double> RankNorms(const Dump& dump, int64_t num_ranks) {
  std::vector<double> norms(static_cast<size_t>(num_ranks));
  for (const auto& slices : dump.slices[static_cast<int>(TensorKind::kGradient)]) {
    for (const DumpedSlice& slice : slices) {
      for (double value : slice.values) norms[static_cast<size_t>(slice.rank)] += value * value;
    }
  }
  for (double& norm : norms) norm = std::sqrt(norm);
  return norms;
}

}  // namespace

reports::DivergenceRecord PlaceInText(const std::string& text, const contract::ModelSpec& model) {
  reports::DivergenceRecord record;
  record.step = NumberAfter(text, "step ");
  const int64_t rank = NumberAfter(text, "rank ");
  if (rank >= 0) record.ranks = {rank};
  for (const contract::ParameterSpec& parameter : contract::Parameters(model)) {
    const size_t at = text.find(parameter.name);
    const bool is_longer = at != std::string::npos && at > 0 && (text[at - 1] == '.' || std::isalnum(text[at - 1]));
    if (at == std::string::npos || is_longer || parameter.name.size() < record.tensor.size()) continue;
    record.tensor = parameter.name;
    record.layer = LayerOf(parameter.name);
  }
  record.undiagnosed = "what was found are no values of a tensor";
  return record;
}

Diagnosis::Diagnosis(const Lead& lead, contract::ModelSpec model, bool engine_dumps,
                     const contract::TokenSource& source, ProbeCache& probes)
    : lead_(lead), model_(std::move(model)) {
  if (lead_.divergence.quantity == "engine") {
    undiagnosed_ = "the engine stopped in this step";
  } else if (!lead_.run) {
    undiagnosed_ = "what was found has no first place";
  } else if (!engine_dumps) {
    undiagnosed_ = "the engine does not dump tensors";
  } else if (!KindOf(lead_.divergence.quantity) && !IsNumber(lead_.divergence.quantity) &&
             lead_.divergence.quantity != kReplicas) {
    undiagnosed_ = "no hypothesis speaks of it";
  }
  if (undiagnosed_.empty()) PlanRuns(source, probes);
}

void Diagnosis::PlanRuns(const contract::TokenSource& source, ProbeCache& probes) {
  std::vector<DumpTask::Wanted> wanted;
  if (lead_.saved) wanted.push_back({*lead_.saved, {}});
  seen_run_ = wanted.size();
  wanted.push_back({UpTo(*lead_.run, step(), "/diagnosis"), {step()}});
  if (lead_.saved) wanted.back().run.resumes = 0;
  if (lead_.expected) {
    expected_run_ = wanted.size();
    std::vector<int64_t> steps = {step()};
    if (step() > lead_.expected->spec.first_step) steps.insert(steps.begin(), step() - 1);
    wanted.push_back({UpTo(*lead_.expected, step(), "/expected"), steps});
  } else {
    std::shared_ptr<ReferenceProbe>& probe = probes[ReferenceProbe::Key(*lead_.run, step())];
    if (!probe) probe = std::make_shared<ReferenceProbe>(*lead_.run, step(), source);
    reference_ = probe;
  }
  candidate_ = std::make_unique<DumpTask>(std::move(wanted));
}

std::optional<Diagnosis::Found> Diagnosis::FindTensor(const Dump& dump) const {
  if (lead_.divergence.quantity == kReplicas) {
    const std::optional<Disagreement> found = FirstDisagreement(dump);
    return found ? std::optional(Found{found->kind, found->tensor}) : std::nullopt;
  }
  const std::vector<contract::ParameterSpec> parameters = contract::Parameters(model_);
  const auto found = std::find_if(parameters.begin(), parameters.end(), [&](const contract::ParameterSpec& parameter) {
    return parameter.name == lead_.divergence.tensor;
  });
  if (found == parameters.end()) return std::nullopt;
  return Found{*KindOf(lead_.divergence.quantity), static_cast<size_t>(found - parameters.begin())};
}

std::optional<TensorState> Diagnosis::StateBefore(size_t tensor) const {
  if (reference_) {
    if (std::optional<TensorState> before = reference_->Before(tensor)) return before;
  } else if (const Dump* dump = candidate_->dump(expected_run_, step() - 1)) {
    const auto whole = [&](TensorKind kind) {
      const int64_t numel = contract::Parameters(model_)[tensor].numel();
      const std::optional<HeldTensor> held = Assemble(dump->of(kind, tensor), numel, {});
      return held ? held->values : Values{};
    };
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
  const auto state = contract::MakeInitialRealState(model_.gpt2(), spec().config, spec().seed);
  return {ToDouble(state[tensor].master), ToDouble(state[tensor].moment), ToDouble(state[tensor].second_moment)};
}

UpdateRecipe Diagnosis::RecipeOf(const contract::ParameterSpec& parameter, double gradient_norm) const {
  const contract::RunConfig& config = spec().config;
  UpdateRecipe recipe;
  recipe.optimizer = config.optimizer;
  recipe.storage = config.storage;
  recipe.t = lead_.run->start ? lead_.run->start->num_updates + 1 : step() + 1;
  if (model_.is_exact()) {
    recipe.weight_bound = model_.exact().weight_bound;
    return recipe;
  }
  const size_t group = GroupOf(config, parameter.name);
  recipe.params = config.params;
  recipe.params.lr = ScheduledLr(config, step())[group].value;
  if (group > 0) {
    recipe.params.weight_decay = config.groups[group - 1].weight_decay.value_or(config.params.weight_decay);
  }
  recipe.clip_factor = ClippingOf(config.gradient_clipping, gradient_norm).factor;
  return recipe;
}

namespace {

// The numbers of other groups in this step, and of this group in steps that an engine may have counted.
void AddNeighbours(const contract::Case& spec, int64_t step, Evidence& evidence) {
  const contract::RunConfig& config = spec.config;
  const size_t own = GroupOf(config, evidence.parameter.name);
  const auto lrs = ScheduledLr(config, step);
  for (size_t group = 0; group < lrs.size(); ++group) {
    if (group == own) continue;
    UpdateRecipe recipe = evidence.recipe;
    recipe.params.lr = lrs[group].value;
    recipe.params.weight_decay = group == 0
                                     ? config.params.weight_decay
                                     : config.groups[group - 1].weight_decay.value_or(config.params.weight_decay);
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
    recipe.params.lr = ScheduledLr(config, other)[own].value;
    evidence.neighbours.emplace_back("of step " + std::to_string(other), recipe);
  }
}

}  // namespace

// Gradients have the reference's, or the expected run's, as their truth; what follows the gradient has the formula's,
// from what the engine says that it used.
void Diagnosis::AddTruth(const Found& found, const Dump& dump, Evidence& evidence) const {
  const int64_t numel = evidence.parameter.numel();
  const auto whole = [&](const Dump& of, TensorKind kind) {
    const std::optional<HeldTensor> held = Assemble(of.of(kind, found.tensor), numel, {});
    return held ? held->values : Values{};
  };
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

Evidence Diagnosis::EvidenceOf(const Found& found, const Dump& dump) const {
  Evidence evidence;
  evidence.is_exact = model_.is_exact();
  evidence.parameter = contract::Parameters(model_)[found.tensor];
  evidence.kind = found.kind;
  evidence.num_ranks = spec().config.data_degree;
  evidence.num_accumulation_steps = spec().config.accumulation_steps;
  evidence.whole_norm = GradientNorm(dump);
  evidence.clipping = spec().config.gradient_clipping;
  evidence.rank_norms = RankNorms(dump, spec().config.world_size());
  evidence.before = StateBefore(found.tensor).value_or(TensorState{});
  evidence.initial = InitialState(found.tensor);
  evidence.recipe = RecipeOf(evidence.parameter, evidence.whole_norm);
  AddTruth(found, dump, evidence);
  if (!evidence.is_exact) AddNeighbours(spec(), step(), evidence);
  if (auto held = Assemble(dump.of(found.kind, found.tensor), evidence.parameter.numel(), evidence.truth)) {
    evidence.candidate = std::move(held->values);
    evidence.held = std::move(held->held);
  }
  if (!evidence.is_exact) {
    constexpr double kRounding = 0x1p-23;  // of fp32, of what is stored
    evidence.noise =
        found.kind == TensorKind::kGradient && !lead_.expected ? lead_.noise : kRounding * Norm(evidence.truth);
  }
  return evidence;
}

reports::DivergenceRecord Diagnosis::Finish() const {
  reports::DivergenceRecord record = PlaceInText(lead_.divergence.detail, model_);
  record.undiagnosed = undiagnosed_;
  record.step = step();
  record.quantity = lead_.divergence.quantity;
  if (!lead_.divergence.tensor.empty()) {
    record.tensor = lead_.divergence.tensor;
    record.layer = LayerOf(record.tensor);
  }
  if (!candidate_) return record;
  const Dump* dump = candidate_->dump(seen_run_, step());
  if (!dump) {
    record.undiagnosed =
        candidate_->error().empty() ? "the run left no dump" : "run again for its dumps: " + candidate_->error();
    return record;
  }
  if (IsNumber(record.quantity)) return FinishNumber(*dump, std::move(record));
  const std::optional<Found> found = FindTensor(*dump);
  if (found) return FinishTensor(*found, *dump, std::move(record));
  if (record.quantity == kReplicas) {
    record.quantity = kNorm;
    return FinishNumber(*dump, std::move(record));
  }
  record.undiagnosed = "no tensor is named";
  return record;
}

reports::DivergenceRecord Diagnosis::FinishTensor(const Found& found, const Dump& dump,
                                                  reports::DivergenceRecord record) const {
  const Evidence evidence = EvidenceOf(found, dump);
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
  record.ranks = DifferingRanks(dump.of(found.kind, found.tensor), evidence.truth, tolerance);
  if (record.ranks.empty()) {
    record.undiagnosed = "it did not diverge when it was run again";
    return record;
  }
  Rank(evidence, record);
  return record;
}

// The truth of a number, and what it would be under other hypotheses. Nothing where it is not known.
void Diagnosis::AddNumber(const std::string& quantity, const Dump& dump, size_t group, Evidence& evidence) const {
  if (quantity == kLoss && reference_) {
    evidence.truth = evidence.gradient = reference_->Loss();
    evidence.shares = reference_->LossShares();
    evidence.share_tokens = reference_->share_tokens();
    return;
  }
  const auto add = [&](const char* hypothesis, std::string what, double value) {
    evidence.changed.push_back({hypothesis, std::move(what), {value}});
  };
  if (quantity == kRate) {
    const auto lrs = ScheduledLr(spec().config, step());
    evidence.truth = {lrs[group].value};
    for (size_t other = 0; other < lrs.size(); ++other) {
      if (other != group) add("other_group_rate", "of group " + std::to_string(other), lrs[other].value);
    }
    for (int64_t other = std::max<int64_t>(0, step() - 2); other <= step() + 2; ++other) {
      if (other == step()) continue;
      add("other_step_rate", "of step " + std::to_string(other), ScheduledLr(spec().config, other)[group].value);
    }
  }
  if (quantity == kNorm) {
    const double norm = GradientNorm(dump);
    const double ranks = std::sqrt(static_cast<double>(spec().config.world_size()));
    evidence.truth = {norm};
    add("clipping_norm", "summed over ranks that hold the same", norm * ranks);
    add("clipping_norm", "averaged over ranks", norm / ranks);
    add("clipping_norm", "after clipping", norm * ClippingOf(spec().config.gradient_clipping, norm).factor);
    for (const HeldRange& range : evidence.held) {
      const double own = RankNorms(dump, spec().config.world_size())[static_cast<size_t>(range.rank)];
      add("clipping_norm", "of the shard of rank " + std::to_string(range.rank), own);
    }
  }
}

reports::DivergenceRecord Diagnosis::FinishNumber(const Dump& dump, reports::DivergenceRecord record) const {
  record.tensor.clear();
  record.ranks.clear();
  Evidence worst;
  for (const contract::StepRecord& rank : dump.records) {
    const size_t num_groups = record.quantity == kRate && rank.real ? rank.real->lr.size() : 1;
    for (size_t group = 0; group < num_groups; ++group) {
      Evidence evidence;
      evidence.is_exact = model_.is_exact();
      evidence.is_number = true;
      evidence.num_ranks = spec().config.data_degree;
      evidence.num_accumulation_steps = spec().config.accumulation_steps;
      const auto index = static_cast<int64_t>(&rank - dump.records.data());
      evidence.held = {{index, 0, 1}};
      AddNumber(record.quantity, dump, group, evidence);
      if (evidence.truth.empty() || (record.quantity != kLoss && !rank.real)) continue;
      evidence.candidate = {record.quantity == kLoss   ? rank.loss
                            : record.quantity == kRate ? rank.real->lr[group]
                                                       : rank.real->gradient_norm};
      constexpr double kRounding = 0x1p-20;  // of a sum of fp32 numbers, or of a rate computed in fp32
      if (!evidence.is_exact) evidence.noise = kRounding * std::abs(evidence.truth[0]);
      const double distance = std::abs(evidence.candidate[0] - evidence.truth[0]);
      if (distance <= evidence.noise) continue;
      if (record.ranks.empty() || record.ranks.back() != index) record.ranks.push_back(index);
      if (worst.truth.empty()) worst = std::move(evidence);
    }
  }
  if (worst.truth.empty()) {
    record.undiagnosed = "it did not diverge when it was run again";
    return record;
  }
  Rank(worst, record);
  return record;
}

void Diagnosis::Rank(const Evidence& evidence, reports::DivergenceRecord& record) {
  record.residual_limit = ResidualLimit(evidence);
  for (const RankedHypothesis& ranked : RankHypotheses(evidence)) {
    record.hypotheses.push_back({ranked.name, ranked.says, ranked.residual, ranked.fits});
  }
}

}  // namespace plumbline::conformance
