// SPDX-License-Identifier: Apache-2.0
// Implementation of run_case.h. A case that this engine cannot do as asked is refused before anything is written.
#include "conformance/engines/torch_eager/run_case.h"

#include <algorithm>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "conformance/contract/digest.h"
#include "conformance/contract/error.h"
#include "conformance/contract/instrumentation.h"
#include "conformance/contract/tensor_file.h"
#include "conformance/contract/trace.h"
#include "conformance/engines/torch_eager/real_step.h"
#include "conformance/engines/torch_eager/real_trainer.h"
#include "conformance/engines/torch_eager/schedule.h"
#include "conformance/engines/torch_eager/storage_type.h"
#include "conformance/engines/torch_eager/trainer.h"

namespace plumbline::conformance::torch_eager {
namespace {

using contract::Category;
using contract::ScopedRange;
using contract::TensorKind;
namespace range = contract::range;

void Require(bool ok, const std::string& field, const std::string& value, const std::string& allowed) {
  if (ok) return;
  contract::Fail(contract::ErrorCode::kUnsupported, "torch_eager: " + field + " is " + value + "; allowed: " + allowed);
}

contract::SliceDigest DigestOf(const std::string& name, const std::vector<int64_t>& values) {
  contract::SliceDigest slice{.tensor = name, .begin = 0, .end = static_cast<int64_t>(values.size()), .digest = {}};
  for (int64_t i = 0; i < slice.end; ++i) slice.digest.Add(i, values[i]);
  return slice;
}

std::filesystem::path DumpPath(const std::filesystem::path& out_dir, int64_t step) {
  char name[64];
  std::snprintf(name, sizeof name, "tensors-%06lld.safetensors", static_cast<long long>(step));
  return out_dir / "rank0" / name;
}

bool Contains(const std::vector<int64_t>& values, int64_t value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

// One rank holds everything, so every slice is a whole tensor.
void Report(const contract::CaseData& data, const Trainer& trainer, contract::StepRecord& record,
            contract::TensorFile* dump) {
  for (const TensorKind kind : contract::kTensorKinds) {
    for (size_t i = 0; i < data.parameters.size(); ++i) {
      const std::vector<int64_t> values = trainer.Values(kind, i);
      if (values.empty()) continue;  // the moment under ModularSGD
      const std::string& name = data.parameters[i].name;
      record.of(kind).push_back(DigestOf(name, values));
      if (dump == nullptr) continue;
      const std::string dump_name = std::string(Name(kind)) + "/" + name + "@0";
      dump->tensors.push_back(contract::MakeI64(dump_name, {static_cast<int64_t>(values.size())}, values));
    }
  }
}

// The phase `reduce` has no mark: with one rank and one micro-batch there is nothing to reduce.
contract::StepRecord TrainStep(const contract::Case& spec, Trainer& trainer, contract::TraceWriter& trace,
                               int64_t step) {
  const auto mark = [&](const char* phase) {
    if (spec.phase_marks) trace.Phase(step, phase);
  };
  contract::StepRecord record;
  record.step = step;
  {
    mark("forward");
    const ScopedRange scope(Category::kCompute, range::kForward);
    const StepLoss loss = trainer.Forward(step);
    record.loss = loss.loss;
    record.tokens = loss.tokens;
  }
  {
    mark("backward");
    const ScopedRange scope(Category::kCompute, range::kBackward);
    trainer.Backward();
  }
  {
    mark("step");
    const ScopedRange scope(Category::kOptimizer, range::kOptimizerStep);
    trainer.Update();
  }
  return record;
}

// Trains a step, reports it, and adds its tensors to the file unless that is null.
using Step = std::function<contract::StepRecord(contract::TraceWriter&, int64_t, contract::TensorFile*)>;

void RunSteps(const contract::CaseData& data, const std::filesystem::path& out_dir, const Step& run_step) {
  contract::TraceWriter trace(out_dir, Describe().name, /*rank=*/0, data.spec.config);
  for (int64_t step = data.spec.first_step; step < data.spec.first_step + data.spec.steps; ++step) {
    const ScopedRange step_scope(Category::kCompute, range::kStep);
    const bool dumped = Contains(data.spec.dump_steps, step);
    contract::TensorFile dump;
    const contract::StepRecord record = run_step(trace, step, dumped ? &dump : nullptr);
    const ScopedRange trace_scope(Category::kIo, range::kTrace);
    if (dumped) contract::WriteTensorFile(DumpPath(out_dir, step), dump);
    trace.Step(record);
  }
  trace.End(data.spec.steps);
}

}  // namespace

contract::EngineDescription Describe() {
  contract::EngineDescription description;
  description.name = "torch_eager";
  description.version = LibTorchVersion();
  description.starts_itself = true;
  description.batch = true;
  description.families = {"exact", "gpt2", "llama"};
  description.dtypes = {"fp64", "fp32", "bf16", "fp16"};
  description.optimizers = {"ModularMomentum", "ModularSGD", "AdamW", "SGD", "Adam", "Lion", "Lamb"};
  description.zero_stages = {0};
  description.max_data_degree = 1;
  description.features = {"dropout",       "grouped_heads", "dump",            "deterministic",
                          "unit_clipping", "norm_history",  "unequal_lengths", "loss_scaler"};
  return description;
}

void CheckSupported(const contract::Case& spec) {
  const contract::RunConfig& config = spec.config;
  Require(config.data_degree == 1, "config.mesh.data", std::to_string(config.data_degree), "1");
  // Not listed as a feature, since that would hold for every family.
  Require(config.accumulation_steps == 1 || !spec.model.is_exact(), "config.gradient_accumulation_steps",
          std::to_string(config.accumulation_steps), "1 in family exact");
  Require(config.zero_stage == 0, "config.zero_optimization.stage", std::to_string(config.zero_stage), "0");
  const bool stores = config.storage == contract::DType::kF32 || config.storage == contract::DType::kBF16 ||
                      config.storage == contract::DType::kF16 ||
                      (config.storage == contract::DType::kF64 && !spec.model.is_exact());
  Require(stores, "storage type", std::string(Name(config.storage)), "F32, BF16, F16; F64 in the real families");
  // The lr of such a group would be 0 / 0 times its own.
  const bool scales_groups = SetsOneRate(config.schedule) &&
                             std::any_of(config.groups.begin(), config.groups.end(),
                                         [](const contract::ParameterGroup& group) { return group.lr.has_value(); });
  Require(config.params.lr > 0 || !scales_groups, "config.optimizer.params.lr", "0",
          "above 0 with a scheduler and groups that have an lr");
  Require(!spec.resume, "resume", "true", "false");
  Require(spec.save_steps.empty(), "save_steps", "present", "none");
  Require(!spec.perturbation.has_value(), "perturbation", "present", "none");
}

void RunCase(const std::filesystem::path& case_dir, const std::filesystem::path& out_dir) {
  const contract::CaseData data = contract::ReadCase(case_dir);
  CheckSupported(data.spec);
  if (data.spec.model.is_exact()) {
    Trainer trainer(data);
    RunSteps(data, out_dir, [&](contract::TraceWriter& trace, int64_t step, contract::TensorFile* dump) {
      contract::StepRecord record = TrainStep(data.spec, trainer, trace, step);
      const ScopedRange trace_scope(Category::kIo, range::kTrace);
      Report(data, trainer, record, dump);
      return record;
    });
  } else {
    RealTrainer trainer(data);
    RunSteps(data, out_dir, [&](contract::TraceWriter& trace, int64_t step, contract::TensorFile* dump) {
      return TrainRealStep(data, trainer, trace, step, dump);
    });
  }
}

}  // namespace plumbline::conformance::torch_eager
