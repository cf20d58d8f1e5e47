// SPDX-License-Identifier: Apache-2.0
#include "cli/verify_options.h"

#include <fmt/format.h>

#include <charconv>
#include <limits>
#include <set>

#include "cli/commands.h"
#include "cli/option_values.h"
#include "conformance/contract/batch_source.h"
#include "conformance/contract/error.h"
#include "conformance/contract/strict_json.h"
#include "conformance/engines/run_cases.h"
#include "conformance/runner/lone_case_file.h"

namespace plumbline::cli {
namespace {

using contract::ErrorCode;

constexpr IntegerRange kSeeds{0, std::numeric_limits<uint64_t>::max()};
constexpr IntegerRange kJobs{1, 256};
constexpr IntegerRange kMutantCases{1, 1000};
constexpr SecondsRange kTimeouts{0.1, 86400};
constexpr SecondsRange kShrinks{0, 86400};
constexpr const char* kShardText = "i/n with 1 <= i <= n";

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
  RefuseValue("--shard", text, kShardText);
}

std::string TierNames() {
  std::string names;
  for (const auto& tier : conformance::kTiers) names += (names.empty() ? "" : ", ") + std::string(tier.name);
  return names;
}

conformance::Tier ParseTier(const std::string& text) {
  for (size_t i = 0; i < std::size(conformance::kTiers); ++i) {
    if (conformance::kTiers[i].name == text) return static_cast<conformance::Tier>(i);
  }
  RefuseValue("--tier", text, TierNames());
}

// A hung engine costs more than the time-out says, in each of its starts.
std::string TimeoutHelp() {
  const conformance::RunLimits limits;
  return fmt::format(
      "Seconds that a case may take (default: {}). The first case after each start of an engine gets {:g} more to load "
      "it; one that hangs is then ended within {:g} s, and the engine is started again for the others",
      VerifyOptions{}.timeout, limits.start_allowance_s, limits.term_grace_s);
}

}  // namespace

void ParseNumbers(VerifyOptions& options) {
  options.seed_number = kSeeds.Parse("--seed", options.seed);
  if (!options.jobs.empty()) options.num_jobs = static_cast<int>(kJobs.Parse("--jobs", options.jobs));
  options.timeout_s = kTimeouts.Parse("--timeout", options.timeout);
  options.shrink_s = kShrinks.Parse("--shrink", options.shrink);
  if (!options.mutant_cases.empty())
    options.num_mutant_cases = kMutantCases.Parse("--mutant-cases", options.mutant_cases);
}

void CheckCombination(const VerifyOptions& options) {
  const auto exclude = [](bool both, const char* names) {
    if (both) contract::Fail(ErrorCode::kInvalidArgument, std::string(names) + " exclude each other");
  };
  exclude(options.self_test && options.no_self_test, "--self-test and --no-self-test");
  exclude(options.list && options.dry_run, "--list and --dry-run");
  exclude(options.list && options.coverage, "--list and --coverage");
  exclude(options.dry_run && options.coverage, "--dry-run and --coverage");
}

conformance::PlanOptions PlanOf(const VerifyOptions& options) {
  if (!options.case_file.empty()) {
    return conformance::LonePlanOptions(
        ReadOption("--case-file", options.case_file, [&] { return conformance::ReadLoneCase(options.case_file); }));
  }
  conformance::PlanOptions plan;
  plan.tier = ParseTier(options.tier);
  plan.seed = options.seed_number;
  plan.timeout_s = options.timeout_s;
  plan.with_witness = options.engine.empty();
  plan.with_processes = options.engine.empty();
  if (!options.case_id.empty()) plan.selection.case_id = options.case_id;
  if (!options.filter.empty()) plan.selection.filter = options.filter;
  if (!options.shard.empty()) ParseShard(options.shard, plan.selection);
  return plan;
}

void CheckText(const VerifyOptions& options, const conformance::Plan& plan) {
  if (options.text.empty()) return;
  const contract::TokenSource source =
      ReadOption("--text", options.text, [&] { return contract::ReadTokenSource(options.text); });
  std::set<int> problems;
  for (const conformance::PlannedCase& entry : plan.cases) problems.insert(entry.problem);
  for (int problem : problems) {
    const contract::ModelSpec& model = plan.list.problems[static_cast<size_t>(problem)].model;
    const auto reason = contract::WhyNotTrainable(source, model);
    if (reason) contract::Fail(ErrorCode::kInvalidArgument, "--text " + options.text + ": " + *reason);
  }
}

