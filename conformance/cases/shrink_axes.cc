// SPDX-License-Identifier: Apache-2.0
#include "conformance/cases/shrink_axes.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <set>

#include "conformance/cases/lone_case.h"
#include "conformance/contract/error.h"
#include "conformance/contract/idle_groups.h"

namespace plumbline::conformance {
namespace {

using contract::Case;
using contract::DType;
using contract::OptimizerKind;
using contract::RunConfig;
using contract::Schedule;
using Values = std::vector<int64_t>;

// first, first + step, ... below `end`.
Values Range(int64_t first, int64_t end, int64_t step = 1) {
  Values values;
  for (int64_t value = first; value < end; value += step) values.push_back(value);
  return values;
}

Values OffIf(bool on) { return on ? Values{0} : Values{}; }

// What the batch is a multiple of.
int64_t BatchUnit(const Case& spec) {
  const int64_t parts = spec.config.data_degree * spec.config.accumulation_steps;
  return spec.model.is_exact() ? parts : std::lcm(parts, kOtherPlainMicroBatches);
}

// B = m A R holds again after A or R has changed: of as few samples less as that needs.
void FitBatch(Case& spec) {
  RunConfig& config = spec.config;
  config.train_batch_size -= config.train_batch_size % BatchUnit(spec);
  config.micro_batch_size = config.train_batch_size / (config.data_degree * config.accumulation_steps);
}

// A size that both families have.
template <int64_t contract::ExactSpec::*kExact, int64_t contract::RealSpec::*kReal>
int64_t Get(const Case& spec) {
  return spec.model.is_exact() ? spec.model.exact().*kExact : spec.model.real().*kReal;
}

template <int64_t contract::ExactSpec::*kExact, int64_t contract::RealSpec::*kReal>
void Set(Case& spec, int64_t value) {
  (spec.model.is_exact() ? spec.model.exact().*kExact : spec.model.real().*kReal) = value;
}

template <int64_t contract::ExactSpec::*kExact, int64_t contract::RealSpec::*kReal, int64_t kLeast>
ShrinkAxis ModelSize(std::string_view name) {
  return {name, Get<kExact, kReal>, [](const Case& spec) { return Range(kLeast, Get<kExact, kReal>(spec)); },
          Set<kExact, kReal>};
}

ShrinkAxis Data() {
  return {"data", [](const Case& spec) { return spec.config.data_degree; },
          [](const Case& spec) { return Range(1, spec.config.data_degree); },
          [](Case& spec, int64_t value) {
            spec.config.data_degree = value;
            FitBatch(spec);
          }};
}

ShrinkAxis Zero() {
  return {"zero", [](const Case& spec) { return spec.config.zero_stage; },
          [](const Case& spec) { return Range(0, spec.config.zero_stage); },
          [](Case& spec, int64_t value) { spec.config.zero_stage = value; }};
}

bool HasLayerStages(const Case& spec) { return !spec.config.layer_stages.empty(); }
void WithoutLayerStages(Case& spec) { spec.config.layer_stages.clear(); }

ShrinkAxis Accumulation() {
  return {"accumulation", [](const Case& spec) { return spec.config.accumulation_steps; },
          [](const Case& spec) { return Range(1, spec.config.accumulation_steps); },
          [](Case& spec, int64_t value) {
            spec.config.accumulation_steps = value;
            FitBatch(spec);
          }};
}

// A limit that counts as a feature while it is not the default.
template <int64_t RunConfig::*kField>
ShrinkAxis Limit(std::string_view name) {
  return {name,
          [](const Case& spec) { return static_cast<int64_t>(spec.config.*kField != RunConfig{}.*kField); },
          [](const Case& spec) { return OffIf(spec.config.*kField != RunConfig{}.*kField); },
          [](Case& spec, int64_t) { spec.config.*kField = RunConfig{}.*kField; },
          "default",
          "set"};
}

ShrinkAxis Overlap() {
  return {"overlap",
          [](const Case& spec) { return static_cast<int64_t>(spec.config.overlap_comm); },
          [](const Case& spec) { return OffIf(spec.config.overlap_comm); },
          [](Case& spec, int64_t) { spec.config.overlap_comm = false; },
          "off",
          "on"};
}

// Fewer of them: the last ones go first.
ShrinkAxis HintsAxis() {
  return {"hints", [](const Case& spec) { return static_cast<int64_t>(spec.config.hints.size()); },
          [](const Case& spec) { return Range(0, static_cast<int64_t>(spec.config.hints.size())); },
          [](Case& spec, int64_t value) {
            contract::Hints& hints = spec.config.hints;
            while (static_cast<int64_t>(hints.size()) > value) hints.erase(std::prev(hints.end()));
          }};
}

template <DType kStorage>
ShrinkAxis Storage(std::string_view name) {
  return {"storage",
          [](const Case& spec) { return static_cast<int64_t>(spec.config.storage == kStorage); },
          [](const Case& spec) { return OffIf(spec.config.storage == kStorage); },
          [](Case& spec, int64_t) {
            spec.config.storage = DType::kF32;
            spec.config.loss_scale = 1;
            spec.config.dynamic_loss_scale = {};
          },
          "fp32",
          name};
}

ShrinkAxis Steps() {
  return {"steps", [](const Case& spec) { return spec.steps; }, [](const Case& spec) { return Range(1, spec.steps); },
          [](Case& spec, int64_t value) { spec.steps = value; }};
}

// Of a real family: frozen names of parameters that no longer exist go, and groups that no parameter belongs to.
void DropWhatFitsNothing(Case& spec) {
  const std::vector<contract::ParameterSpec> parameters = contract::Parameters(spec.model);
  std::set<std::string> names;
  for (const contract::ParameterSpec& parameter : parameters) names.insert(parameter.name);
  std::erase_if(spec.model.real().frozen, [&](const std::string& name) { return !names.contains(name); });
  std::vector<size_t> idle = contract::IdleGroups(spec.config.groups, parameters);
  for (; !idle.empty(); idle.pop_back()) {
    spec.config.groups.erase(spec.config.groups.begin() + static_cast<ptrdiff_t>(idle.back()));
  }
}

ShrinkAxis Layers() {
  ShrinkAxis axis = ModelSize<&contract::ExactSpec::layers, &contract::RealSpec::layers, 1>("layers");
  axis.set = [](Case& spec, int64_t value) {
    Set<&contract::ExactSpec::layers, &contract::RealSpec::layers>(spec, value);
    if (HasLayerStages(spec)) spec.config.layer_stages.resize(static_cast<size_t>(value));
    if (!spec.model.is_exact()) DropWhatFitsNothing(spec);
  };
  return axis;
}

// Query heads for each key/value head.
int64_t Grouping(const Case& spec) { return spec.model.heads() / spec.model.kv_heads(); }

void SetKvHeads(Case& spec, int64_t kv_heads) {
  if (spec.model.is_exact()) spec.model.exact().kv_heads = kv_heads;
  if (spec.model.kind() == contract::Family::kLlama) spec.model.llama().kv_heads = kv_heads;
}

// So many heads, with the grouping that there is or, where that does not divide them, the next smaller one.
void SetHeads(Case& spec, int64_t heads) {
  int64_t grouping = Grouping(spec);
  Set<&contract::ExactSpec::heads, &contract::RealSpec::heads>(spec, heads);
  while (heads % grouping != 0) --grouping;
  SetKvHeads(spec, heads / grouping);
}

ShrinkAxis Heads() {
  ShrinkAxis axis = ModelSize<&contract::ExactSpec::heads, &contract::RealSpec::heads, 1>("heads");
  axis.set = SetHeads;
  return axis;
}

ShrinkAxis GroupedHeads() {
  return {"heads that share keys", Grouping,
          [](const Case& spec) {
            Values values = Range(1, Grouping(spec));
            std::erase_if(values, [&](int64_t value) { return spec.model.heads() % value != 0; });
            return values;
          },
          [](Case& spec, int64_t value) { SetKvHeads(spec, spec.model.heads() / value); }};
}

// A row of one channel has no variance: gpt2's norms give zero and llama's a sign, and nothing is learned.
ShrinkAxis Width() {
  ShrinkAxis axis = ModelSize<&contract::ExactSpec::width, &contract::RealSpec::width, 1>("width");
  axis.smaller = [](const Case& spec) {
    const int64_t heads = spec.model.heads();
    const int64_t least = !spec.model.is_exact() && heads == 1 ? 2 : heads;
    return Range(least, Get<&contract::ExactSpec::width, &contract::RealSpec::width>(spec), heads);
  };
  return axis;
}

ShrinkAxis Batch() {
  return {"batch", [](const Case& spec) { return spec.config.train_batch_size; },
          [](const Case& spec) { return Range(BatchUnit(spec), spec.config.train_batch_size, BatchUnit(spec)); },
          [](Case& spec, int64_t value) {
            spec.config.train_batch_size = value;
            FitBatch(spec);
          }};
}

// Family exact: bounds beyond what narrow types hold.
bool HasWideBounds(const Case& spec) { return spec.model.is_exact() && spec.model.exact().weight_bound > 1; }

ShrinkAxis Bounds() {
  return {"bounds",
          [](const Case& spec) { return static_cast<int64_t>(HasWideBounds(spec)); },
          [](const Case& spec) { return OffIf(HasWideBounds(spec)); },
          [](Case& spec, int64_t) {
            spec.model.exact().weight_bound = 1;
            spec.model.exact().fold_bound = 2;
            spec.model.exact().gradient_fold_bound = 10;  // as in exact_cases.cc
          },
          "narrow",
          "wide"};
}

ShrinkAxis Dropout() {
  return {"dropout",
          [](const Case& spec) { return static_cast<int64_t>(spec.model.has_dropout()); },
          [](const Case& spec) { return OffIf(spec.model.has_dropout()); },
          [](Case& spec, int64_t) {
            if (spec.model.is_exact()) {
              spec.model.exact().dropout = false;
            } else {
              spec.model.real().dropout = 0;
            }
          },
          "off",
          "on"};
}

ShrinkAxis Frozen() {
  return {"frozen parameters",
          [](const Case& spec) {
            return spec.model.is_exact() ? 0 : static_cast<int64_t>(spec.model.real().frozen.size());
          },
          [](const Case& spec) {
            return spec.model.is_exact() ? Values{} : Range(0, static_cast<int64_t>(spec.model.real().frozen.size()));
          },
          [](Case& spec, int64_t value) { spec.model.real().frozen.resize(static_cast<size_t>(value)); }};
}

template <bool (*kIsOn)(const Case&), void (*kTurnOff)(Case&)>
ShrinkAxis Flag(std::string_view name) {
  return {name,
          [](const Case& spec) { return static_cast<int64_t>(kIsOn(spec)); },
          [](const Case& spec) { return OffIf(kIsOn(spec)); },
          [](Case& spec, int64_t) { kTurnOff(spec); },
          "off",
          "on"};
}

bool HasUnused(const Case& spec) { return !spec.model.is_exact() && spec.model.real().unused; }
void WithoutUnused(Case& spec) {
  spec.model.real().unused = false;
  DropWhatFitsNothing(spec);
}

bool HasTiedHead(const Case& spec) { return spec.model.has_tied_head(); }
void UntieHead(Case& spec) { spec.model.gpt2().tied_head = false; }

bool HasUnequalLengths(const Case& spec) { return spec.model.has_unequal_lengths(); }
void MakeLengthsEqual(Case& spec) { spec.model.llama().unequal_lengths = false; }

ShrinkAxis Groups() {
  return {"groups", [](const Case& spec) { return static_cast<int64_t>(spec.config.groups.size()); },
          [](const Case& spec) { return Range(0, static_cast<int64_t>(spec.config.groups.size())); },
          [](Case& spec, int64_t value) { spec.config.groups.resize(static_cast<size_t>(value)); }};
}

bool Clips(const Case& spec) {
  return spec.config.gradient_clipping > 0 ||
         spec.config.adaptive_clipping.kind != contract::AdaptiveClipping::Kind::kNone;
}

ShrinkAxis Clipping() {
  return {"clipping",
          [](const Case& spec) { return static_cast<int64_t>(Clips(spec)); },
          [](const Case& spec) { return OffIf(Clips(spec)); },
          [](Case& spec, int64_t) {
            spec.config.gradient_clipping = 0;
            spec.config.adaptive_clipping = {};
          },
          "off",
          "on"};
}

ShrinkAxis LearningRateSchedule() {
  return {"schedule",
          [](const Case& spec) { return static_cast<int64_t>(spec.config.schedule.kind != Schedule::Kind::kConstant); },
          [](const Case& spec) { return OffIf(spec.config.schedule.kind != Schedule::Kind::kConstant); },
          [](Case& spec, int64_t) { spec.config.schedule = Schedule{}; },
          "constant",
          "set"};
}

ShrinkAxis WeightDecay() {
  return {"weight decay",
          [](const Case& spec) { return static_cast<int64_t>(spec.config.params.weight_decay > 0); },
          [](const Case& spec) { return OffIf(spec.config.params.weight_decay > 0); },
          [](Case& spec, int64_t) { spec.config.params.weight_decay = 0; },
          "off",
          "on"};
}

bool HasMomentumOfSgd(const Case& spec) {
  return spec.config.optimizer == OptimizerKind::kModularMomentum ||
         (spec.config.optimizer == OptimizerKind::kSgd && spec.config.params.momentum > 0);
}

ShrinkAxis Momentum() {
  return {"momentum",
          [](const Case& spec) { return static_cast<int64_t>(HasMomentumOfSgd(spec)); },
          [](const Case& spec) { return OffIf(HasMomentumOfSgd(spec)); },
          [](Case& spec, int64_t) {
            if (spec.model.is_exact()) {
              spec.config.optimizer = OptimizerKind::kModularSgd;
            } else {
              spec.config.params.momentum = 0;
              spec.config.params.nesterov = false;
            }
          },
          "off",
          "on"};
}

// One of the contract, and one that can be judged.
bool IsValid(const Case& spec) {
  const RunConfig& config = spec.config;
  if (config.train_batch_size != config.micro_batch_size * config.accumulation_steps * config.data_degree) return false;
  try {
    return contract::ParseCase(contract::ToJson(spec), "") == spec && !WhyNotJudgeable(spec);
  } catch (const contract::Error&) {
    return false;
  }
}

std::string Shown(const ShrinkAxis& axis, int64_t value) {
  return axis.off.empty() ? std::to_string(value) : std::string(value == 0 ? axis.off : axis.on);
}

}  // namespace

const std::vector<ShrinkAxis>& ShrinkAxes() {
  static const std::vector<ShrinkAxis> axes = {
      Data(),
      Zero(),
      Flag<HasLayerStages, WithoutLayerStages>("layers' own stages"),
      Accumulation(),
      Limit<&RunConfig::reduce_bucket_elems>("bucket"),
      Overlap(),
      Limit<&RunConfig::prefetch_bucket_elems>("prefetch"),
      Limit<&RunConfig::persistence_threshold_elems>("persistence"),
      Limit<&RunConfig::max_live_elems>("live parameters"),
      HintsAxis(),
      Storage<DType::kBF16>("bf16"),
      Storage<DType::kF16>("fp16"),
      Steps(),
      Layers(),
      GroupedHeads(),
      Heads(),
      Width(),
      ModelSize<&contract::ExactSpec::hidden, &contract::RealSpec::hidden, 1>("hidden"),
      Batch(),  // before the positions: two long samples are less than six short ones
      ModelSize<&contract::ExactSpec::positions, &contract::RealSpec::positions, 1>("positions"),
      ModelSize<&contract::ExactSpec::vocab, &contract::RealSpec::vocab, 2>("vocabulary"),
      Bounds(),
      Dropout(),
      Frozen(),
      Flag<HasUnused, WithoutUnused>("unused parameter"),
      Flag<HasTiedHead, UntieHead>("tied head"),
      Flag<HasUnequalLengths, MakeLengthsEqual>("unequal lengths"),
      Groups(),
      Clipping(),
      LearningRateSchedule(),
      WeightDecay(),
      Momentum(),
  };
  return axes;
}

std::optional<Case> WithValue(const Case& spec, const ShrinkAxis& axis, int64_t value) {
  Case smaller = spec;
  axis.set(smaller, value);
  if (!IsValid(smaller)) return std::nullopt;
  return smaller;
}

std::vector<int64_t> SmallerValues(const Case& spec, const ShrinkAxis& axis) {
  std::vector<int64_t> values = axis.smaller(spec);
  std::erase_if(values, [&](int64_t value) { return !WithValue(spec, axis, value); });
  return values;
}

std::optional<Case> AtLeast(const Case& spec, const ShrinkAxis& axis) {
  for (int64_t value : axis.smaller(spec)) {
    if (std::optional<Case> least = WithValue(spec, axis, value)) return least;
  }
  return std::nullopt;
}

bool IsSmaller(const Case& a, const Case& b) {
  bool less = false;
  for (const ShrinkAxis& axis : ShrinkAxes()) {
    if (axis.size(a) > axis.size(b)) return false;
    less |= axis.size(a) < axis.size(b);
  }
  return less;
}

std::string Reductions(const Case& from, const Case& to) {
  std::string text;
  for (const ShrinkAxis& axis : ShrinkAxes()) {
    const int64_t before = axis.size(from);
    const int64_t after = axis.size(to);
    if (before == after) continue;
    text +=
        (text.empty() ? "" : ", ") + std::string(axis.name) + " " + Shown(axis, before) + " → " + Shown(axis, after);
  }
  return text;
}

}  // namespace plumbline::conformance
