// SPDX-License-Identifier: Apache-2.0
// Updates of the optimizers written a second time, in fp32, in the orders of evaluation that engines use, and with
// single mistakes that can be turned on. For tests of the oracle; nothing here is taken from an engine or from
// update_formula.cc, except for which group a parameter is in, its lr and its betas, which have tests of their own.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

#include "conformance/contract/case_file.h"
#include "conformance/oracle/real_start.h"
#include "conformance/oracle/schedule_formula.h"
#include "conformance/oracle/step_sight.h"
#include "conformance/oracle/testing/example_step.h"
#include "conformance/oracle/update_formula.h"

namespace plumbline::conformance {

inline float ToBf16(float value) {
  // Nearest, ties to even, by comparing with both neighbours.
  const float low = std::bit_cast<float>(std::bit_cast<uint32_t>(value) & 0xFFFF0000u);
  const float high = std::bit_cast<float>((std::bit_cast<uint32_t>(value) & 0xFFFF0000u) + 0x10000u);
  const double below = std::abs(static_cast<double>(value) - low);
  const double above = std::abs(static_cast<double>(high) - value);
  if (below != above) return below < above ? low : high;
  return (std::bit_cast<uint32_t>(low) & 0x10000u) == 0 ? low : high;
}

// One engine's way to update, mistakes included. Everything is in fp32 unless it says otherwise.
struct Engine {
  bool lerp = false;             // m + (1 - beta)(g - m)
  bool fused = false;            // fused multiply-add
  bool wide = false;             // scalars (beta, corrections, lr) in fp64
  bool decay_with_step = false;  // p - lr (lambda p + step)
  bool step_size = false;        // lr / (1 - beta1^t) as one number, sqrt(v) / sqrt(1 - beta2^t)
  bool powers_by_product = false;
  // Mistakes.
  int64_t t_offset = 0;        // O1
  bool eps_inside = false;     // O2
  bool decay_form = false;  // O3: g + lambda p in AdamW
  bool no_decay = false;
  bool no_first_correction = false;   // O4
  bool no_second_correction = false;  // O4
  bool lr_is_beta = false;            // O5
  bool clip_max = false;              // N1: the factor is max(1, c / norm)
  bool no_clip = false;               // N2
  bool always_clip = false;           // as if the threshold were crossed
  bool stale_weight = false;          // P6
  bool no_update = false;             // P7
  bool first_group_lr = false;        // S2
  bool config_betas = false;          // a cycle that moves no betas
  bool moment_from_unclipped = false;
  bool truncated_weight = false;  // bf16 by cutting bits
  bool decay_decoupled = false;   // in Adam
  bool optimizer_betas = false;   // those of groups are not looked at
  bool no_nesterov = false;
  bool swapped_betas = false;  // Lion's
  bool no_ratio = false;       // LAMB without norms
  bool ratio_of_part = false;  // norms of the first half of a tensor
  bool no_ratio_limits = false;
  bool no_direction_decay = false;  // u without lambda p
  bool exempt_is_clipped = false;
  bool exempt_in_norm = false;
  bool whole_units = false;  // one unit a tensor
  bool transposed_units = false;
  bool no_unit_epsilon = false;
  bool threshold_after_update = false;  // of a history that holds this norm
  bool history_of_unclipped = false;
  bool history_stays = false;
  double gradient_factor = 1;  // applied after the gradient was traced
};

struct ExampleUpdate {
  contract::Case spec = ExampleRealCase();
  std::vector<contract::RealParameterState> before;
  StepSight after;
  int64_t num_updates = 6;
  contract::NormHistory norm_history = {};

