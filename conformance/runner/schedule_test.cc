// SPDX-License-Identifier: Apache-2.0
// What a schedule says of folders: which are linked, and which nobody needs any more. Starts no engine.
#include "conformance/runner/schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <stop_token>
#include <thread>

#include "conformance/cases/gpt2_cases.h"
#include "conformance/contract/case_file.h"
#include "conformance/contract/testing/temporary_folder.h"
#include "conformance/runner/real_runs.h"
#include "conformance/runner/resumed_run.h"

namespace plumbline::conformance {
namespace {

// A run that saves, one that resumes from it, and one that has to do with neither.
class SavingTask final : public RunTask {
 public:
  SavingTask() {
    base_.id = "gpt2/x";
    base_.model = Gpt2Cases().problems.front().model;
    base_.config = Gpt2Cases().problems.front().plain;
    base_.steps = 20;
  }

  std::vector<TaskRun> Runs() const override {
    return {{SavingCase(base_, true)}, {ResumedCase(base_), nullptr, 0}, {StepCase(base_, 2)}};
  }
  void Take(size_t, const std::filesystem::path&, const CaseOutcome& outcome) override {
    taken.push_back(outcome.kind);
  }

  std::vector<CaseOutcome::Kind> taken;

 private:
  contract::Case base_;
};

class ScheduleTest : public ::testing::Test {
 protected:
  // Two tasks, so that a task's runs are not numbered from 0.
  void Add(bool keep) {
    schedule_.Add(engine_, description_, {&first_}, keep);
    schedule_.Add(engine_, description_, {&second_}, keep);
    ASSERT_EQ(schedule_.runs().size(), 6u);
  }

  const contract::TokenSource source_{std::vector<int32_t>(100, 1), true};
  const EngineProgram engine_;
  const contract::EngineDescription description_;
  SavingTask first_, second_;
  Schedule schedule_{source_, std::filesystem::path(::testing::TempDir()) /
                                  ::testing::UnitTest::GetInstance()->current_test_info()->name()};
};

TEST_F(ScheduleTest, AFolderWithACheckpointIsNeededUntilTheRunThatResumesFromItHasEnded) {
  Add(/*keep=*/false);
  const auto& runs = schedule_.runs();
  using Dirs = std::vector<std::filesystem::path>;
  for (size_t first : {0, 3}) {
    EXPECT_EQ(schedule_.Unneeded(first), Dirs{});
    EXPECT_EQ(schedule_.Unneeded(first + 1),
              (Dirs{runs[first + 1].case_dir, runs[first + 1].out_dir, runs[first].out_dir}));
    EXPECT_EQ(schedule_.Unneeded(first + 2), Dirs{runs[first + 2].out_dir});
  }
}

TEST_F(ScheduleTest, EveryFolderOfRunsThatAreKeptIsNeeded) {
  Add(/*keep=*/true);
  for (size_t number = 0; number < 6; ++number) EXPECT_TRUE(schedule_.Unneeded(number).empty()) << number;
}

TEST_F(ScheduleTest, FoldersOfATaskAreItsOutputsAndTheCasesThatNoOtherIsGiven) {
  Add(/*keep=*/true);
  const auto& runs = schedule_.runs();
  ASSERT_EQ(runs[0].case_dir, runs[3].case_dir);  // both tasks begin at the same state
  using Dirs = std::vector<std::filesystem::path>;
  EXPECT_EQ(schedule_.FoldersOf(first_), (Dirs{runs[0].out_dir, runs[1].case_dir, runs[1].out_dir, runs[2].out_dir}));
  EXPECT_EQ(schedule_.FoldersOf(second_), (Dirs{runs[3].out_dir, runs[4].case_dir, runs[4].out_dir, runs[5].out_dir}));
}

TEST_F(ScheduleTest, AResumedRunFindsTheCheckpointOfItsOwnTask) {
  Add(/*keep=*/false);
  const auto& runs = schedule_.runs();
  for (size_t first : {0, 3}) {
    EXPECT_EQ(std::filesystem::read_symlink(runs[first + 1].case_dir / "checkpoint"),
              std::filesystem::absolute(runs[first].out_dir / "checkpoint-000009"));
  }
}

// Like SavingTask, with a run in threads in front.
class PairedTask final : public RunTask {
 public:
  std::vector<TaskRun> Runs() const override {
    std::vector<TaskRun> runs = saving_.Runs();
    for (TaskRun& run : runs) {
      if (run.resumes) ++*run.resumes;
    }
    runs.insert(runs.begin(), {.spec = runs.back().spec, .in_threads = true});
    return runs;
  }
  void Take(size_t, const std::filesystem::path&, const CaseOutcome&) override {}

