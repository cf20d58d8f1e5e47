// SPDX-License-Identifier: Apache-2.0
#include "conformance/runner/saved_failures.h"

#include <gtest/gtest.h>

#include "conformance/cases/exact_cases.h"
#include "conformance/contract/file_io.h"
#include "conformance/contract/testing/temporary_folder.h"

namespace plumbline::conformance {
namespace {

namespace fs = std::filesystem;

// Two runs of one case.
class TwoRuns final : public RunTask {
 public:
  explicit TwoRuns(const std::string& id) {
    const Problem problem = ExactCases().problems.front();
    spec_.id = id;
    spec_.model = problem.model;
    spec_.config = problem.plain;
    spec_.steps = 2;
  }
  std::vector<TaskRun> Runs() const override {
    contract::Case second = spec_;
    second.id += "/again";
    return {{spec_}, {second}};
  }
  void Take(size_t, const fs::path&, const CaseOutcome&) override {}

 private:
  contract::Case spec_;
};

class SaveFailuresTest : public ::testing::Test {
 protected:
  SaveFailuresTest() {
    schedule_.Add(engine_, description_, {&good_});
    schedule_.Add(engine_, description_, {&bad_});
    schedule_.Add(engine_, description_, {&twin_});
    for (const ScheduledRun& run : schedule_.runs()) {
      fs::create_directories(run.out_dir / "rank0");
      contract::WriteFile(run.out_dir / "rank0" / "trace.jsonl", "trace of " + run.spec.id);
    }
    entry_.id = "exact/bad";
    twin_entry_.id = "clean-twin/exact/bad";
    twin_entry_.role = Role::kCleanTwin;
  }

  fs::path Kept(const std::string& name) const { return folder_ / "failures" / name; }
  void Save(const std::map<const RunTask*, const PlannedCase*>& failed, const std::map<fs::path, fs::path>& logs = {}) {
    SaveFailures(schedule_, failed, logs, folder_ / "failures");
  }
  std::string TraceIn(const std::string& name) const {
    return contract::ReadFile(Kept(name) / "out" / "rank0" / "trace.jsonl");
  }

  const contract::testing::TemporaryFolder folder_;
  const contract::TokenSource source_{std::vector<int32_t>(1000, 1), true};
  const EngineProgram engine_;
  const contract::EngineDescription description_;
  TwoRuns good_{"exact/good"}, bad_{"exact/bad"}, twin_{"exact/bad"};
  PlannedCase entry_, twin_entry_;
  Schedule schedule_{source_, folder_ / "work"};
};

TEST_F(SaveFailuresTest, KeepsCaseAndTracesOfEveryRunOfAFailedCaseAndOfNoOther) {
  Save({{&bad_, &entry_}});
  for (const std::string name : {"exact.bad", "exact.bad.again"}) {
    EXPECT_TRUE(fs::exists(Kept(name) / "case" / "case.json")) << name;
    EXPECT_TRUE(fs::exists(Kept(name) / "case" / "batches.safetensors")) << name;
  }
  EXPECT_EQ(TraceIn("exact.bad"), "trace of exact/bad");
  EXPECT_EQ(TraceIn("exact.bad.again"), "trace of exact/bad/again");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_ / "failures"), fs::directory_iterator()), 2);
}

TEST_F(SaveFailuresTest, TheTwinsFailureDoesNotOverwriteThatOfTheCase) {
  contract::WriteFile(schedule_.runs()[4].out_dir / "rank0" / "trace.jsonl", "the twin's");
  Save({{&bad_, &entry_}, {&twin_, &twin_entry_}});
  EXPECT_EQ(TraceIn("exact.bad"), "trace of exact/bad");
  EXPECT_EQ(TraceIn("clean-twin.exact.bad"), "the twin's");
}

TEST_F(SaveFailuresTest, TheLogIsThatOfTheRun) {
  contract::WriteFile(folder_ / "log", "a stack trace");
  Save({{&bad_, &entry_}}, {{schedule_.runs()[3].out_dir, folder_ / "log"}, {schedule_.runs()[2].out_dir, ""}});
  EXPECT_FALSE(fs::exists(Kept("exact.bad") / "engine.log"));
  EXPECT_EQ(contract::ReadFile(Kept("exact.bad.again") / "engine.log"), "a stack trace");
  EXPECT_TRUE(fs::exists(folder_ / "log")) << "other cases of the start may share it";
}

TEST_F(SaveFailuresTest, MakesNoFolderWhereNothingFailed) {
  Save({});
  EXPECT_FALSE(fs::exists(folder_ / "failures"));
}

TEST_F(SaveFailuresTest, WhatCannotBeMovedStopsNothing) {
  fs::remove_all(schedule_.runs()[2].out_dir);  // the engine could not even make it
  Save({{&bad_, &entry_}});
  EXPECT_TRUE(fs::exists(Kept("exact.bad") / "case" / "case.json"));
  EXPECT_FALSE(fs::exists(Kept("exact.bad") / "out"));
  EXPECT_EQ(TraceIn("exact.bad.again"), "trace of exact/bad/again");
}

}  // namespace
}  // namespace plumbline::conformance
