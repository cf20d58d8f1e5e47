// SPDX-License-Identifier: Apache-2.0
// Fuzz target: a file of `verify --case-file`. What can be judged is small enough to be run, and what is expected of an
// engine in it (calls, bytes, memory) can be computed and is no less than nothing.
#include "conformance/cases/lone_case.h"
#include "conformance/contract/fuzz/only_errors.h"
#include "conformance/oracle/call_sequence.h"
#include "conformance/oracle/ledger_check.h"
#include "conformance/oracle/memory_formula.h"

namespace plumbline::contract::fuzz {
namespace {

using conformance::CollectiveCall;

void DemandOneSum(const Case& spec) {
  std::map<std::string, CommCount> counted = conformance::ExpectedComm(spec.model, spec.config);
  int64_t calls = 0, bytes = 0;
  for (const CollectiveCall& call : conformance::ExpectedCalls(spec.model, spec.config)) {
    Demand(call.bytes > 0, "a call moves something");
    ++calls;
    bytes += call.bytes;
  }
  for (const auto& [kind, count] : counted) {
    calls -= count.calls;
    bytes -= count.bytes;
  }
  Demand(calls == 0 && bytes == 0, "calls one by one add up to those that are counted");
}

void DemandProblem(const Case& spec) {
  const conformance::Problem problem = conformance::ProblemOf(spec, "fuzz");
  Demand(problem.model == spec.model && problem.plain.world_size() == 1, "a problem is the model, trained by one rank");
  const auto parse = [](std::string_view json, std::string_view where) { return ParseRunConfig(json, where); };
  DemandRoundTrip(parse, problem.plain);
}

}  // namespace

bool Accepts(const uint8_t* data, size_t size) {
  const auto spec = ParseOrRefuse([&] { return ParseCase(Text(data, size), "input"); });
  if (!spec.has_value() || conformance::WhyNotJudgeable(*spec).has_value()) return false;
  DemandProblem(*spec);
  DemandOneSum(*spec);
  for (const auto& [category, bytes] : conformance::ExpectedMemoryPeak(spec->model, spec->config)) {
    Demand(bytes >= 0, "no less than no memory: " + category);
  }
  return true;
}

}  // namespace plumbline::contract::fuzz
