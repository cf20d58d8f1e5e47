// SPDX-License-Identifier: Apache-2.0
// Fuzz target: what a rank dumps, with its trace, read twice: by the oracle, which demands that it is whole, and by the
// diagnosis, which takes what it can get. What the oracle accepts is the same to both.
#include <cmath>
#include <numeric>

#include "conformance/cases/lone_case.h"
#include "conformance/contract/fuzz/only_errors.h"
#include "conformance/contract/fuzz/parts.h"
#include "conformance/contract/fuzz/scratch_folder.h"
#include "conformance/diagnosis/dump.h"
#include "conformance/oracle/step_sight.h"

namespace plumbline::contract::fuzz {
namespace {

using conformance::Dump;
using conformance::StepSight;
using conformance::Values;

constexpr int64_t kStep = 0;

bool Same(const Values& a, const Values& b) {
  return std::ranges::equal(a, b, [](double x, double y) { return x == y || (std::isnan(x) && std::isnan(y)); });
}

// All that the diagnosis asks of a dump, whatever is in it.
void Diagnose(const Case& spec, const Dump& dump) {
  const std::vector<ParameterSpec> parameters = Parameters(spec.model);
  conformance::FirstDisagreement(dump);
  conformance::GradientNorm(dump);
  conformance::RankGradientNorms(dump, spec.config.world_size());
  for (TensorKind kind : kTensorKinds) {
    for (size_t i = 0; i < parameters.size(); ++i) {
      const Values truth(static_cast<size_t>(parameters[i].numel()), 0.5);
      const auto whole = conformance::Assemble(dump.of(kind, i), parameters[i].numel(), truth);
      Demand(!whole || whole->values.size() == truth.size(), "what is whole has all elements");
      conformance::DifferingRanks(dump.of(kind, i), truth, 0.25);
      conformance::RanksOfOtherTrace(dump, kind, i, parameters[i].name);
    }
  }
}

void DemandSame(const StepSight& sight, const Dump& dump) {
  for (TensorKind kind : kTensorKinds) {
    for (size_t i = 0; i < sight.of(kind).size(); ++i) {
      const Values& seen = sight.of(kind)[i];
      if (seen.empty()) continue;
      const Values read = conformance::WholeTensor(dump.of(kind, i), static_cast<int64_t>(seen.size()));
      Demand(Same(seen, read), "the diagnosis reads the " + std::string(Name(kind)) + " that the oracle reads");
    }
  }
}

}  // namespace

bool Accepts(const uint8_t* data, size_t size) {
  const std::vector<std::string_view> parts = Parts(Text(data, size), 3);
  const auto spec = ParseOrRefuse([&] { return ParseCase(parts[0], "case"); });
  if (!spec.has_value() || conformance::WhyNotJudgeable(*spec).has_value() || spec->config.world_size() != 1) {
    return false;
  }
  const ScratchFolder folder;
  folder.Put("rank0/trace.jsonl", parts[1]);
  folder.Put(DumpName(0, kStep), parts[2]);
  const auto dump = ParseOrRefuse([&] { return conformance::ReadDump(*spec, folder.path(), kStep); });
  if (dump) Diagnose(*spec, *dump);
  const conformance::SightResult result = conformance::SeeStep(*spec, folder.path(), kStep);
  if (result.check.outcome != reports::CheckOutcome::kPass) {
    Demand(!result.sight && !result.check.detail.empty(), "a failure says what was found");
    return false;
  }
  Demand(result.check.compared > 0 && dump.has_value(), "what the oracle accepts can be diagnosed");
  DemandSame(*result.sight, *dump);
  return true;
}

}  // namespace plumbline::contract::fuzz
