// SPDX-License-Identifier: Apache-2.0
// `plumbline verify`: its options, and what it prints.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
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
#include "cli/plan_json.h"
#include "cli/programs.h"
#include "cli/progress_line.h"
#include "cli/result_folder.h"
#include "cli/verify_table.h"
#include "conformance/contract/error.h"
#include "conformance/oracle/ledger_check.h"
#include "conformance/oracle/memory_formula.h"
#include "conformance/runner/lone_case_file.h"
#include "conformance/runner/plan.h"
#include "conformance/runner/verify.h"
#include "reports/record/record.h"

namespace plumbline::cli {
namespace {

using contract::ErrorCode;

constexpr int kMaxJobs = 256;

struct Options {
  bool list = false;
  bool dry_run = false;
  bool coverage = false;
  bool self_test = false;
  bool no_self_test = false;
  bool require = false;
  bool first_kill = false;
  bool keep = false;
  bool json = false;
  bool verbose = false;
  std::string tier = "smoke";
  std::string case_id;
  std::string case_file;
  std::string filter;
  std::string engine;
  std::vector<std::string> expect_unsupported;
  std::string text;
  std::string out;
  std::string shard;
  std::string mutants;
  std::string mutant_engine;
  int mutant_cases = 0;
  std::string seed = "1";
  int jobs = 0;
  double timeout_s = 60;
  double shrink_s = 20;
};

// CLI11 wraps -1 and 2^64 into range, so the seed is parsed here.
uint64_t ParseSeed(const std::string& text) {
  uint64_t seed = 0;
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, seed);
  if (parsed.ec == std::errc() && parsed.ptr == end) return seed;
  contract::Fail(ErrorCode::kInvalidArgument,
                 "--seed is \"" + text + "\"; allowed: an integer from 0 to 18446744073709551615");
}

// Positive form, so that NaN is refused (CLI11's Range lets it pass).
double CheckedTimeout(double seconds) {
  constexpr double kMin = 0.1;
  constexpr double kMax = 86400;
  if (seconds >= kMin && seconds <= kMax) return seconds;
  contract::Fail(ErrorCode::kInvalidArgument,
                 fmt::format("--timeout is {}; allowed: {} to {} seconds", seconds, kMin, kMax));
}

double CheckedShrink(double seconds) {
  constexpr double kMax = 86400;
  if (seconds >= 0 && seconds <= kMax) return seconds;
  contract::Fail(ErrorCode::kInvalidArgument,
                 fmt::format("--shrink is {}; allowed: 0 (off) to {} seconds", seconds, kMax));
}

// "i/n" with 1 <= i <= n.
void ParseShard(const std::string& text, conformance::Selection& selection) {
  const char* end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), end, selection.shard_index);
  const bool slash = first.ec == std::errc() && first.ptr != end && *first.ptr == '/';
  const auto second = slash ? std::from_chars(first.ptr + 1, end, selection.shard_count) : first;
  if (slash && second.ec == std::errc() && second.ptr == end && selection.shard_index >= 1 &&
      selection.shard_index <= selection.shard_count) {
    return;
  }
  contract::Fail(ErrorCode::kInvalidArgument, "--shard is \"" + text + "\"; allowed: i/n with 1 <= i <= n");
}

conformance::Tier ParseTier(const std::string& text) {
  std::string allowed;
  for (size_t i = 0; i < std::size(conformance::kTiers); ++i) {
    const std::string name(conformance::kTiers[i].name);
    if (name == text) return static_cast<conformance::Tier>(i);
    allowed += (allowed.empty() ? "" : ", ") + name;
  }
  contract::Fail(ErrorCode::kInvalidArgument, "--tier is \"" + text + "\"; allowed: " + allowed);
}

conformance::PlanOptions PlanOf(const Options& options) {
  if (!options.case_file.empty()) return conformance::LonePlanOptions(conformance::ReadLoneCase(options.case_file));
  conformance::PlanOptions plan;
  plan.tier = ParseTier(options.tier);
  plan.seed = ParseSeed(options.seed);
  plan.timeout_s = CheckedTimeout(options.timeout_s);
  plan.with_witness = options.engine.empty();
  if (!options.case_id.empty()) plan.selection.case_id = options.case_id;
  if (!options.filter.empty()) plan.selection.filter = options.filter;
  if (!options.shard.empty()) ParseShard(options.shard, plan.selection);
  return plan;
}

