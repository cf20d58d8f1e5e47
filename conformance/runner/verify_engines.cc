// SPDX-License-Identifier: Apache-2.0
#include "conformance/runner/verify_engines.h"

#include "conformance/contract/error.h"

namespace plumbline::conformance {
namespace {

Engine Described(const EngineProgram& program, const VerifyOptions& options) {
  return {program, Describe(program, options.plan.timeout_s)};
}

void DescribeForeign(const EngineProgram& program, const VerifyOptions& options, VerifyEngines& engines) {
  try {
    engines.candidate = Described(program, options);
  } catch (const contract::Error& error) {
    if (error.code() != contract::ErrorCode::kEnvironment) throw;
    engines.candidate.program = program;
    engines.candidate.description.name = program.program.filename().string();
    engines.absent = error.what();
  }
}

}  // namespace

const Engine& VerifyEngines::Of(Role role) const {
  switch (role) {
    case Role::kWitness:
      return witness;
    case Role::kCleanTwin:
      return switchable;
    case Role::kCandidate:
      return candidate;
  }
  return candidate;
}

VerifyEngines DescribeEngines(const VerifyOptions& options, bool with_witness) {
  VerifyEngines engines;
  engines.reference = Described({options.engines.reference, {}}, options);
  if (options.foreign_engine) {
    DescribeForeign(*options.foreign_engine, options, engines);
  } else {
    engines.candidate = Described({options.engines.optimized, {}}, options);
  }
  if (with_witness) engines.witness = Described({options.engines.torch_eager, {}}, options);
  if (options.run_defects) engines.switchable = Described({options.engines.optimized_defects, {}}, options);
  return engines;
}

}  // namespace plumbline::conformance
