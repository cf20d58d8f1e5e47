// SPDX-License-Identifier: Apache-2.0
#include "conformance/runner/schedule.h"

#include <utility>

#include "conformance/contract/error.h"

namespace plumbline::conformance {
namespace {

void MakeDir(const std::filesystem::path& dir) {
  std::error_code error;
  std::filesystem::create_directories(dir, error);
  if (error) {
    contract::Fail(contract::ErrorCode::kEnvironment, dir.string() + ": cannot be made: " + error.message());
  }
}

}  // namespace

Schedule::Schedule(const contract::TokenSource& source, std::filesystem::path work_dir)
    : source_(source), work_dir_(std::move(work_dir)) {}

void Schedule::Add(const EngineProgram& engine, const contract::EngineDescription& description,
                   std::vector<ScheduledRun> runs) {
  if (runs.empty()) return;
  RunUnit unit{&engine, &description, {}, {}};
  for (ScheduledRun& run : runs) {
    run.case_dir = CaseDir(run.spec);
    run.out_dir = work_dir_ / "runs" / std::to_string(runs_.size());
    run.description = &description;
    unit.runs.push_back({run.case_dir, run.out_dir, run.spec.timeout_s, run.spec.config.world_size()});
    unit.numbers.push_back(runs_.size());
    runs_.push_back(std::move(run));
  }
  units_.push_back(std::move(unit));
}

std::filesystem::path Schedule::CaseDir(const contract::Case& spec) {
  const auto [entry, fresh] = case_dirs_.try_emplace(contract::ToJson(spec));
  if (fresh) {
    entry->second = work_dir_ / "cases" / std::to_string(case_dirs_.size() - 1);
    MakeDir(entry->second);
    contract::CaseData data = Data(spec);
    data.spec = spec;
    contract::WriteCase(entry->second, data);
  }
  return entry->second;
}

// Weights, state and batches do not depend on the layout: made once for all cases of a problem.
const contract::CaseData& Schedule::Data(const contract::Case& spec) {
  contract::Case plain;
  plain.model = spec.model;
  plain.seed = spec.seed;
  plain.steps = spec.steps;
  plain.config.train_batch_size = spec.config.train_batch_size;
  plain.config.micro_batch_size = spec.config.train_batch_size;
  plain.config.optimizer = spec.config.optimizer;
  const auto [entry, fresh] = data_by_problem_.try_emplace(contract::ToJson(plain));
  if (fresh) {
    contract::CaseData& data = entry->second;
    data.spec = plain;
    data.parameters = contract::Parameters(spec.model);
    data.state = contract::MakeInitialState(spec.model.exact(), spec.config.optimizer, spec.seed);
    data.batches = contract::MakeBatches(source_, spec.model, {spec.seed, 0, spec.steps, spec.config.train_batch_size});
  }
  return entry->second;
}

}  // namespace plumbline::conformance
