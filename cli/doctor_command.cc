// SPDX-License-Identifier: Apache-2.0
// `plumbline doctor`: looks at the machine, starts each engine once to hear whether it can, and prints the findings.
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/doctor_report.h"
#include "cli/programs.h"
#include "cli/standard_output.h"
#include "conformance/contract/error.h"
#include "conformance/engines/engine_program.h"
#include "conformance/environment/diagnosis.h"
#include "conformance/environment/machine_probe.h"

namespace plumbline::cli {
namespace {

struct Options {
  std::string cache = ".";
  bool json = false;
};

conformance::EngineStart Start(const std::string& name, const std::filesystem::path& program) {
  constexpr double kTimeoutSeconds = 30;
  try {
    conformance::Describe({program, {}}, kTimeoutSeconds);
    return {name, ""};
  } catch (const contract::Error& error) {
    return {name, error.what()};
  }
}

std::vector<conformance::EngineStart> StartEngines() {
  try {
    const conformance::EngineSet engines = OwnEngines();
    return {Start("reference", engines.reference), Start("optimized", engines.optimized),
            Start("optimized_processes", engines.processes), Start("torch_eager", engines.torch_eager),
            Start("optimized_defects", engines.optimized_defects)};
  } catch (const contract::Error& error) {
    return {{"all", error.what()}};
  }
}

int Run(const Options& options) {
  conformance::Machine machine = conformance::ProbeMachine(options.cache);
  machine.engines = StartEngines();
  const std::vector<conformance::Finding> findings = conformance::Diagnose(machine);
  Print(options.json ? DoctorJson(findings, machine.gpu_driver.gpus) : DoctorText(findings));
  return static_cast<int>(conformance::CanVerify(findings) ? contract::ExitCode::kOk
                                                           : contract::ExitCode::kEnvironment);
}

}  // namespace

Command AddDoctor(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("doctor", "What is on this machine, and what does each missing or weak part disable?");
  const auto options = std::make_shared<Options>();
  command->add_flag("--json", options->json, "Print one JSON object (docs/doctor.md)");
  command
      ->add_option("--cache", options->cache,
                   "Folder of LibTorch and build results, whose disk is looked at (./plumbline names its own)")
      ->type_name("FOLDER")
      ->take_last();  // the launcher's comes first
  command->footer(
      "Examples:\n  ./plumbline doctor\n  ./plumbline doctor --json\n\n"
      "Exit codes: 0 `verify` can run, 2 bad usage, 4 something that `verify` needs is\nmissing.");
  return [options] { return Run(*options); };
}

}  // namespace plumbline::cli
