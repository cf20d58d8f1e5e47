// SPDX-License-Identifier: Apache-2.0
// `plumbline verify`: its options, and what it prints.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/option_values.h"
#include "cli/plan_json.h"
#include "cli/programs.h"
#include "cli/progress_line.h"
#include "cli/result_folder.h"
#include "cli/shell_words.h"
#include "cli/standard_output.h"
#include "cli/verify_options.h"
#include "cli/verify_table.h"
#include "conformance/contract/error.h"
#include "conformance/oracle/ledger_check.h"
#include "conformance/oracle/memory_formula.h"
#include "conformance/runner/plan.h"
#include "conformance/runner/verify.h"
#include "reports/record/record.h"

namespace plumbline::cli {
namespace {

using contract::ErrorCode;

// A line with what every reproduction needs: the text and the engine.
std::string LineWith(const VerifyOptions& options, const std::string& selection) {
  std::string line = "./plumbline verify " + selection;
  if (!options.text.empty()) line += " --text " + Quoted(options.text);
  if (options.timeout_s != VerifyOptions{}.timeout_s) line += fmt::format(" --timeout {}", options.timeout_s);
  if (!options.engine.empty()) line += " --engine " + Quoted(options.engine);
  return line;
}

// The case file states seed and time-out.
std::string CaseFileLine(VerifyOptions options, const std::filesystem::path& file) {
  options.timeout_s = VerifyOptions{}.timeout_s;
  return LineWith(options, "--case-file " + Quoted(std::filesystem::relative(file).string()));
}

std::string ReproducePrefix(const VerifyOptions& options) {
  if (!options.case_file.empty()) return CaseFileLine(options, options.case_file);
  const bool other_tier = options.tier != VerifyOptions{}.tier;
  return LineWith(options,
                  "--seed " + std::to_string(options.seed_number) + (other_tier ? " --tier " + options.tier : ""));
}

// What an engine that keeps books must report, in each step and on each rank.
std::string ShowComm(const contract::Case& spec) {
  std::string text;
  for (const auto& [kind, count] : conformance::ExpectedComm(spec.model, spec.config)) {
    text += fmt::format("{}\"{}\": [{}, {}]", text.empty() ? "" : ", ", kind, count.calls, count.bytes);
  }
  return "{" + text + "}";
}

std::string ShowMemory(const contract::Case& spec) {
  std::string text;
  for (const auto& [category, bytes] : conformance::ExpectedMemoryPeak(spec.model, spec.config)) {
    text += fmt::format("{}\"{}\": {}", text.empty() ? "" : ", ", category, bytes);
  }
  return "{" + text + "}";
}

int PrintPlan(const VerifyOptions& options) {
  const conformance::Plan plan = conformance::MakePlan(PlanOf(options));
  std::vector<std::string> ids;
  for (const conformance::PlannedCase& entry : plan.cases) {
    ids.push_back(entry.id);
    if (options.list) {
      if (!options.json) fmt::print("{}\n", entry.id);
    } else {
      fmt::print(
          "{{\"id\": \"{}\", \"config\": {}, \"comm_per_step_and_rank\": {}, \"memory_peak_bytes_per_rank\": {}}}\n",
          entry.id, contract::ToJson(entry.spec.config), ShowComm(entry.spec), ShowMemory(entry.spec));
    }
  }
  if (options.list && options.json) Print(ListJson(ids));
  if (!plan.cases.empty()) return static_cast<int>(contract::ExitCode::kOk);
  std::fprintf(stderr, "plumbline: no case was selected\n");
  return static_cast<int>(contract::ExitCode::kFailure);
}

// What the cases of the tier cover, whatever is selected of them.
int PrintCoverage(const VerifyOptions& options) {
  const conformance::Plan plan = conformance::MakePlan(PlanOf(options));
  if (options.json) {
    Print(CoverageJson(options.tier, plan.list.coverage));
    return static_cast<int>(contract::ExitCode::kOk);
  }
  for (const conformance::FamilyCoverage& family : plan.list.coverage) {
    fmt::print("{}: {} cases\n", family.family, family.cases);
    for (const conformance::Axis& axis : family.axes) {
      fmt::print("  {:<12}  {}\n", axis.name, fmt::join(axis.values, ", "));
    }
    for (const conformance::Coverage& tuples : family.tuples) {
      fmt::print("  {} values     {} of {} valid combinations, {:.1f} %\n", tuples.strength, tuples.covered,
                 tuples.valid, 100.0 * static_cast<double>(tuples.covered) / static_cast<double>(tuples.valid));
    }
    for (const conformance::Exclusion& exclusion : family.excluded) {
      fmt::print("  left out      {}: {}\n", exclusion.tuple, exclusion.reason);
    }
  }
  return static_cast<int>(contract::ExitCode::kOk);
}

// Only the listed mutants, each until its first failure. The time-out is theirs: truths and the clean twin are slower.
void TryMutants(const VerifyOptions& options, conformance::VerifyOptions& verify) {
  verify.listed_defects =
      ReadOption("--mutants", options.mutants, [&] { return conformance::ReadDefectList(options.mutants); });
  verify.engines.optimized_defects = std::filesystem::absolute(options.mutant_engine);
  verify.listed_cases_at_most = options.num_mutant_cases;
  verify.listed_timeout_s = verify.plan.timeout_s;
  verify.plan.timeout_s = VerifyOptions{}.timeout_s;
  verify.run_defects = true;
  verify.run_cases = false;
  verify.first_kill = true;
}

// All but the folders.
conformance::VerifyOptions VerifyOptionsOf(const VerifyOptions& options) {
  conformance::VerifyOptions verify;
  verify.plan = PlanOf(options);
  verify.engines = OwnEngines();
  if (!options.engine.empty()) {
    verify.foreign_engine = conformance::EngineProgram{std::filesystem::absolute(options.engine), {}};
  }
  verify.text = options.text.empty() ? DefaultText() : std::filesystem::path(options.text);
  verify.jobs =
      options.num_jobs > 0 ? options.num_jobs : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  const bool narrowed = !options.case_id.empty() || !options.case_file.empty() || !options.filter.empty();
  verify.run_defects = options.self_test || !(options.no_self_test || narrowed);
  verify.all_defects = options.self_test || verify.plan.tier != conformance::Tier::kSmoke;
  verify.run_cases = !options.self_test;
  verify.first_kill = !options.every_kill;
  if (!options.mutants.empty()) TryMutants(options, verify);
  verify.require = options.require;
  verify.expected_unsupported = options.expect_unsupported;
  verify.reproduce_prefix = ReproducePrefix(options);
  verify.shrink_s = options.shrink_s;
  verify.line_of_case_file = [options](const std::filesystem::path& file) { return CaseFileLine(options, file); };
  return verify;
}

int RunInto(const ResultFolder& folder, const VerifyOptions& options, conformance::VerifyOptions verify,
            std::stop_token stop) {
  const WorkFolder work(folder.path(), options.keep);
  verify.work_dir = work.path();
  verify.keep = options.keep;
  verify.failures_dir = folder.path() / "failures";
  reports::Record record;
  {
    ProgressLine line;
    record =
        conformance::Verify(verify, stop, [&](const conformance::VerifyProgress& progress) { line.Show(progress); });
  }
  PrintAndWrite(folder, record, options.json ? reports::ToJson(record) : VerifyTable(record, options.verbose),
                !options.json);
  return static_cast<int>(record.exit_code);
}

int Run(VerifyOptions options) {
  ParseNumbers(options);
  CheckCombination(options);
  if (options.coverage) return PrintCoverage(options);
  if (options.list || options.dry_run) return PrintPlan(options);
  const conformance::VerifyOptions verify = VerifyOptionsOf(options);  // refuses bad options before a folder is made
  CheckText(options, conformance::MakePlan(verify.plan));
  const ResultFolder folder(options.out, "verify");
  const InterruptWatcher interrupt("ending engines; what was judged goes into " + folder.record_shown() +
                                   "; again to quit at once, without it");
  try {
    const int code = RunInto(folder, options, verify, interrupt.token());
    return interrupt.exit_code().value_or(code);
  } catch (const contract::Error& error) {
    if (error.code() == ErrorCode::kInvalidArgument) folder.Discard();
    if (options.engine.empty()) throw;  // and an empty path has no absolute one
    const std::string what = error.what();
    const std::string named = "engine " + std::filesystem::absolute(options.engine).string();
    if (!what.starts_with(named + ":")) throw;
    contract::Fail(error.code(), OfOption("--engine", options.engine, named, what));
  }
}

}  // namespace

Command AddVerify(CLI::App& app) {
  const auto options = std::make_shared<VerifyOptions>();
  AddVerifyOptions(app, *options);
  return [options] { return Run(*options); };
}

}  // namespace plumbline::cli