// A word as a shell takes it back.
std::string Quoted(const std::string& word) {
  const bool plain =
      word.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-=+,:@") ==
      std::string::npos;
  if (plain && !word.empty()) return word;
  std::string quoted = "'";
  for (char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

// A line with what every reproduction needs: the text and the engine.
std::string LineWith(const Options& options, const std::string& selection) {
  std::string line = "./plumbline verify " + selection;
  if (!options.text.empty()) line += " --text " + Quoted(options.text);
  if (options.timeout_s != Options{}.timeout_s) line += fmt::format(" --timeout {}", options.timeout_s);
  if (!options.engine.empty()) line += " --engine " + Quoted(options.engine);
  return line;
}

// The case file states seed and time-out.
std::string CaseFileLine(Options options, const std::filesystem::path& file) {
  options.timeout_s = Options{}.timeout_s;
  return LineWith(options, "--case-file " + Quoted(std::filesystem::relative(file).string()));
}

std::string ReproducePrefix(const Options& options) {
  if (!options.case_file.empty()) return CaseFileLine(options, options.case_file);
  const bool other_tier = options.tier != Options{}.tier;
  return LineWith(options, "--seed " + options.seed + (other_tier ? " --tier " + options.tier : ""));
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

int PrintPlan(const Options& options) {
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
  if (options.list && options.json) std::fputs(ListJson(ids).c_str(), stdout);
  if (!plan.cases.empty()) return static_cast<int>(contract::ExitCode::kOk);
  std::fprintf(stderr, "plumbline: no case was selected\n");
  return static_cast<int>(contract::ExitCode::kFailure);
}

// What the cases of the tier cover, whatever is selected of them.
int PrintCoverage(const Options& options) {
  const conformance::Plan plan = conformance::MakePlan(PlanOf(options));
  if (options.json) {
    std::fputs(CoverageJson(options.tier, plan.list.coverage).c_str(), stdout);
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
void TryMutants(const Options& options, conformance::VerifyOptions& verify) {
  verify.listed_defects = conformance::ReadDefectList(options.mutants);
  verify.engines.optimized_defects = std::filesystem::absolute(options.mutant_engine);
  if (options.mutant_cases > 0) verify.listed_cases_at_most = static_cast<size_t>(options.mutant_cases);
  verify.listed_timeout_s = verify.plan.timeout_s;
  verify.plan.timeout_s = Options{}.timeout_s;
  verify.run_defects = true;
  verify.run_cases = false;
  verify.first_kill = true;
}

// All but the folders.
conformance::VerifyOptions VerifyOptionsOf(const Options& options) {
  conformance::VerifyOptions verify;
  verify.plan = PlanOf(options);
  verify.engines = OwnEngines();
  if (!options.engine.empty()) {
    verify.foreign_engine = conformance::EngineProgram{std::filesystem::absolute(options.engine), {}};
  }
  verify.text = options.text.empty() ? DefaultText() : std::filesystem::path(options.text);
  verify.jobs = options.jobs > 0 ? options.jobs : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  const bool narrowed = !options.case_id.empty() || !options.case_file.empty() || !options.filter.empty();
  verify.run_defects = options.self_test || !(options.no_self_test || narrowed);
  verify.all_defects = options.self_test || verify.plan.tier != conformance::Tier::kSmoke;
  verify.run_cases = !options.self_test;
  // A smoke run shows that defects are caught, not by how many checks: that is what --self-test is for.
  verify.first_kill = options.first_kill || (verify.run_cases && verify.plan.tier == conformance::Tier::kSmoke);
  if (!options.mutants.empty()) TryMutants(options, verify);
  verify.require = options.require;
  verify.expected_unsupported = options.expect_unsupported;
  verify.reproduce_prefix = ReproducePrefix(options);
  verify.shrink_s = CheckedShrink(options.shrink_s);
  verify.line_of_case_file = [options](const std::filesystem::path& file) { return CaseFileLine(options, file); };
  return verify;
}

int RunInto(const ResultFolder& folder, const Options& options, conformance::VerifyOptions verify,
            std::stop_token stop) {
  const WorkFolder work(folder.path(), options.keep);
  verify.work_dir = work.path();
  verify.failures_dir = folder.path() / "failures";
  reports::Record record;
  {
    ProgressLine line;
    record =
        conformance::Verify(verify, stop, [&](const conformance::VerifyProgress& progress) { line.Show(progress); });
  }
  WriteResults(folder.path(), record);
  if (options.json) {
    std::fputs(reports::ToJson(record).c_str(), stdout);
  } else {
    std::fputs(VerifyTable(record, options.verbose).c_str(), stdout);
    std::printf("Record: %s\n", std::filesystem::relative(folder.path() / "record.json").c_str());
  }
  std::fflush(stdout);  // removing the work folder may take a while
  return static_cast<int>(record.exit_code);
}

int Run(const Options& options) {
  if (options.coverage) return PrintCoverage(options);
  if (options.list || options.dry_run) return PrintPlan(options);
  if (options.self_test && options.no_self_test) {
    contract::Fail(ErrorCode::kInvalidArgument, "--self-test and --no-self-test exclude each other");
  }
  const conformance::VerifyOptions verify = VerifyOptionsOf(options);  // refuses bad options before a folder is made
  const InterruptWatcher interrupt;
  const ResultFolder folder(options.out, "verify");
  try {
    return RunInto(folder, options, verify, interrupt.token());
  } catch (const contract::Error& error) {
    if (error.code() == ErrorCode::kInvalidArgument) folder.Discard();
    throw;
  }
}

}  // namespace

Command AddVerify(CLI::App& app) {
  CLI::App* command = app.add_subcommand("verify", "Does an engine train what the reference trains?");
  const auto options = std::make_shared<Options>();
  command->add_flag("--list", options->list,
                    "Print the ids of the selected cases and run nothing (the twin's, which come with planted defects, "
                    "are not among them)");
  command->add_flag(
      "--dry-run", options->dry_run,
      "Print each selected case's resolved config, predicted collectives and memory, one JSON object a line");
  command->add_option("--tier", options->tier, "smoke (a minute), full (minutes, every planted defect), nightly")
      ->type_name("TIER");
  command->add_flag("--coverage", options->coverage, "Print which combinations of settings the tier's cases cover");
  command->add_option("--case", options->case_id, "Run exactly this case")->type_name("ID");
  CLI::Option* case_file =
      command
          ->add_option("--case-file", options->case_file,
                       "Run exactly the case of this file, shrunk.json of a failed case say (docs/formats.md)")
          ->type_name("FILE");
  command
      ->add_option("--filter", options->filter,
                   "Run the cases whose whole id matches this shell pattern, '*/data3-*' say")
      ->type_name("PATTERN");
  command->add_option("--shard", options->shard, "Run part i of n (i/n) of the selection; see `plumbline merge`")
      ->type_name("i/n");
  command->add_option("--engine", options->engine, "Judge this program instead of our own engine (docs/formats.md)")
      ->type_name("PROGRAM");
  command
      ->add_option("--expect-unsupported", options->expect_unsupported,
                   "Cases that the engine may decline, as a shell pattern; repeatable")
      ->type_name("PATTERN");
  command->add_option("--text", options->text, "Text or token file to train on (default: LICENSE)")->type_name("FILE");
  command->add_option("--seed", options->seed, "Seed of data, weights and dropout (default: 1)");
  command->add_option("--jobs", options->jobs, "Engines that run at once (default: number of processors)")
      ->type_name(fmt::format("N from 1 to {}", kMaxJobs))
      ->check(CLI::Range(1, kMaxJobs).description(""));
  command->add_option("--timeout", options->timeout_s, "Seconds that a case may take (default: 60)")
      ->type_name("SECONDS");
  command
      ->add_option("--out", options->out, "New or empty folder for the results (default: a new one in plumbline-out/)")
      ->type_name("FOLDER");
  command->add_flag("--self-test", options->self_test,
                    "Only show that the checks catch every planted defect (tier smoke tries nine)");
  command->add_flag("--no-self-test", options->no_self_test, "Leave the planted defects out");
  command
      ->add_option("--shrink", options->shrink_s,
                   "Seconds in which failed cases are made smaller while they still fail (default: 20; 0: not)")
      ->type_name("SECONDS");
  CLI::Option* const mutants =
      command
          ->add_option(
              "--mutants", options->mutants,
              "Only try the mutants in this file, each until one case fails (conformance/mutants/run_mutants.py)")
          ->type_name("FILE");
  command->add_option("--mutant-engine", options->mutant_engine, "The program that has the mutants of --mutants")
      ->type_name("PROGRAM")
      ->needs(mutants);
  command->add_option("--mutant-cases", options->mutant_cases, "Try mutants on the first N of their cases only")
      ->type_name("N from 1 to 1000")
      ->check(CLI::Range(1, 1000).description(""))
      ->needs(mutants);
  mutants->needs("--mutant-engine");
  command->add_flag("--require", options->require, "NOT_RUN is a failure");
  command->add_flag(
      "--first-kill", options->first_kill,
      "Try a planted defect on no more cases once a check that is meant for it has caught it (as tier smoke does)");
  command->add_flag("--keep", options->keep, "Keep the folders of all cases, not only of failed ones");
  command->add_flag("--json", options->json,
                    "Print JSON only: the record, or what --list or --coverage print (docs/formats.md)");
  command->add_flag("--verbose", options->verbose, "Print a line for each case");
  // The file says what these would.
  for (const char* name :
       {"--case", "--filter", "--tier", "--shard", "--seed", "--timeout", "--self-test", "--coverage", "--mutants"}) {
    case_file->excludes(command->get_option(name));
  }
  command->footer(std::string("Examples:\n"
                              "  ./plumbline verify\n"
                              "  ./plumbline verify --tier full\n"
                              "  ./plumbline verify --text notes.txt --seed 7\n"
                              "  ./plumbline verify --filter '*/data3-*' --verbose\n"
                              "  ./plumbline verify --engine ./my_engine --expect-unsupported '*bf16*'\n"
                              "  ./plumbline verify --shard 1/4 --out shard1\n\n") +
                  kExitCodes);
  return [options] { return Run(*options); };
}

}  // namespace plumbline::cli
