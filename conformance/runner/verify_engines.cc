// SPDX-License-Identifier: Apache-2.0
#include "conformance/runner/verify_engines.h"

#include <filesystem>
#include <future>

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
    case Role::kProcesses:
      return processes;
    case Role::kCandidate:
      return candidate;
  }
  return candidate;
}

VerifyEngines DescribeEngines(const VerifyOptions& options, bool with_witness, bool with_processes) {
  // All at once: each loads LibTorch, which takes most of their time.
  const auto begin = [&](const std::filesystem::path& program) {
    return std::async(std::launch::async, [&] { return Described({program, {}}, options); });
  };
  std::future<Engine> reference = begin(options.engines.reference);
  std::future<Engine> own, witness, switchable, processes;
  if (!options.foreign_engine) own = begin(options.engines.optimized);
  if (with_witness) witness = begin(options.engines.torch_eager);
  if (options.run_defects) switchable = begin(options.engines.optimized_defects);
  if (with_processes) processes = begin(options.engines.processes);
  VerifyEngines engines;
  if (options.foreign_engine) DescribeForeign(*options.foreign_engine, options, engines);
  engines.reference = reference.get();
  if (own.valid()) engines.candidate = own.get();
  if (witness.valid()) engines.witness = witness.get();
  if (switchable.valid()) engines.switchable = switchable.get();
  if (processes.valid()) engines.processes = processes.get();
  return engines;
}

}  // namespace plumbline::conformance
