// SPDX-License-Identifier: Apache-2.0
#include "conformance/runner/verify_record.h"

#include <gtest/gtest.h>

#include <fstream>

#include "conformance/contract/testing/temporary_folder.h"

namespace plumbline::conformance {
namespace {

using reports::Verdict;

PlannedCase Entry(Role role = Role::kCandidate) {
  PlannedCase entry;
  entry.id = "exact/sgd/data3-fp32";
  entry.role = role;
  entry.spec.steps = 60;
  entry.spec.config.data_degree = 3;
  entry.axes = {{"data", "3"}, {"storage", "fp32"}};
  return entry;
}

VerifyOptions Options() {
  VerifyOptions options;
  options.reproduce_prefix = "./plumbline verify --seed 7";
  return options;
}

reports::CaseRecord Of(const PlannedCase& entry, const VerifyOptions& options, Verdict verdict = Verdict::kPass) {
  Judgement judgement = NotStarted(verdict, "why");
  judgement.checks = {{"exact", reports::CheckOutcome::kPass, 12, ""}};
  return RecordOf(entry, judgement, "ours", 1.5, options);
}

TEST(RecordOf, SaysWhatWasRunAndWhatCameOfIt) {
  const reports::CaseRecord record = Of(Entry(), Options(), Verdict::kFail);
  EXPECT_EQ(record.id, Entry().id);
  EXPECT_EQ(record.verdict, Verdict::kFail);
  EXPECT_EQ(record.engine, "ours");
  EXPECT_EQ(record.message, "why");
  EXPECT_EQ(record.checks.size(), 1u);
  EXPECT_EQ(record.axes.at("storage"), "fp32");
  EXPECT_EQ(record.seconds, 1.5);
  EXPECT_EQ(record.steps, 60);
  EXPECT_EQ(record.ranks, 3);
}

TEST(RecordOf, HasALineThatRunsTheCaseAgain) {
  EXPECT_EQ(Of(Entry(), Options()).reproduce, "./plumbline verify --seed 7 --case exact/sgd/data3-fp32");
  // --case knows no twins; those run with --self-test.
  const reports::CaseRecord twin = Of(Entry(Role::kCleanTwin), Options());
  EXPECT_EQ(twin.reproduce, "./plumbline verify --seed 7 --self-test");
  EXPECT_EQ(twin.engine, "ours (twin)");
  VerifyOptions lone = Options();
  lone.plan.lone = contract::Case();
  EXPECT_EQ(Of(Entry(), lone).reproduce, "./plumbline verify --seed 7");
}

TEST(RecordOf, ExpectsUnsupportedOfListedCasesOfThatVerdictAlone) {
  VerifyOptions options = Options();
  options.expected_unsupported = {"gpt2/*", "exact/*-fp32"};
  for (Verdict verdict : reports::kVerdicts) {
    EXPECT_EQ(Of(Entry(), options, verdict).expected_unsupported, verdict == Verdict::kUnsupported) << Name(verdict);
  }
  options.expected_unsupported = {"gpt2/*", "exact/*-bf16"};
  EXPECT_FALSE(Of(Entry(), options, Verdict::kUnsupported).expected_unsupported);
}

TEST(NewRecord, NamesSeedTextEngineShardAndWhatWasSelected) {
  const contract::testing::TemporaryFolder folder;
  std::ofstream(folder / "words.txt") << "twelve bytes";
  VerifyOptions options = Options();
  options.text = folder / "words.txt";
  options.jobs = 5;
  options.plan.seed = 7;
  options.plan.selection.shard_index = 2;
  options.plan.selection.shard_count = 3;
  VerifyEngines engines;
  engines.candidate.program.program = "/somewhere/engine";
  engines.candidate.description.name = "theirs";
  engines.candidate.description.version = "9";

  const reports::Record record = NewRecord(options, engines, 31);
  EXPECT_EQ(record.command, "verify");
  EXPECT_EQ(record.seed, 7u);
  EXPECT_EQ(record.listed, 31);
  EXPECT_EQ(record.text, (reports::TextSource{"words.txt", 12}));
  EXPECT_EQ(record.engine, (reports::EngineRecord{"theirs", "9", "engine"}));
  EXPECT_EQ(record.shard, (reports::ShardRecord{2, 3}));
  EXPECT_EQ(record.options.at("jobs"), "5");
  EXPECT_EQ(record.options.at("self_test"), "on");
  for (const char* key : {"filter", "case", "case_file"}) EXPECT_FALSE(record.options.contains(key)) << key;
  EXPECT_FALSE(record.environment.contains("libtorch")) << "the witness was not asked";

  options.plan.selection.filter = "exact/*";
  options.plan.selection.case_id = "exact/a";
  options.plan.lone = contract::Case();
  options.plan.lone->id = "from-a-file";
  options.run_defects = false;
  engines.witness.description.name = "torch_eager";
  engines.witness.description.version = "2.5";
  const reports::Record selected = NewRecord(options, engines, 1);
  EXPECT_EQ(selected.options.at("filter"), "exact/*");
  EXPECT_EQ(selected.options.at("case"), "exact/a");
  EXPECT_EQ(selected.options.at("case_file"), "from-a-file");
  EXPECT_EQ(selected.options.at("self_test"), "off");
  EXPECT_EQ(selected.environment.at("libtorch"), "2.5");
}

}  // namespace
}  // namespace plumbline::conformance