  RealStart start() const { return {before, num_updates, norm_history}; }
};

inline float Fma(bool fused, float a, float b, float c) { return fused ? std::fma(a, b, c) : a * b + c; }

inline float Power(const Engine& engine, double beta, int64_t t) {
  if (engine.wide) return static_cast<float>(std::pow(beta, static_cast<double>(t)));
  float power = 1;
  if (!engine.powers_by_product) return std::pow(static_cast<float>(beta), static_cast<float>(t));
  for (int64_t i = 0; i < t; ++i) power *= static_cast<float>(beta);
  return power;
}

inline float OneMinus(const Engine& engine, double beta) {
  return engine.wide ? static_cast<float>(1 - beta) : 1.0f - static_cast<float>(beta);
}

inline float Average(const Engine& engine, double beta, float old, float fresh) {
  const float rest = OneMinus(engine, beta);
  if (engine.lerp) return Fma(engine.fused, rest, fresh - old, old);
  return Fma(engine.fused, static_cast<float>(beta), old, rest * fresh);
}

struct Element {
  float master = 0;
  float moment = 0;
  float second_moment = 0;
};

inline Element StepAdamW(const Engine& engine, const contract::OptimizerParams& params, int64_t t, Element e,
                         float clipped, float unclipped) {
  const float lr = static_cast<float>(engine.lr_is_beta ? params.beta1 : params.lr);
  const float decay = engine.no_decay ? 0 : static_cast<float>(params.weight_decay);
  float g = clipped;
  if (engine.decay_form) g += decay * e.master;
  e.moment = Average(engine, params.beta1, e.moment, engine.moment_from_unclipped ? unclipped : g);
  e.second_moment = engine.lerp ? Average(engine, params.beta2, e.second_moment, g * g)
                                : Fma(engine.fused, OneMinus(engine, params.beta2) * g, g,
                                      static_cast<float>(params.beta2) * e.second_moment);
  const float first = engine.no_first_correction ? 1 : 1.0f - Power(engine, params.beta1, t + engine.t_offset);
  const float second = engine.no_second_correction ? 1 : 1.0f - Power(engine, params.beta2, t + engine.t_offset);
  const float eps = static_cast<float>(params.eps);
  float root = engine.step_size ? std::sqrt(e.second_moment) / std::sqrt(second)
                                : std::sqrt(e.second_moment / second + (engine.eps_inside ? eps : 0));
  if (!engine.eps_inside || engine.step_size) root += eps;
  const float direction = engine.step_size ? e.moment / root : (e.moment / first) / root;
  const float size = engine.step_size ? lr / first : lr;
  const bool decays = !engine.decay_form && decay > 0;
  if (engine.decay_with_step) {
    const float joined =
        Fma(engine.fused, decays ? decay : 0, e.master, engine.step_size ? size / lr * direction : direction);
    e.master = Fma(engine.fused, -lr, joined, e.master);
    return e;
  }
  if (decays) e.master *= 1.0f - lr * decay;
  e.master = Fma(engine.fused, -size, direction, e.master);
  return e;
}

inline Element StepSgd(const Engine& engine, const contract::OptimizerParams& params, int64_t t, Element e,
                       float clipped) {
  const float lr = static_cast<float>(params.lr);
  const float decay = engine.no_decay ? 0 : static_cast<float>(params.weight_decay);
  const float g = Fma(engine.fused, decay, e.master, clipped);
  if (params.momentum > 0) {
    const auto momentum = static_cast<float>(params.momentum);
    e.moment = t + engine.t_offset == 1 ? g : Fma(engine.fused, momentum, e.moment, g);
    const bool ahead = params.nesterov && !engine.no_nesterov;
    e.master = Fma(engine.fused, -lr, ahead ? Fma(engine.fused, momentum, e.moment, g) : e.moment, e.master);
  } else if (engine.decay_with_step) {
    e.master = Fma(engine.fused, -lr, clipped, e.master * (1.0f - lr * decay));
  } else {
    e.master = Fma(engine.fused, -lr, g, e.master);
  }
  return e;
}

inline float ClipFactor(const Engine& engine, double threshold, double norm) {
  if (threshold == 0 || engine.no_clip) return 1;
  const float factor = static_cast<float>(threshold) / (static_cast<float>(norm) + 1e-6f);
  if (engine.always_clip) return factor;
  return engine.clip_max ? std::max(1.0f, factor) : std::min(1.0f, factor);
}

inline Element StepLion(const Engine& engine, const contract::OptimizerParams& params, Element e, float clipped) {
  const float lr = static_cast<float>(params.lr);
  const float decay = engine.no_decay ? 0 : static_cast<float>(params.weight_decay);
  const double of_sign = engine.swapped_betas ? params.beta2 : params.beta1;
  const double of_moment = engine.swapped_betas ? params.beta1 : params.beta2;
  const float argument = Average(engine, of_sign, e.moment, clipped);
  const float sign = argument > 0 ? 1 : argument < 0 ? -1 : 0;
  if (engine.decay_with_step) {
    e.master = Fma(engine.fused, -lr, Fma(engine.fused, decay, e.master, sign), e.master);
  } else {
    e.master = Fma(engine.fused, -lr, sign, e.master * (1.0f - lr * decay));
  }
  e.moment = Average(engine, of_moment, e.moment, clipped);
  return e;
}

// u of an element whose moments are those after the update.
inline float LambDirectionOf(const Engine& engine, const contract::OptimizerParams& params, int64_t t,
                             const Element& e) {
  const float first = 1.0f - Power(engine, params.beta1, t + engine.t_offset);
  const float second = 1.0f - Power(engine, params.beta2, t + engine.t_offset);
  const float decay = engine.no_direction_decay ? 0 : static_cast<float>(params.weight_decay);
  const float root = std::sqrt(e.second_moment / second) + static_cast<float>(params.eps);
  return Fma(engine.fused, decay, e.master, e.moment / first / root);
}

inline void StepLamb(const Engine& engine, const contract::OptimizerParams& params, int64_t t,
                     std::vector<Element>& elements, const std::vector<float>& clipped) {
  std::vector<float> directions;
  float weights = 0, updates = 0;
  for (size_t i = 0; i < elements.size(); ++i) {
    Element& e = elements[i];
    e.moment = Average(engine, params.beta1, e.moment, clipped[i]);
    e.second_moment = Average(engine, params.beta2, e.second_moment, clipped[i] * clipped[i]);
    directions.push_back(LambDirectionOf(engine, params, t, e));
    if (engine.ratio_of_part && i >= (elements.size() + 1) / 2) continue;
    weights += e.master * e.master;
    updates += directions.back() * directions.back();
  }
  float ratio = 1;
  if (weights > 0 && updates > 0 && !engine.no_ratio) {
    ratio = std::sqrt(weights) / std::sqrt(updates);
    if (!engine.no_ratio_limits) {
      ratio = std::clamp(ratio, static_cast<float>(params.min_coeff), static_cast<float>(params.max_coeff));
    }
  }
  for (size_t i = 0; i < elements.size(); ++i) {
    const float size = static_cast<float>(params.lr) * ratio;
    elements[i].master = Fma(engine.fused, -size, directions[i], elements[i].master);
  }
}

// What each element's gradient is multiplied by under clipping by units.
inline std::vector<float> UnitFactors(const Engine& engine, const contract::AdaptiveClipping& rule,
                                      const contract::ParameterSpec& parameter, const std::vector<double>& gradient,
                                      const std::vector<float>& master) {
  const auto unit_of = [&](size_t i) -> size_t {
    const auto cols = static_cast<size_t>(parameter.cols);
    if (engine.whole_units || parameter.is_vector) return 0;
    const bool by_rows = (parameter.units == contract::UnitShape::kRows) != engine.transposed_units;
    return by_rows ? i / cols : i % cols;
  };
  std::vector<float> gradients(gradient.size(), 0), weights(gradient.size(), 0), factors;
  for (size_t i = 0; i < gradient.size(); ++i) {
    const auto g = static_cast<float>(gradient[i]);
    gradients[unit_of(i)] += g * g;
    weights[unit_of(i)] += master[i] * master[i];
  }
  for (size_t i = 0; i < gradient.size(); ++i) {
    const float norm = std::sqrt(gradients[unit_of(i)]);
    const float floor = engine.no_unit_epsilon ? 0 : static_cast<float>(rule.eps);
    const float allowed = static_cast<float>(rule.ratio) * std::max(std::sqrt(weights[unit_of(i)]), floor);
    factors.push_back(norm > allowed ? allowed / norm : 1);
  }
  return factors;
}

// The history after a norm, and what the gradient is multiplied by.
inline float StepHistory(const Engine& engine, const contract::AdaptiveClipping& rule, double norm,
                         contract::NormHistory& history) {
  const auto threshold_of = [&] { return history.mean + rule.deviations * std::sqrt(history.variance); };
  const bool warm = history.count >= rule.warmup_steps;
  double threshold = warm ? threshold_of() : norm;
  const double counted = engine.history_of_unclipped ? norm : std::min(norm, threshold);
  if (!engine.history_stays) {
    const double n = static_cast<double>(history.count);
    const double old_mean = history.mean;
    if (warm) {
      history.mean = rule.decay * old_mean + (1 - rule.decay) * counted;
      history.variance =
          rule.decay * history.variance + (1 - rule.decay) * (counted - history.mean) * (counted - history.mean);
    } else {
      history.mean += (counted - old_mean) / (n + 1);
      history.variance = (n * history.variance + (counted - old_mean) * (counted - history.mean)) / (n + 1);
    }
    ++history.count;
  }
  if (warm && engine.threshold_after_update) threshold = threshold_of();
  return warm ? ClipFactor(engine, threshold, norm) : 1;
}

// The state before: masters like initial weights, moments like those of some steps. Gradients are floats.
inline void MakeBefore(ExampleUpdate& update, uint64_t seed) {
  ExampleNumbers numbers(seed);
  update.after = ExampleTruth(seed)[3];
  update.after.storage = update.spec.config.storage;
  for (const auto& parameter : contract::Parameters(update.spec.model)) {
    const auto id = static_cast<size_t>(parameter.tensor_id);
    contract::RealParameterState& state = update.before.emplace_back();
    const float mean = parameter.is_vector && parameter.name.ends_with("weight") ? 1 : 0;
    for (int64_t i = 0; i < parameter.numel(); ++i)
      state.master.push_back(mean + static_cast<float>(0.05 * numbers.Normal()));
    for (double& g : update.after.of(contract::TensorKind::kGradient)[id]) g = static_cast<float>(g);
    if (parameter.frozen) continue;
    for (double g : update.after.of(contract::TensorKind::kGradient)[id]) {
      if (contract::HasMoment(update.spec.config)) {
        state.moment.push_back(update.num_updates == 0 ? 0 : static_cast<float>(g * numbers.Normal()));
      }
      if (contract::HasSecondMoment(update.spec.config)) {
        state.second_moment.push_back(update.num_updates == 0 ? 0
                                                              : static_cast<float>(0.01 * g * g * numbers.Uniform()));
      }
    }
  }
}

inline double NormOf(const StepSight& sight) {
  double squares = 0;
  for (const auto& tensor : sight.of(contract::TensorKind::kGradient)) {
    for (double value : tensor) squares += value * value;
  }
  return std::sqrt(squares);
}

inline bool IsExemptOf(const contract::RunConfig& config, const contract::ParameterSpec& parameter) {
  const size_t group = GroupOf(config, parameter.name);
  return group > 0 && !config.groups[group - 1].clip;
}

// Of what is not exempt.
inline double ClippedNormOf(const Engine& engine, const ExampleUpdate& update) {
  StepSight seen = update.after;
  for (const auto& parameter : contract::Parameters(update.spec.model)) {
    if (engine.exempt_in_norm || !IsExemptOf(update.spec.config, parameter)) continue;
    seen.of(contract::TensorKind::kGradient)[static_cast<size_t>(parameter.tensor_id)].clear();
  }
  return NormOf(seen);
}

// Numbers of a parameter's group in this step.
inline contract::OptimizerParams ParamsOf(const Engine& engine, const ExampleUpdate& update, size_t group) {
  const contract::RunConfig& config = update.spec.config;
  contract::OptimizerParams params = config.params;
  params.lr = update.after.real.lr[engine.first_group_lr ? 0 : group];
  if (!engine.config_betas) {
    const Betas betas = ScheduledBetas(config, engine.optimizer_betas ? 0 : group, update.after.step);
    params.beta1 = betas.first;
    params.beta2 = betas.second;
  }
  if (group > 0) params.weight_decay = config.groups[group - 1].weight_decay.value_or(params.weight_decay);
  return params;
}

inline void StepTensor(Engine engine, const contract::RunConfig& config, const contract::OptimizerParams& params,
                       int64_t t, std::vector<Element>& elements, const std::vector<float>& clipped,
                       const std::vector<float>& unclipped) {
  using contract::OptimizerKind;
  if (config.optimizer == OptimizerKind::kLamb) return StepLamb(engine, params, t, elements, clipped);
  if (config.optimizer == OptimizerKind::kAdam) engine.decay_form = !engine.decay_decoupled;
  for (size_t i = 0; i < elements.size(); ++i) {
    Element& e = elements[i];
    if (config.optimizer == OptimizerKind::kSgd) {
      e = StepSgd(engine, params, t, e, clipped[i]);
    } else if (config.optimizer == OptimizerKind::kLion) {
      e = StepLion(engine, params, e, clipped[i]);
    } else {
      e = StepAdamW(engine, params, t, e, clipped[i], unclipped[i]);
    }
  }
}

// Runs the engine on `before`.
inline void Execute(const Engine& engine, ExampleUpdate& update) {
  using contract::TensorKind;
  const auto& config = update.spec.config;
  StepSight& after = update.after;
  after.real = {};
  for (const Bounded& lr : ScheduledLr(config, after.step)) after.real.lr.push_back(lr.value);
  after.real.gradient_norm = ClippedNormOf(engine, update);
  float clip = ClipFactor(engine, config.gradient_clipping, after.real.gradient_norm);
  if (contract::HasNormHistory(config)) {
    after.real.norm_history = update.norm_history;
    clip = StepHistory(engine, config.adaptive_clipping, after.real.gradient_norm, *after.real.norm_history);
  }
  for (TensorKind kind : {TensorKind::kMoment, TensorKind::kSecondMoment, TensorKind::kMaster, TensorKind::kWeight}) {
    after.of(kind).assign(update.before.size(), {});
  }
  for (const auto& parameter : contract::Parameters(update.spec.model)) {
    const auto id = static_cast<size_t>(parameter.tensor_id);
    const contract::RealParameterState& before = update.before[id];
    const bool is_clipped = engine.exempt_is_clipped || !IsExemptOf(config, parameter);
    std::vector<Element> elements;
    for (size_t i = 0; i < before.master.size(); ++i) {
      elements.push_back({before.master[i], before.moment.empty() ? 0 : before.moment[i],
                          before.second_moment.empty() ? 0 : before.second_moment[i]});
    }
    if (!parameter.frozen && !engine.no_update) {
      const std::vector<double>& gradient = after.of(TensorKind::kGradient)[id];
      std::vector<float> factors(gradient.size(), is_clipped ? clip : 1);
      if (config.adaptive_clipping.kind == contract::AdaptiveClipping::Kind::kUnit && is_clipped) {
        factors = UnitFactors(engine, config.adaptive_clipping, parameter, gradient, before.master);
      }
      std::vector<float> unclipped, clipped;
      for (size_t i = 0; i < gradient.size(); ++i) {
        unclipped.push_back(static_cast<float>(gradient[i] * engine.gradient_factor));
        clipped.push_back(factors[i] * unclipped.back());
      }
      StepTensor(engine, config, ParamsOf(engine, update, GroupOf(config, parameter.name)), update.num_updates + 1,
                 elements, clipped, unclipped);
    }
    for (size_t i = 0; i < before.master.size(); ++i) {
      const Element& e = elements[i];
      const float source = engine.stale_weight ? before.master[i] : e.master;
      float weight = source;
      if (config.storage == contract::DType::kBF16) {
        weight = engine.truncated_weight ? std::bit_cast<float>(std::bit_cast<uint32_t>(source) & 0xFFFF0000u)
                                         : ToBf16(source);
      }
      after.of(TensorKind::kMaster)[id].push_back(e.master);
      after.of(TensorKind::kWeight)[id].push_back(weight);
      if (!before.moment.empty()) after.of(TensorKind::kMoment)[id].push_back(e.moment);
      if (!before.second_moment.empty()) after.of(TensorKind::kSecondMoment)[id].push_back(e.second_moment);
    }
  }
}

}  // namespace plumbline::conformance
