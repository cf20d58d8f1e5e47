// SPDX-License-Identifier: Apache-2.0
// `plumbline engine check`: what an engine that is being written can do already, and what is missing next.
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "cli/commands.h"
#include "cli/engine_check/first_case.h"
#include "cli/engine_check/first_steps.h"
#include "cli/engine_check/listed_steps.h"
#include "cli/engine_check/step_text.h"
#include "cli/interrupt.h"
#include "cli/option_values.h"
#include "cli/programs.h"
#include "cli/result_folder.h"
#include "cli/shell_words.h"
#include "cli/standard_output.h"
#include "conformance/contract/batch_source.h"
#include "conformance/contract/error.h"
#include "conformance/engines/engine_program.h"

namespace plumbline::cli {
namespace {

constexpr double kDescribeSeconds = 60;

struct Options {
  std::string action;
  std::string engine;
  std::string text;
  std::string out;
};

// Prints steps as they come, and counts them.
class Printed {
 public:
  void operator()(const Step& step) {
    Print(StepText(step));
    if (step.state == Step::State::kOk) ++num_ok_;
    if (step.state == Step::State::kNotClaimed) ++num_not_claimed_;
  }
  std::string End(bool complete, const std::string& engine) const {
    return EndText(num_ok_, num_not_claimed_, complete, engine);
  }

 private:
  int num_ok_ = 0;
  int num_not_claimed_ = 0;
};

std::string Joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

std::string TextOf(const contract::EngineDescription& description) {
  return description.name + " " + description.version + ": " + Joined(description.families) + "; " +
         Joined(description.dtypes) + "; " + Joined(description.optimizers) + "; up to " +
         std::to_string(description.max_data_degree) + (description.max_data_degree == 1 ? " rank" : " ranks");
}

conformance::Engine Described(const std::filesystem::path& program) {
  const conformance::EngineProgram engine{program, {}};
  return {engine, conformance::Describe(engine, kDescribeSeconds)};
}

// None where `describe` does not do what it must.
std::optional<conformance::Engine> DescribeCandidate(const std::string& engine, const ShowStep& show) {
  const std::filesystem::path program = std::filesystem::absolute(engine);
  try {
    conformance::Engine candidate = Described(program);
    FirstCase(candidate.description, 1);  // refuses one that claims nothing
    show({"describe", Step::State::kOk, TextOf(candidate.description)});
    return candidate;
  } catch (const contract::Error& error) {
    if (error.code() == contract::ErrorCode::kEnvironment) throw;
    const std::string what = OfOption("PROGRAM", engine, "engine " + program.string(), error.what());
    show({"describe", Step::State::kMissing, what, Quoted(program.string()) + " describe"});
    return std::nullopt;
  }
}

bool NeedsPlainEngine(const contract::EngineDescription& description) {
  for (const std::string& family : description.families) {
    if (family != "exact") return true;
  }
  return false;
}

bool CheckSteps(const Options& options, const conformance::Engine& candidate, const std::filesystem::path& folder,
                std::stop_token stop, const ShowStep& show) {
  const contract::TokenSource source = ReadOption("--text", options.text, [&] {
    return contract::ReadTokenSource(options.text.empty() ? DefaultText() : std::filesystem::path(options.text));
  });
  const conformance::EngineSet own = OwnEngines();
  const conformance::Engine reference = Described(own.reference);
  if (!CheckFirstSteps(reference, candidate, source, folder, stop, show)) return false;
  conformance::Engine plain;
  if (NeedsPlainEngine(candidate.description)) plain = Described(own.torch_eager);
  const auto line_of = [&](const std::string& id) {
    return "./plumbline verify --case " + Quoted(id) + " --engine " + Quoted(options.engine) +
           (options.text.empty() ? "" : " --text " + Quoted(options.text));
  };
  return CheckListedSteps({&reference, &plain, &candidate}, source, folder / "listed", stop, line_of, show);
}

int Run(const Options& options) {
  if (options.action != "check") {
    contract::Fail(contract::ErrorCode::kInvalidArgument,
                   "engine does not know \"" + options.action +
                       "\"; allowed: check, and install of the launcher ./plumbline");
  }
  const ResultFolder folder(options.out, "engine-check");
  const InterruptWatcher interrupt(folder.path().string());
  Printed printed;
  const ShowStep show = [&](const Step& step) { printed(step); };
  bool complete = false;
  try {
    const auto candidate = DescribeCandidate(options.engine, show);
    complete = candidate && CheckSteps(options, *candidate, folder.path(), interrupt.token(), show);
  } catch (const contract::Error&) {
    if (const auto code = interrupt.exit_code()) return *code;  // a reference that was ended on the way, say
    folder.Discard();
    throw;
  }
  if (const auto code = interrupt.exit_code()) return *code;
  Print(printed.End(complete, options.engine));
  folder.Discard();  // where `describe` was missing nothing is in it
  return static_cast<int>(complete ? contract::ExitCode::kOk : contract::ExitCode::kFailure);
}

}  // namespace

Command AddEngine(CLI::App& app) {
  CLI::App* command = app.add_subcommand("engine", "What can an engine that is being written do, and what is missing?");
  const auto options = std::make_shared<Options>();
  command
      ->add_option("action", options->action, "check: goes through what an engine needs, and stops at what is missing")
      ->type_name("ACTION")
      ->required();
  command->add_option("engine", options->engine, "The engine (docs/add-an-engine.md)")
      ->type_name("PROGRAM")
      ->required();
  command->add_option("--text", options->text, "Train on this file (default: this project's LICENSE)")
      ->type_name("FILE");
  command
      ->add_option("--out", options->out,
                   "New or empty folder for the cases and what was run (default: a new one in plumbline-out/)")
      ->type_name("FOLDER");
  command->footer(
      "Each step is ok, missing, or - where the engine does not claim it. A missing one\nis told with what is expected "
      "and a command that shows it again, and is the\nlast.\n\nExamples:\n  ./plumbline engine check ./my_engine\n\n"
      "Exit codes: 0 every step that is claimed is ok, 1 one is missing, 2 bad usage,\n4 environment, 130 interrupted "
      "(143 by SIGTERM).");
  return [options] { return Run(*options); };
}

}  // namespace plumbline::cli
