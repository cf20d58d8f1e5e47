// SPDX-License-Identifier: Apache-2.0
#include "conformance/cases/lone_case.h"

#include <cmath>
#include <string_view>

#include "conformance/contract/batch_source.h"
#include "conformance/contract/strict_json.h"

namespace plumbline::conformance {
namespace {

using contract::DType;

constexpr size_t kMaxIdBytes = 200;

std::string ShownId(const std::string& id) {
  constexpr size_t kMaxShownBytes = 60;
  return contract::JsonQuote(id.substr(0, kMaxShownBytes)) + (id.size() > kMaxShownBytes ? "..." : "");
}

// Folders of results are named after it.
bool IsGoodId(const std::string& id, std::string_view family) {
  constexpr std::string_view kAllowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-/";
  return id.size() <= kMaxIdBytes && id.starts_with(std::string(family) + "/") &&
         id.find_first_not_of(kAllowed) == std::string::npos;
}

std::optional<std::string> WhyNoWholeRun(const contract::Case& spec) {
  if (spec.first_step != 0) return "first_step is " + std::to_string(spec.first_step) + "; allowed: 0";
  if (spec.resume) return "resume is true; allowed: false";
  if (spec.perturbation) return "perturbation is there; allowed: none";
  if (!spec.dump_steps.empty()) return "dump_steps is not empty; allowed: []";
  if (!spec.save_steps.empty()) return "save_steps is not empty; allowed: []";
  if (spec.phase_marks) return "phase_marks is true; allowed: false";
  return std::nullopt;
}

constexpr double kMost = 1 << 22;

std::string TooLarge(const std::string& field, double size, const std::string& what) {
  return field + " is too large: " + std::to_string(std::llround(size)) + " " + what + "; allowed: at most " +
         std::to_string(std::llround(kMost));
}

// Elements of the larger of what a step computes in and what is trained, and tokens of all steps; in double, since they
// may be beyond int64. The truth is computed by plain loops in fp64, in this process' own memory.
std::optional<std::string> WhyTooLarge(const contract::Case& spec) {
  double parameters = 0;
  for (const contract::ParameterSpec& parameter : contract::Parameters(spec.model)) {
    parameters += static_cast<double>(parameter.numel());
  }
  const auto width_sum = [](const auto& m) {
    return static_cast<double>(m.layers) * (8.0 * m.width + 2.0 * m.hidden + 1.0 * m.heads * m.positions) +
           1.0 * m.vocab;
  };
  const double per_token = spec.model.is_exact() ? width_sum(spec.model.exact()) : width_sum(spec.model.real());
  const double tokens = static_cast<double>(spec.config.train_batch_size) * static_cast<double>(spec.model.positions());
  if (parameters > kMost) return TooLarge("model", parameters, "elements of parameters");
  if (tokens * per_token > kMost) return TooLarge("config.train_batch_size", tokens * per_token, "elements in a step");
  const double all_tokens = tokens * static_cast<double>(spec.steps);
  if (all_tokens > kMost) return TooLarge("steps", all_tokens, "tokens in all");
  return std::nullopt;
}

// Traces state each tensor in each step on each rank, and the diagnosis has the reference compute each micro-batch
// alone, for which it holds the batches of all steps once more.
std::optional<std::string> WhyTooManyParts(const contract::Case& spec) {
  const auto product = [](auto... factors) { return (1.0 * ... * static_cast<double>(factors)); };
  const contract::RunConfig& config = spec.config;
  const double traced = product(spec.steps, config.data_degree, contract::Parameters(spec.model).size());
  if (traced > kMost) return TooLarge("steps", traced, "tensors in all steps of all ranks");
  const double copied = product(config.accumulation_steps, config.data_degree, config.train_batch_size,
                                spec.model.positions(), spec.steps);
  if (copied > kMost) {
    return TooLarge("config.gradient_accumulation_steps", copied, "tokens in all, once for each micro-batch");
  }
  return std::nullopt;
}

std::optional<std::string> WhyNotExact(const contract::Case& spec) {
  constexpr int64_t kOddStep = 1;
  const int64_t batch = spec.config.train_batch_size;
  if (contract::NumWeightedTokens(batch, spec.model.positions(), kOddStep) <= batch) {
    return "model.positions is " + std::to_string(spec.model.positions()) +
           "; allowed: enough for more weighted tokens than samples in odd steps";
  }
  if (spec.model.exact().dropout && spec.config.optimizer == contract::OptimizerKind::kModularSgd) {
    return "config.optimizer.type is \"ModularSGD\"; allowed: ModularMomentum with dropout";
  }
  return std::nullopt;
}

std::optional<std::string> WhyNotReal(const contract::Case& spec) {
  const int64_t batch = spec.config.train_batch_size;
  if (batch % kOtherPlainMicroBatches == 0) return std::nullopt;
  return "config.train_batch_size is " + std::to_string(batch) + "; allowed: a multiple of " +
         std::to_string(kOtherPlainMicroBatches) + " in family " + std::string(spec.model.family());
}

}  // namespace

Problem ProblemOf(const contract::Case& spec, const std::string& name) {
  // All that is not a layout, so that a setting that is added to the contract is never lost here.
  const contract::RunConfig none;
  Problem problem{name, spec.model, spec.config, spec.steps};
  contract::RunConfig& plain = problem.plain;
  plain.micro_batch_size = plain.train_batch_size;
  plain.accumulation_steps = none.accumulation_steps;
  plain.data_degree = none.data_degree;
  plain.storage = none.storage;
  plain.loss_scale = none.loss_scale;
  plain.dynamic_loss_scale = none.dynamic_loss_scale;
  plain.zero_stage = none.zero_stage;
  plain.layer_stages = none.layer_stages;
  plain.reduce_bucket_elems = none.reduce_bucket_elems;
  plain.overlap_comm = none.overlap_comm;
  plain.prefetch_bucket_elems = none.prefetch_bucket_elems;
  plain.persistence_threshold_elems = none.persistence_threshold_elems;
  plain.max_live_elems = none.max_live_elems;
  plain.hints = none.hints;
  problem.fp16_loss_scale = spec.config.loss_scale;  // of other types it says nothing
  problem.fp16_dynamic = spec.config.dynamic_loss_scale;
  return problem;
}

std::optional<std::string> WhyNotJudgeable(const contract::Case& spec) {
  if (!IsGoodId(spec.id, spec.model.family())) {
    return "id is " + ShownId(spec.id) + "; allowed: " + std::string(spec.model.family()) +
           "/ and then letters, digits, _ . - and /, at most " + std::to_string(kMaxIdBytes) + " bytes in all";
  }
  if (const auto why = WhyNoWholeRun(spec)) return why;
  if (spec.config.storage == DType::kF64) {
    return "config.fp64 is enabled; allowed: storage in fp32, bf16 or fp16";
  }
  if (spec.config.data_degree > kMaxRanks) {
    return "config.mesh.data is " + std::to_string(spec.config.data_degree) + "; allowed: at most " +
           std::to_string(kMaxRanks);
  }
  if (const auto why = WhyTooLarge(spec)) return why;
  if (const auto why = WhyTooManyParts(spec)) return why;
  return spec.model.is_exact() ? WhyNotExact(spec) : WhyNotReal(spec);
}

}  // namespace plumbline::conformance
