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
  bool decay_coupled = false;  // O3: g + lambda p in AdamW
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
  double gradient_factor = 1;     // applied after the gradient was traced
};

struct ExampleUpdate {
  contract::Case spec = ExampleRealCase();
  std::vector<contract::RealParameterState> before;
  StepSight after;
  int64_t num_updates = 6;
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
  if (engine.decay_coupled) g += decay * e.master;
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
  const bool decays = !engine.decay_coupled && decay > 0;
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
    e.moment = t + engine.t_offset == 1 ? g : Fma(engine.fused, static_cast<float>(params.momentum), e.moment, g);
    e.master = Fma(engine.fused, -lr, e.moment, e.master);
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

// Runs the engine on `before`.
inline void Execute(const Engine& engine, ExampleUpdate& update) {
  const auto& config = update.spec.config;
  update.after.real = {};
  for (const Bounded& lr : ScheduledLr(config, update.after.step)) update.after.real.lr.push_back(lr.value);
  update.after.real.gradient_norm = NormOf(update.after);
  const float clip = ClipFactor(engine, config.gradient_clipping, update.after.real.gradient_norm);
  for (contract::TensorKind kind : {contract::TensorKind::kMoment, contract::TensorKind::kSecondMoment,
                                    contract::TensorKind::kMaster, contract::TensorKind::kWeight}) {
    update.after.of(kind).assign(update.before.size(), {});
  }
  for (const auto& parameter : contract::Parameters(update.spec.model)) {
    const auto id = static_cast<size_t>(parameter.tensor_id);
    const contract::RealParameterState& before = update.before[id];
    const size_t group = GroupOf(config, parameter.name);
    contract::OptimizerParams params = config.params;
    params.lr = update.after.real.lr[engine.first_group_lr ? 0 : group];
    if (!engine.config_betas) {
      const Betas betas = ScheduledBetas(config, update.after.step);
      params.beta1 = betas.first;
      params.beta2 = betas.second;
    }
    if (group > 0) params.weight_decay = config.groups[group - 1].weight_decay.value_or(params.weight_decay);
    for (size_t i = 0; i < before.master.size(); ++i) {
      Element e{before.master[i], before.moment.empty() ? 0 : before.moment[i],
                before.second_moment.empty() ? 0 : before.second_moment[i]};
      if (!parameter.frozen && !engine.no_update) {
        const auto g =
            static_cast<float>(update.after.of(contract::TensorKind::kGradient)[id][i] * engine.gradient_factor);
        e = config.optimizer == contract::OptimizerKind::kAdamW
                ? StepAdamW(engine, params, update.num_updates + 1, e, clip * g, g)
                : StepSgd(engine, params, update.num_updates + 1, e, clip * g);
      }
      const float source = engine.stale_weight ? before.master[i] : e.master;
      float weight = source;
      if (config.storage == contract::DType::kBF16) {
        weight = engine.truncated_weight ? std::bit_cast<float>(std::bit_cast<uint32_t>(source) & 0xFFFF0000u)
                                         : ToBf16(source);
      }
      update.after.of(contract::TensorKind::kMaster)[id].push_back(e.master);
      update.after.of(contract::TensorKind::kWeight)[id].push_back(weight);
      if (!before.moment.empty()) update.after.of(contract::TensorKind::kMoment)[id].push_back(e.moment);
      if (!before.second_moment.empty())
        update.after.of(contract::TensorKind::kSecondMoment)[id].push_back(e.second_moment);
    }
  }
}

}  // namespace plumbline::conformance
