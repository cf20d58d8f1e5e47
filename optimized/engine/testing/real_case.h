// SPDX-License-Identifier: Apache-2.0
// A small case of a real family in any layout: what small_case.h is for family exact. Sizes are indivisible on purpose.
#pragma once

#include <string>
#include <vector>

#include "optimized/engine/testing/small_case.h"

namespace plumbline::optimized::testing {

struct RealOptions {
  contract::Family family = contract::Family::kGpt2;
  contract::OptimizerKind optimizer = contract::OptimizerKind::kAdamW;
  double momentum = 0.9;
  double clipping = 0.5;  // below the norms of these cases
  double dropout = 0.1;
  bool tied_head = true;        // gpt2
  int64_t kv_heads = 1;         // llama
  bool unequal_lengths = true;  // llama
  bool unused = true;
  std::vector<std::string> frozen = {};
  contract::AdaptiveClipping adaptive_clipping = {};  // of a kind: instead of `clipping`
};

// Below the norms of most units of these cases, but not of all; eps counts for some.
inline constexpr contract::AdaptiveClipping kUnitClipping{
    .kind = contract::AdaptiveClipping::Kind::kUnit, .ratio = 0.02, .eps = 0.05};

// Clips nothing in the first two steps, and norms that are about usual in later ones.
inline constexpr contract::AdaptiveClipping kHistoryClipping{
    .kind = contract::AdaptiveClipping::Kind::kHistory, .deviations = 0.25, .decay = 0.75, .warmup_steps = 2};

inline std::string Text(const RealOptions& options) {
  std::string text = std::string(contract::Name(options.optimizer)) + " momentum " + std::to_string(options.momentum) +
                     " clipping " + std::to_string(options.clipping) + " dropout " + std::to_string(options.dropout) +
                     (options.unused ? " unused" : "");
  if (options.family == contract::Family::kGpt2) text += options.tied_head ? " tied" : " not tied";
  if (options.family == contract::Family::kLlama) {
    text += " kv_heads " + std::to_string(options.kv_heads) + (options.unequal_lengths ? " unequal lengths" : "");
  }
  if (options.adaptive_clipping.kind == contract::AdaptiveClipping::Kind::kUnit) text += " by units";
  if (options.adaptive_clipping.kind == contract::AdaptiveClipping::Kind::kHistory) text += " by history";
  for (const std::string& name : options.frozen) text += " frozen " + name;
  return text;
}

// The rate differs in every step: 0.001, 0.004, 0.007, 0.01. With AdamW beta1 does too but for the last, that of the
// first: 0.6, 0.8, 0.7, 0.6.
inline contract::Schedule MakeShortCycle() {
  contract::Schedule schedule;
  schedule.kind = contract::Schedule::Kind::kOneCycle;
  schedule.cycle = {.min_lr = 0.001, .max_lr = 0.01, .first_steps = 3, .second_steps = 2, .min_momentum = 0.6};
  return schedule;
}

inline contract::ModelSpec MakeRealSpec(const RealOptions& options) {
  const contract::RealSpec sizes{.layers = 2,
                                 .width = 12,
                                 .heads = 3,
                                 .positions = 5,
                                 .hidden = 11,
                                 .vocab = 13,
                                 .dropout = options.dropout,
                                 .unused = options.unused,
                                 .frozen = options.frozen};
  if (options.family == contract::Family::kGpt2) return contract::Gpt2Spec{sizes, options.tied_head};
  return contract::LlamaSpec{sizes, options.kv_heads, /*rope_theta=*/100, options.unequal_lengths};
}

// Whether a parameter is of the second group: gpt2's biases, llama's norms.
inline bool IsInSecondGroup(const contract::CaseData& data, const contract::ParameterSpec& p) {
  return data.spec.model.kind() == contract::Family::kLlama ? p.name.find("norm") != std::string::npos
                                                            : p.name.ends_with(".bias");
}

// Family gpt2: parameters of 156 (embedding), 60, and for each of two layers 12, 12, 432, 36, 144, 12, 12, 12, 132, 11,
// 132 and 12, then 12, 12, 156 unless the head is tied, and 15 (unused) elements. Family llama: of 156, and for each
// layer 12, 144, 48 K, 48 K, 144, 12, 132, 132 and 132 with K key/value heads, then 12, 156 and 15.
inline contract::CaseData MakeRealCase(const Layout& layout, const RealOptions& options = {}) {
  contract::CaseData data = MakeCase(layout);  // its config and sizes; the model and what follows from it anew
  data.spec.id = "real_case";
  data.spec.model = MakeRealSpec(options);
  contract::RunConfig& config = data.spec.config;
  config.optimizer = options.optimizer;
  config.params = {.lr = 0.01, .weight_decay = 0.1};
  if (options.optimizer == contract::OptimizerKind::kSgd) config.params.momentum = options.momentum;
  config.groups = {{options.family == contract::Family::kGpt2 ? "*.bias" : "*norm*", 0.02, 0.0}};
  config.adaptive_clipping = options.adaptive_clipping;
  const bool is_adaptive = options.adaptive_clipping.kind != contract::AdaptiveClipping::Kind::kNone;
  config.gradient_clipping = is_adaptive ? 0 : options.clipping;
  data.parameters = contract::Parameters(data.spec.model);
  data.state.clear();
  data.real_state = contract::MakeInitialRealState(data.spec.model, config, data.spec.seed);
  contract::TokenSource text;
  text.reduce_modulo_vocab = true;
  for (int i = 0; i < 997; ++i) text.tokens.push_back(i * i % 251);
  data.batches = contract::MakeBatches(text, data.spec.model, {data.spec.seed, 0, kSteps, kBatch});
  return data;
}

}  // namespace plumbline::optimized::testing
