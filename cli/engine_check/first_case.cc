// SPDX-License-Identifier: Apache-2.0
#include "cli/engine_check/first_case.h"

#include <algorithm>
#include <string>
#include <utility>

#include "conformance/contract/error.h"

namespace plumbline::cli {
namespace {

using contract::DType;
using contract::OptimizerKind;

// Sizes all differ, so that a swapped pair of them shows.
contract::ModelSpec SmallModel(const std::string& family) {
  const auto fill = [](auto model) {
    model.layers = 1;
    model.width = 8;
    model.heads = 2;
    model.positions = 6;
    model.hidden = 10;
    model.vocab = 11;
    return model;
  };
  if (family == "exact") {
    contract::ExactSpec model = fill(contract::ExactSpec{});
    model.kv_heads = model.heads;
    return model;
  }
  if (family == "gpt2") return fill(contract::Gpt2Spec{});
  contract::LlamaSpec model = fill(contract::LlamaSpec{});
  model.kv_heads = model.heads;
  return model;
}

[[noreturn]] void RefuseEmpty(const std::string& field, const std::string& needed) {
  contract::Fail(contract::ErrorCode::kInvalidArgument,
                 "the description's " + field + " have none that is known" + needed + "; docs/formats.md lists them");
}

std::string FirstOf(const std::vector<std::string>& claimed, const std::vector<std::string>& known,
                    const std::string& field, const std::string& needed = "") {
  for (const std::string& name : known) {
    if (std::find(claimed.begin(), claimed.end(), name) != claimed.end()) return name;
  }
  RefuseEmpty(field, needed);
}

OptimizerKind FirstOptimizer(const contract::EngineDescription& description, bool exact) {
  constexpr OptimizerKind kKinds[] = {OptimizerKind::kModularMomentum,
                                      OptimizerKind::kModularSgd,
                                      OptimizerKind::kSgd,
                                      OptimizerKind::kAdamW,
                                      OptimizerKind::kAdam,
                                      OptimizerKind::kLion,
                                      OptimizerKind::kLamb};
  for (const OptimizerKind kind : kKinds) {
    const bool claimed = std::find(description.optimizers.begin(), description.optimizers.end(),
                                   contract::Name(kind)) != description.optimizers.end();
    if (claimed && contract::IsModular(kind) == exact) return kind;
  }
  RefuseEmpty("optimizers", exact ? " of family exact" : " of the real families");
}

DType FirstStorage(const contract::EngineDescription& description) {
  const std::string name = FirstOf(description.dtypes, {"fp32", "bf16", "fp16", "fp64"}, "dtypes");
  for (const DType storage : {DType::kF32, DType::kBF16, DType::kF16, DType::kF64}) {
    if (contract::StorageName(storage) == name) return storage;
  }
  return DType::kF32;
}

}  // namespace

contract::Case FirstCase(const contract::EngineDescription& description, int64_t steps) {
  const std::string family = FirstOf(description.families, {"exact", "gpt2", "llama"}, "families");
  contract::Case spec;
  spec.id = family + "/first";
  spec.model = SmallModel(family);
  spec.config.train_batch_size = spec.config.micro_batch_size = 4;
  spec.config.storage = FirstStorage(description);
  spec.config.optimizer = FirstOptimizer(description, spec.model.is_exact());
  spec.seed = 1;
  spec.steps = steps;
  return contract::ParseCase(contract::ToJson(spec), "case.json");  // with the defaults of the optimizer
}

contract::CaseData DataOf(const contract::Case& spec, const contract::TokenSource& source) {
  contract::CaseData data;
  data.spec = spec;
  data.parameters = contract::Parameters(spec.model);
  if (spec.model.is_exact()) {
    data.state = contract::MakeInitialState(spec.model.exact(), spec.config.optimizer, spec.seed);
  } else {
    data.real_state = contract::MakeInitialRealState(spec.model, spec.config, spec.seed);
  }
  data.batches = contract::MakeBatches(
      source, spec.model,
      {.seed = spec.seed, .first_step = spec.first_step, .steps = spec.steps, .batch = spec.config.train_batch_size});
  return data;
}

}  // namespace plumbline::cli