 private:
  SavingTask saving_;
};

TEST_F(ScheduleTest, ARunInThreadsIsOfAStartOfItsOwnAndKeepsItsPlaceInItsTask) {
  PairedTask task;
  const EngineProgram threads;
  schedule_.Add(engine_, description_, {&first_});
  schedule_.Add(engine_, description_, {&task});
  schedule_.AddThreads(threads, description_, {&task, &first_});
  const auto& runs = schedule_.runs();
  ASSERT_EQ(schedule_.units().size(), 3u);
  EXPECT_EQ(schedule_.units()[1].engine, &engine_);
  EXPECT_EQ(schedule_.units()[1].numbers, (std::vector<size_t>{3, 4, 5}));
  EXPECT_EQ(schedule_.units()[2].engine, &threads);
  EXPECT_EQ(schedule_.units()[2].numbers, (std::vector<size_t>{6}));
  for (const auto& [number, index] : std::vector<std::pair<size_t, size_t>>{{3, 1}, {4, 2}, {5, 3}, {6, 0}}) {
    EXPECT_EQ(runs[number].index, index);
    EXPECT_EQ(runs[number].task, &task);
  }
  EXPECT_EQ(runs[4].saved, 3u);
}

TEST_F(ScheduleTest, AResumedRunsCaseHasTheBatchesOfTheSavingRunAndNoneOfItsWeights) {
  Add(/*keep=*/false);
  const auto& runs = schedule_.runs();
  const contract::CaseData saving = contract::ReadCase(runs[0].case_dir);
  const contract::CaseData resumed = contract::ReadCase(runs[1].case_dir);
  EXPECT_EQ(resumed.spec.seed, saving.spec.seed);
  const auto num_saved = static_cast<std::ptrdiff_t>(saving.batches.tokens.size());
  EXPECT_TRUE(std::equal(saving.batches.tokens.begin(), saving.batches.tokens.end(), resumed.batches.tokens.begin(),
                         resumed.batches.tokens.begin() + num_saved));
  for (size_t i = 0; i < saving.real_state.size(); ++i) {
    EXPECT_NE(resumed.real_state[i].master, saving.real_state[i].master) << saving.parameters[i].name;
  }
}

// The engine has no program: a start of it would throw.
TEST_F(ScheduleTest, AfterAStopRequestRunsAreListedAndReportedWithoutCaseFoldersAndStarts) {
  std::stop_source stop;
  stop.request_stop();
  const contract::testing::TemporaryFolder folder;
  Schedule schedule(source_, folder / "work", stop.get_token());
  schedule.Add(engine_, description_, {&first_});
  EXPECT_EQ(schedule.runs().size(), 3u);
  EXPECT_FALSE(std::filesystem::exists(folder / "work" / "cases"));
  RunSchedule(schedule, 1, folder / "engines");
  EXPECT_EQ(first_.taken, std::vector<CaseOutcome::Kind>(3, CaseOutcome::Kind::kInterrupted));
}

// Data that were given up half-way are not written, and not taken for those of another case.
TEST_F(ScheduleTest, AStopRequestWhileDataAreMadeLeavesNoCase) {
  class LongTask final : public RunTask {
   public:
    std::vector<TaskRun> Runs() const override {
      contract::Case spec;
      spec.id = "exact/x";
      spec.model = contract::ExactSpec{1, 1, 1, 1, 6, 1, 2};
      spec.config.train_batch_size = 720720;  // of many divisors: one step takes many seconds
      spec.config.micro_batch_size = 720720;
      spec.steps = 1;
      return {{spec}, {spec}};
    }
    void Take(size_t, const std::filesystem::path&, const CaseOutcome&) override {}
  } task;
  std::stop_source stop;
  const contract::testing::TemporaryFolder folder;
  Schedule schedule(source_, folder / "work", stop.get_token());
  const std::jthread other([&] { stop.request_stop(); });
  schedule.Add(engine_, description_, {&task});
  ASSERT_EQ(schedule.runs().size(), 2u);
  for (const ScheduledRun& run : schedule.runs()) EXPECT_FALSE(std::filesystem::exists(run.case_dir / "case.json"));
}

// As where a run is made again up to a step.
TEST_F(ScheduleTest, ARunIsGivenAsManyStepsOfItsOwnBatchesAsItMakes) {
  class OneRun final : public RunTask {
   public:
    explicit OneRun(TaskRun run) : run_(std::move(run)) {}
    std::vector<TaskRun> Runs() const override { return {run_}; }
    void Take(size_t, const std::filesystem::path&, const CaseOutcome&) override {}

   private:
    TaskRun run_;
  };
  const contract::Case spec = first_.Runs().back().spec;
  const contract::TokenSource other{std::vector<int32_t>(100, 2), true};
  const auto batches = std::make_shared<const contract::Batches>(
      contract::MakeBatches(other, spec.model, {spec.seed, 2, 3, spec.config.train_batch_size}));
  OneRun task({spec, nullptr, std::nullopt, batches});
  schedule_.Add(engine_, description_, {&task});
  const contract::Batches given = contract::ReadCase(schedule_.runs().front().case_dir).batches;
  EXPECT_EQ(given.steps, 1);
  EXPECT_EQ(given.tokens, std::vector<int32_t>(batches->tokens.size() / 3, 2));
}

}  // namespace
}  // namespace plumbline::conformance
