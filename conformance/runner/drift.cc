// SPDX-License-Identifier: Apache-2.0
#include "conformance/runner/drift.h"

#include <random>
#include <utility>

#include "conformance/oracle/storage_rounding.h"
#include "conformance/runner/observation.h"
#include "conformance/runner/real_runs.h"

namespace plumbline::conformance {

RealStart Disturbed(const RealStart& start, contract::DType storage, uint64_t seed, int number) {
  std::seed_seq words{static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32), static_cast<uint32_t>(number)};
  std::mt19937_64 random(words);
  RealStart disturbed = start;
  for (contract::RealParameterState& entry : disturbed.state) {
    for (float& value : entry.master) {
      const double uniform = static_cast<double>(random() >> 11) * 0x1p-52 - 1;
      value = static_cast<float>(value * (1 + HalfUlp(storage) * uniform));
    }
  }
  return disturbed;
}

DriftTask::DriftTask(const Problem& problem, const PlanOptions& options, contract::DType storage,
                     const RealStart& start, const contract::EngineDescription& plain)
    : description_(plain), losses_(static_cast<size_t>(NumDriftRuns(storage))) {
  const std::string name = "truth/" + problem.name + "/drift-" + std::string(contract::StorageName(storage)) + "-";
  for (int number = 0; number < NumDriftRuns(storage); ++number) {
    runs_.push_back({CaseOf(problem, name + std::to_string(number), PlainLayout(problem, storage), options),
                     std::make_shared<const RealStart>(Disturbed(start, storage, options.seed, number))});
  }
}

void DriftTask::Take(size_t index, const std::filesystem::path& out_dir, const CaseOutcome& outcome) {
  if (!error_.empty()) return;
  const contract::Case& spec = runs_[index].spec;
  if (outcome.kind != CaseOutcome::Kind::kOk) {
    error_ = spec.id + ": " + TextOf(outcome);
    return;
  }
  const Observation seen = Observe(spec, description_, out_dir, outcome);
  error_ = FirstFailure(seen);
  if (error_.empty()) losses_[index] = seen.run->Losses();
}

}  // namespace plumbline::conformance