CLI::App* AddVerifyOptions(CLI::App& app, VerifyOptions& options) {
  CLI::App* command = app.add_subcommand("verify", "Does an engine train what the reference trains?");
  command->add_flag("--list", options.list,
                    "Print the ids of the selected cases and run nothing (the twin's, which come with planted defects, "
                    "are not among them)");
  command->add_flag(
      "--dry-run", options.dry_run,
      "Print each selected case's resolved config, predicted collectives and memory, one JSON object a line");
  command->add_option("--tier", options.tier, "smoke (a minute), full (minutes, every planted defect), nightly")
      ->type_name(TierNames());
  command->add_flag("--coverage", options.coverage, "Print which combinations of settings the tier's cases cover");
  CLI::Option* const one_case =
      command->add_option("--case", options.case_id, "Run exactly this case")->type_name("ID");
  CLI::Option* case_file =
      command
          ->add_option("--case-file", options.case_file,
                       "Run exactly the case of this file, shrunk.json of a failed case say (docs/formats.md)")
          ->type_name("FILE");
  command
      ->add_option("--filter", options.filter,
                   "Run the cases whose whole id matches this shell pattern, '*/data3-*' say")
      ->type_name("PATTERN");
  command->add_option("--shard", options.shard, "Run part i of n (i/n) of the selection; see `plumbline merge`")
      ->type_name(kShardText);
  command->add_option("--engine", options.engine, "Judge this program instead of our own engine (docs/formats.md)")
      ->type_name("PROGRAM");
  command
      ->add_option("--expect-unsupported", options.expect_unsupported,
                   "Cases that the engine may decline, as a shell pattern; repeatable")
      ->type_name("PATTERN");
  command->add_option("--text", options.text, "Text or token file to train on (default: LICENSE)")->type_name("FILE");
  command->add_option("--seed", options.seed, "Seed of data, weights and dropout (default: 1)")
      ->type_name(kSeeds.text());
  command->add_option("--jobs", options.jobs, "Engines that run at once (default: number of processors)")
      ->type_name(kJobs.text());
  command->add_option("--timeout", options.timeout, TimeoutHelp())->type_name(kTimeouts.text());
  command
      ->add_option("--out", options.out, "New or empty folder for the results (default: a new one in plumbline-out/)")
      ->type_name("FOLDER");
  command->add_flag("--self-test", options.self_test,
                    "Only show that the checks catch every planted defect (tier smoke tries eight)");
  command->add_flag("--no-self-test", options.no_self_test, "Leave the planted defects out");
  command
      ->add_option("--shrink", options.shrink,
                   "Seconds in which failed cases are made smaller while they still fail (default: 20; 0: not)")
      ->type_name(kShrinks.text());
  CLI::Option* const mutants =
      command
          ->add_option(
              "--mutants", options.mutants,
              "Only try the mutants in this file, each until one case fails (conformance/mutants/run_mutants.py)")
          ->type_name("FILE");
  command->add_option("--mutant-engine", options.mutant_engine, "The program that has the mutants of --mutants")
      ->type_name("PROGRAM")
      ->needs(mutants);
  command->add_option("--mutant-cases", options.mutant_cases, "Try mutants on the first N of their cases only")
      ->type_name(kMutantCases.text())
      ->needs(mutants);
  mutants->needs("--mutant-engine");
  command->add_flag("--require", options.require, "NOT_RUN is a failure");
  command->add_flag("--every-kill", options.every_kill,
                    "Try a planted defect on all of its cases, and name every check that catches it, not only until a "
                    "check that is meant for it has (many minutes)");
  command->add_flag("--keep", options.keep, "Keep the folders of all cases, not only of failed ones");
  command->add_flag("--json", options.json,
                    "Print JSON only: the record, or what --list or --coverage print (docs/formats.md)");
  command->add_flag("--verbose", options.verbose, "Print a line for each case");
  for (const char* name : {"--filter", "--shard"}) one_case->excludes(command->get_option(name));
  // The file says what these would.
  for (const char* name :
       {"--case", "--filter", "--tier", "--shard", "--seed", "--timeout", "--self-test", "--coverage", "--mutants"}) {
    case_file->excludes(command->get_option(name));
  }
  command->footer(std::string("Examples:\n"
                              "  ./plumbline verify\n"
                              "  ./plumbline verify --tier full\n"
                              "  ./plumbline verify --text README.md --seed 7\n"
                              "  ./plumbline verify --filter '*/data3-*' --verbose\n"
                              "  ./plumbline verify --engine bazel-bin/optimized/engine/optimized\n"
                              "  ./plumbline verify --shard 1/4 --out shard1\n\n") +
                  kExitCodes);
  return command;
}

}  // namespace plumbline::cli
