// SPDX-License-Identifier: Apache-2.0
// An engine of family gpt2, on one rank, that has no model: losses and gradients of a step are what a test makes up,
// the update after them is a right one (oracle/testing/example_update.h; none where they are not finite), and what it
// leaves is what an engine leaves.
#pragma once

#include <cmath>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "conformance/contract/batch_source.h"
#include "conformance/oracle/testing/example_update.h"
#include "conformance/runner/real_runs.h"
#include "conformance/runner/run_task.h"
#include "conformance/runner/testing/run_folder.h"

namespace plumbline::conformance {

class MadeUpEngine {
 public:
  // Loss, tokens and gradients of a step, [canonical tensor], empty for a frozen one.
  using MakeStep = std::function<StepSight(const TaskRun& run, int64_t step)>;
  // Changes what a step leaves before it is written: a mistake of the engine.
  using Change = std::function<void(const TaskRun& run, StepSight& step)>;

  // `computes_in`: kF64, or kF32 with working weights in the storage type of the case.
  MadeUpEngine(contract::DType computes_in, MakeStep make, Change change = nullptr)
      : computes_in_(computes_in), make_(std::move(make)), change_(std::move(change)) {}

  void Run(const TaskRun& run, const std::filesystem::path& out_dir) const {
    const contract::Case& spec = run.spec;
    ExampleUpdate update;
    update.spec = spec;
    update.num_updates = run.start ? run.start->num_updates : 0;
    update.before = run.start ? run.start->state : contract::MakeInitialRealState(spec.model, spec.config, spec.seed);
    contract::Trace trace{"made-up", 0, 1, spec.config, {}, true};
    const int64_t first_traced = spec.first_step + (spec.resume ? NumSavedSteps(spec) : 0);
    if (run.start) update.norm_history = run.start->norm_history;
    for (int64_t step = spec.first_step; step < spec.first_step + spec.steps; ++step) {
      update.after = make_(run, step);
      update.after.step = step;
      for (auto& tensor : update.after.of(contract::TensorKind::kGradient)) {
        for (double& value : tensor) value = computes_in_ == contract::DType::kF64 ? value : static_cast<float>(value);
      }
      const bool skipped = !std::isfinite(NormOf(update.after));
      Execute(Engine{.no_update = skipped}, update);
      update.after.real.skipped = skipped;
      if (skipped && contract::HasNormHistory(spec.config)) update.after.real.norm_history = update.norm_history;
      const contract::NormHistory next_history = update.after.real.norm_history.value_or(contract::NormHistory{});
      const std::vector<contract::RealParameterState> next = StateOf(update.after);
      if (change_) change_(run, update.after);
      if (step >= first_traced) trace.steps.push_back(Leave(spec, update.after, out_dir));
      update.before = next;
      update.norm_history = next_history;
      update.num_updates += skipped ? 0 : 1;
    }
    WriteTraces(out_dir, {trace});
  }

  // Runs all that a task asks for, each in a folder of its own, and lets it take them.
  void RunTaskIn(const std::filesystem::path& work_dir, RunTask& task) const {
    const std::vector<TaskRun> runs = task.Runs();
    for (size_t i = 0; i < runs.size(); ++i) {
      const std::filesystem::path out_dir = work_dir / std::to_string(i);
      Run(runs[i], out_dir);
      task.Take(i, out_dir, CaseOutcome{});
      std::filesystem::remove_all(out_dir);
    }
  }

 private:
  static std::vector<contract::RealParameterState> StateOf(const StepSight& sight) {
    using contract::TensorKind;
    std::vector<contract::RealParameterState> state;
    for (size_t i = 0; i < sight.of(TensorKind::kMaster).size(); ++i) {
      const auto floats = [&](TensorKind kind) {
        return std::vector<float>(sight.of(kind)[i].begin(), sight.of(kind)[i].end());
      };
      state.push_back({floats(TensorKind::kMaster), floats(TensorKind::kMoment), floats(TensorKind::kSecondMoment)});
    }
    return state;
  }

  contract::StepRecord Leave(const contract::Case& spec, const StepSight& sight,
                             const std::filesystem::path& out_dir) const {
    const std::vector<contract::ParameterSpec> parameters = contract::Parameters(spec.model);
    contract::StepRecord record;
    record.step = sight.step;
    record.loss = sight.loss;
    record.tokens = sight.tokens;
    record.real = sight.real;
    contract::TensorFile dump;
    for (contract::TensorKind kind : contract::kTensorKinds) {
      const contract::DType stored =
          kind == contract::TensorKind::kWeight ? spec.config.storage : contract::DType::kF32;
      const contract::DType type = computes_in_ == contract::DType::kF64 ? computes_in_ : stored;
      for (size_t i = 0; i < parameters.size(); ++i) {
        const std::vector<double>& values = sight.of(kind)[i];
        if (values.empty()) continue;
        contract::SliceDigest slice{parameters[i].name, 0, static_cast<int64_t>(values.size()), {}};
        for (size_t k = 0; k < values.size(); ++k)
          slice.digest.AddBits(static_cast<int64_t>(k), BitsOf(values[k], type));
        record.of(kind).push_back(slice);
        dump.tensors.push_back(
            MakeTensor(std::string(contract::Name(kind)) + "/" + parameters[i].name + "@0", type, values));
      }
    }
    const std::vector<int64_t>& dumped = spec.dump_steps;
    if (std::find(dumped.begin(), dumped.end(), sight.step) != dumped.end()) {
      std::filesystem::create_directories(DumpPath(out_dir, 0, sight.step).parent_path());
      contract::WriteTensorFile(DumpPath(out_dir, 0, sight.step), dump);
    }
    return record;
  }

  contract::DType computes_in_;
  MakeStep make_;
  Change change_;
};

}  // namespace plumbline::conformance
