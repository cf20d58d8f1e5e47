// SPDX-License-Identifier: Apache-2.0
// Implements run_case.h.
#include "reference/engine/run_case.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>

#include "conformance/contract/case_file.h"
#include "conformance/contract/error.h"
#include "conformance/contract/file_io.h"
#include "conformance/contract/tensor_file.h"
#include "conformance/contract/trace.h"
#include "reference/engine/step_output.h"
#include "reference/engine/trainer.h"

namespace plumbline::reference {
namespace {

constexpr const char* kName = "reference";
constexpr int64_t kRank = 0;

void CheckSupported(const contract::Case& spec) {
  const auto unsupported = [](const std::string& key, int64_t value) {
    contract::Fail(contract::ErrorCode::kUnsupported,
                   key + " is " + std::to_string(value) +
                       "; allowed: 1, since the reference computes the whole global batch at once");
  };
  if (spec.config.data_degree > 1) unsupported("config.mesh.data", spec.config.data_degree);
  if (spec.config.accumulation_steps > 1)
    unsupported("config.gradient_accumulation_steps", spec.config.accumulation_steps);
  if (spec.resume || !spec.save_steps.empty())
    contract::Fail(contract::ErrorCode::kUnsupported,
                   std::string(spec.resume ? "resume" : "save_steps") + " is set; the reference keeps no checkpoints");
}

void RunStep(Trainer& trainer, const contract::CaseData& data, int64_t step, contract::TraceWriter& trace) {
  const auto mark = [&](const char* phase) {
    if (data.spec.phase_marks) trace.Phase(step, phase);
  };
  mark("forward");
  trainer.Forward(step);
  mark("backward");
  trainer.Backward();
  mark("reduce");  // nothing to reduce: the gradient is complete, and is checked
  trainer.CheckGradient();
  mark("step");
  trainer.Update();
}

}  // namespace

contract::EngineDescription Description() {
  contract::EngineDescription description;
  description.name = kName;
  description.version = "0.1";
  description.starts_itself = true;
  description.batch = true;
  description.families = {"exact", "gpt2", "llama"};
  description.dtypes = {"fp64"};
  description.optimizers = {"ModularMomentum", "ModularSGD", "AdamW", "SGD", "Adam", "Lion", "Lamb"};
  description.zero_stages = {0, 1, 2, 3};
  description.max_data_degree = 1;
  description.features = {"dropout",     "grouped_heads", "dump",         "perturbation",
                          "certificate", "unit_clipping", "norm_history", "unequal_lengths"};
  return description;
}

void RunCase(const std::filesystem::path& case_dir, const std::filesystem::path& out_dir) {
  const contract::CaseData data = contract::ReadCase(case_dir);
  CheckSupported(data.spec);
  const std::unique_ptr<Trainer> trainer = MakeTrainer(data);
  contract::TraceWriter trace(out_dir, kName, kRank, data.spec.config);
  for (int64_t step = data.spec.first_step; step < data.spec.first_step + data.spec.steps; ++step) {
    RunStep(*trainer, data, step, trace);
    const std::vector<int64_t>& dump_steps = data.spec.dump_steps;
    if (std::find(dump_steps.begin(), dump_steps.end(), step) != dump_steps.end())
      contract::WriteTensorFile(out_dir / contract::DumpName(kRank, step), DumpOf(*trainer, data.parameters));
    trace.Step(RecordOf(*trainer, data.parameters, step));
  }
  if (const std::optional<contract::Certificate> certificate = trainer->Certificate())
    contract::WriteFile(out_dir / "certificate.json", contract::ToJson(*certificate));
  trace.End(data.spec.steps);
}

}  // namespace plumbline::reference
