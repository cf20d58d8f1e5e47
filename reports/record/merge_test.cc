// SPDX-License-Identifier: Apache-2.0
#include "reports/record/merge.h"

#include <gtest/gtest.h>

#include <vector>

namespace plumbline::reports {
namespace {

// Shard index/count with one passing case of its own.
Record Shard(int64_t index, int64_t count) {
  Record record;
  record.created = "2030-01-31T23:59:0" + std::to_string(9 - index) + "Z";
  record.seed = 7;
  record.options = {{"text", "data.txt"}, {"jobs", std::to_string(index)}, {"out", "here"}};
  record.text = {.name = "data.txt", .size_bytes = 99};
  record.environment = {{"commit", "abc"}, {"cores", std::to_string(index)}, {"os", "linux"}};
  record.engine = {.name = "optimized", .version = "0.1", .program = "optimized"};
  record.shard = {.index = index, .count = count};
  CaseRecord entry;
  entry.id = "case" + std::to_string(index);
  entry.engine = "optimized";
  entry.checks = {{"exact", CheckOutcome::kPass, 9, ""}};
  record.cases = {entry};
  record.listed = 1;
  Finish(record, false);
  return record;
}

std::string Refusal(const std::vector<Record>& shards, const MergeOptions& options = {}) {
  try {
    Merge(shards, options);
  } catch (const RecordError& error) {
    return error.what();
  }
  ADD_FAILURE() << "merged";
  return "";
}

TEST(Merge, JoinsShardsInTheirOrderWhateverTheOrderGiven) {
  const Record merged = Merge(std::vector<Record>{Shard(3, 3), Shard(1, 3), Shard(2, 3)});
  EXPECT_EQ(merged.shard, (ShardRecord{.index = 1, .count = 1}));
  ASSERT_EQ(merged.cases.size(), 3u);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(merged.cases[i].id, "case" + std::to_string(i + 1));
  EXPECT_EQ(merged.listed, 3);
  EXPECT_EQ(merged.totals, (VerdictTotals{.pass = 3}));
  EXPECT_EQ(merged.exit_code, 0);
  EXPECT_EQ(merged.created, "2030-01-31T23:59:06Z");  // the earliest
  EXPECT_TRUE(merged.missing_shards.empty());
  CheckTotals(merged);
}

TEST(Merge, OfOneCompleteRecordKeepsItsResults) {
  const Record only = Shard(1, 1);
  EXPECT_EQ(Merge(std::vector<Record>{only}), only);
}

TEST(Merge, JoinsWhatMayDifferAndDropsFreeOptionsThatDo) {
  const Record merged = Merge(std::vector<Record>{Shard(1, 2), Shard(2, 2)});
  EXPECT_EQ(merged.environment.at("cores"), "1 | 2");
  EXPECT_EQ(merged.environment.at("os"), "linux");
  EXPECT_EQ(merged.options, (std::map<std::string, std::string>{{"text", "data.txt"}, {"out", "here"}}));
}

TEST(Merge, RecomputesTheExitCode) {
  std::vector<Record> shards = {Shard(1, 2), Shard(2, 2)};
  shards[1].cases[0].verdict = Verdict::kFail;
  Finish(shards[1], false);
  shards[1].exit_code = 0;  // whatever it claims
  EXPECT_EQ(Merge(shards).exit_code, 1);

  // A shard whose cases are all NOT_RUN fails alone, but the whole has a PASS.
  shards[1].cases[0].verdict = Verdict::kNotRun;
  Finish(shards[1], false);
  EXPECT_EQ(shards[1].exit_code, 1);
  EXPECT_EQ(Merge(shards).exit_code, 0);
  EXPECT_EQ(Merge(shards, {.require = true}).exit_code, 1);

  shards[1].interrupted = true;
  EXPECT_TRUE(Merge(shards).interrupted);
  EXPECT_EQ(Merge(shards).exit_code, 1);
}

TEST(Merge, EmptyShardOfAShortListIsFine) {
  std::vector<Record> shards = {Shard(1, 2), Shard(2, 2)};
  shards[1].cases.clear();
  shards[1].listed = 0;
  Finish(shards[1], false);
  EXPECT_EQ(Merge(shards).exit_code, 0);
}

TEST(Merge, TakesTheWitnesssLibraryFromTheShardsThatHaveItAndRefusesTwoOfThem) {
  std::vector<Record> shards = {Shard(1, 3), Shard(2, 3), Shard(3, 3)};
  shards[1].environment["libtorch"] = "2.11.0";
  EXPECT_EQ(Merge(shards).environment.at("libtorch"), "2.11.0");
  shards[2].environment["libtorch"] = "2.12.0";
  EXPECT_EQ(
      Refusal(shards),
      "shard 2/3 and shard 3/3 do not belong together: environment libtorch is \"2.11.0\" in one and \"2.12.0\" in "
      "the other");
}

TEST(Merge, NamesAllMissingShards) {
  EXPECT_EQ(Refusal({Shard(2, 5), Shard(4, 5)}), "missing shards: 1/5, 3/5, 5/5; --partial merges without them");
  EXPECT_EQ(Refusal({}), "nothing to merge");
}

TEST(Merge, PartialMergeIsMarkedFailsAndCannotBeMergedAgain) {
  const Record partial = Merge(std::vector<Record>{Shard(2, 3)}, {.allow_partial = true});
  EXPECT_EQ(partial.missing_shards, (std::vector<int64_t>{1, 3}));
  EXPECT_EQ(partial.exit_code, 1);
  EXPECT_EQ(ParseRecord(ToJson(partial), "r"), partial);
  EXPECT_EQ(Refusal({partial}, {.allow_partial = true}), "shard 1/1 is itself a merge with missing shards");
}

TEST(Merge, RefusesAPassOfWhichNothingWasCompared) {
  std::vector<Record> shards = {Shard(1, 2), Shard(2, 2)};
  const std::string refused =
      "shard 2/2: case case2 of engine optimized: verdict is PASS, but no check has compared anything";
  CaseRecord& pass = shards[1].cases[0];
  pass.checks = {};
  EXPECT_EQ(Refusal(shards), refused);
  pass.checks = {{"exact", CheckOutcome::kPass, 0, ""}, {"ledger", CheckOutcome::kNotApplicable, 7, ""}};
  EXPECT_EQ(Refusal(shards), refused);
}

TEST(Merge, RefusesAPassWhoseChecksSayOtherwise) {
  std::vector<Record> shards = {Shard(1, 2), Shard(2, 2)};
  CaseRecord& pass = shards[1].cases[0];
  ASSERT_EQ(pass.verdict, Verdict::kPass);
  for (const auto& [outcome, word] : {std::pair(CheckOutcome::kFail, "fail"), {CheckOutcome::kVacuous, "vacuous"}}) {
    pass.checks = {{"exact", CheckOutcome::kPass, 9, ""}, {"ledger", outcome, 1, "a call is missing"}};
    EXPECT_EQ(Refusal(shards), "shard 2/2: case " + pass.id + " of engine " + pass.engine +
                                   ": verdict is PASS, but its check ledger is " + word);
  }
  pass.checks.back().outcome = CheckOutcome::kNotApplicable;
  EXPECT_EQ(Merge(shards).cases.size(), 2u);
  pass.checks.back().outcome = CheckOutcome::kFail;  // and a failure that says so is none of merge's business
  pass.verdict = Verdict::kFail;
  shards[1].totals = Totals(shards[1]);
  EXPECT_EQ(Merge(shards).exit_code, 1);
}

TEST(Merge, RefusesDuplicates) {
  EXPECT_EQ(Refusal({Shard(1, 2), Shard(1, 2), Shard(2, 2)}), "shard 1/2 was given twice");
  EXPECT_EQ(Refusal({Shard(1, 2), Shard(1, 2)}, {.allow_partial = true}), "shard 1/2 was given twice");

  std::vector<Record> shards = {Shard(1, 2), Shard(2, 2)};
  shards[1].cases[0].id = "case1";
  EXPECT_EQ(Refusal(shards),
            "shard 1/2 and shard 2/2 do not belong together: both hold case case1 of engine optimized");
  shards[1].cases[0].engine = "torch_eager";  // the same case of another engine is another case
  EXPECT_EQ(Merge(shards).cases.size(), 2u);

  shards[0].defects = shards[1].defects = {DefectRecord{.id = "G1", .caught = true}};
  EXPECT_EQ(Refusal(shards), "shard 1/2 and shard 2/2 do not belong together: both hold defect G1");
}

TEST(Merge, JoinsDefects) {
  std::vector<Record> shards = {Shard(1, 2), Shard(2, 2)};
  shards[0].defects = {DefectRecord{.id = "G1", .caught = true}};
  shards[1].defects = {DefectRecord{.id = "G2", .caught = true}};
  EXPECT_EQ(Merge(shards).exit_code, 0);
  shards[1].defects[0].caught = false;
  EXPECT_EQ(Merge(shards).exit_code, 1);
  EXPECT_EQ(Merge(shards).defects.size(), 2u);
}

TEST(Merge, RefusesWhatIsNotTheSameRun) {
  const auto refused = [](const std::string& word, const auto& edit) {
    std::vector<Record> shards = {Shard(1, 2), Shard(2, 2)};
    edit(shards[1]);
    EXPECT_NE(Refusal(shards).find(word), std::string::npos) << Refusal(shards);
  };
  refused("the seed is \"7\" in one and \"8\" in the other", [](Record& r) { r.seed = 8; });
  refused("command", [](Record& r) { r.command = "bench"; });
  refused("the text", [](Record& r) { r.text.name = "other.txt"; });
  refused("size of the text", [](Record& r) { r.text.size_bytes = 100; });
  refused("the engine", [](Record& r) { r.engine.name = "torch_eager"; });
  refused("version", [](Record& r) { r.engine.version = "0.2"; });
  refused("program", [](Record& r) { r.engine.program = "other"; });
  refused("option text", [](Record& r) { r.options["text"] = "other"; });
  refused("option text", [](Record& r) { r.options.erase("text"); });
  refused("option added", [](Record& r) { r.options["added"] = ""; });
  refused("environment commit", [](Record& r) { r.environment["commit"] = "def"; });
  refused("shard count", [](Record& r) { r.shard.count = 3; });
  refused("listed", [](Record& r) { r.listed = 2; });
}

}  // namespace
}  // namespace plumbline::reports
