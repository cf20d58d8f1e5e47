// SPDX-License-Identifier: Apache-2.0
#include "conformance/runner/verify_record.h"

#include <fnmatch.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "conformance/runner/environment.h"

namespace plumbline::conformance {
namespace {

std::string ReproduceLine(const PlannedCase& entry, const VerifyOptions& options) {
  if (options.plan.lone) return options.reproduce_prefix;
  return options.reproduce_prefix + (entry.role == Role::kCleanTwin ? " --self-test" : " --case " + entry.id);
}

}  // namespace

reports::Record NewRecord(const VerifyOptions& options, const VerifyEngines& engines, int64_t listed) {
  reports::Record record;
  record.command = "verify";
  record.created = UtcNow();
  record.seed = options.plan.seed;
  record.listed = listed;
  record.text = {options.text.filename().string(), static_cast<int64_t>(std::filesystem::file_size(options.text))};
  record.environment = EnvironmentFingerprint();
  if (!engines.witness.description.name.empty()) {
    record.environment["libtorch"] = engines.witness.description.version;
  }
  const Engine& candidate = engines.candidate;
  record.engine = {candidate.description.name, candidate.description.version,
                   candidate.program.program.filename().string()};
  const Selection& selection = options.plan.selection;
  record.shard = {selection.shard_index, selection.shard_count};
  record.options["tier"] = SizesOf(options.plan.tier).name;
  record.options["jobs"] = std::to_string(options.jobs);
  if (options.plan.lone) record.options["case_file"] = options.plan.lone->id;
  if (selection.filter) record.options["filter"] = *selection.filter;
  if (selection.case_id) record.options["case"] = *selection.case_id;
  record.options["self_test"] = options.run_defects ? "on" : "off";
  return record;
}

reports::CaseRecord RecordOf(const PlannedCase& entry, Judgement judgement, const std::string& engine, double seconds,
                             const VerifyOptions& options) {
  reports::CaseRecord record;
  record.id = entry.id;
  record.verdict = judgement.verdict;
  record.engine = engine + (entry.role == Role::kCleanTwin   ? " (twin)"
                            : entry.role == Role::kProcesses ? " (processes)"
                                                             : "");
  record.axes.insert(entry.axes.begin(), entry.axes.end());
  record.checks = std::move(judgement.checks);
  record.message = std::move(judgement.message);
  record.reproduce = ReproduceLine(entry, options);
  record.seconds = seconds;
  record.steps = entry.spec.steps;
  record.ranks = entry.spec.config.world_size();
  record.expected_unsupported =
      record.verdict == reports::Verdict::kUnsupported &&
      std::any_of(options.expected_unsupported.begin(), options.expected_unsupported.end(),
                  [&](const std::string& pattern) { return fnmatch(pattern.c_str(), entry.id.c_str(), 0) == 0; });
  return record;
}

}  // namespace plumbline::conformance
