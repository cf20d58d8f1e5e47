// SPDX-License-Identifier: Apache-2.0
// The trial of an engine on a case of family exact, with runs written here: which of its two runs is named, and what
// the diagnosis is to begin with. The judgement of one run is judge_test's.
#include "conformance/runner/exact_trial.h"

#include <gtest/gtest.h>

#include "conformance/contract/file_io.h"
#include "conformance/contract/testing/temporary_folder.h"
#include "conformance/oracle/testing/example_run.h"
#include "conformance/runner/testing/run_folder.h"

namespace plumbline::conformance {
namespace {

using contract::TensorKind;
using contract::Trace;
using reports::Verdict;
using Kind = CaseOutcome::Kind;

constexpr size_t kWhole = 0, kResumed = 1;
constexpr size_t kPosWeight = 1;
constexpr int64_t kFirstResumed = 2;  // of four steps the last two are made again

class ExactTrialTest : public ::testing::Test {
 protected:
  ExactTrialTest() {
    description_.features = {"save"};
    spec_.id = "exact/x";
    Problem problem{"x", spec_.model, spec_.config, kExampleSteps};
    truth_ = std::make_unique<ExactTruthTask>(problem, PlanOptions{});
    WriteTraces(folder_ / "truth", ExactTraces(spec_));
    contract::Certificate certificate;
    for (const char* name : {"activation_sum", "gradient_sum", "stored", "fold_input", "gradient", "state"}) {
      certificate.quantities[name] = {100, "somewhere"};
    }
    certificate.liveness = {{"embed.weight", 1, 1}};
    contract::WriteFile(folder_ / "truth" / "certificate.json", contract::ToJson(certificate));
    truth_->Take(0, folder_ / "truth", {});
    truth_->Finish();
    trial_ = std::make_unique<ExactTrial>(spec_, description_, *truth_);
  }

  // What the run leaves if nothing is wrong with it.
  std::vector<Trace> Right(size_t run) const {
    std::vector<Trace> traces = ExactTraces(spec_);
    if (run == kResumed) {
      auto& steps = traces.front().steps;
      steps.erase(steps.begin(), steps.begin() + kFirstResumed);
    }
    return traces;
  }
  std::vector<Trace> WrongIn(size_t run, size_t traced_step, size_t tensor = kPosWeight) const {
    std::vector<Trace> traces = Right(run);
    DigestIn(traces.front(), traced_step, TensorKind::kMaster, tensor).hash += 1;
    return traces;
  }
  // With `traced` steps of its trace.
  std::vector<Trace> Torn(size_t run, size_t traced) const {
    std::vector<Trace> traces = Right(run);
    traces.front().steps.resize(traced);
    return traces;
  }

  void Take(size_t run, const std::vector<Trace>& traces, const CaseOutcome& outcome = {}) {
    const std::filesystem::path out_dir = folder_ / ("run" + std::to_string(run));
    if (!traces.front().steps.empty()) WriteTraces(out_dir, traces);
    trial_->Take(run, out_dir, outcome);
  }
  void TakeBoth(const std::vector<Trace>& whole, const std::vector<Trace>& resumed) {
    Take(kWhole, whole);
    EXPECT_FALSE(trial_->is_judged());
    Take(kResumed, resumed);
  }
  const Judgement& judgement() const { return trial_->judgement(); }

  const contract::testing::TemporaryFolder folder_;
  contract::Case spec_ = ExampleCase(1);
  contract::EngineDescription description_;
  std::unique_ptr<ExactTruthTask> truth_;
  std::unique_ptr<ExactTrial> trial_;
};

TEST_F(ExactTrialTest, AnEngineThatSavesMakesItsLastStepsAgain) {
  const std::vector<TaskRun> runs = trial_->Runs();
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_EQ(runs[kWhole].spec.save_steps, std::vector<int64_t>{kFirstResumed - 1});
  EXPECT_TRUE(runs[kResumed].spec.resume);
  EXPECT_EQ(runs[kResumed].resumes, kWhole);
  description_.features.clear();
  const ExactTrial without(spec_, description_, *truth_);
  ASSERT_EQ(without.Runs().size(), 1u);
  EXPECT_TRUE(without.Runs().front().spec.save_steps.empty());
}

// Four steps are too short to be more than VACUOUS (truth.h); nothing is wrong with them.
TEST_F(ExactTrialTest, RightRunsHaveNoLead) {
  TakeBoth(Right(kWhole), Right(kResumed));
  EXPECT_EQ(judgement().verdict, Verdict::kVacuous) << judgement().message;
  EXPECT_NE(judgement().message.find("the case ends before step"), std::string::npos) << judgement().message;
  EXPECT_FALSE(trial_->lead());
}

TEST_F(ExactTrialTest, AWrongWholeRunIsComparedWithTheTruth) {
  TakeBoth(WrongIn(kWhole, 1), Right(kResumed));
  EXPECT_EQ(judgement().verdict, Verdict::kFail);
  ASSERT_TRUE(trial_->lead());
  const Lead& lead = *trial_->lead();
  EXPECT_EQ(lead.divergence.step, 1);
  EXPECT_EQ(lead.divergence.quantity, "master");
  EXPECT_EQ(lead.divergence.tensor, "pos.weight");
  EXPECT_EQ(lead.run->spec.id, "exact/x");
  EXPECT_FALSE(lead.expected || lead.saved);
}

TEST_F(ExactTrialTest, AWrongResumedRunIsComparedWithTheWholeOne) {
  TakeBoth(Right(kWhole), WrongIn(kResumed, 1));
  EXPECT_EQ(judgement().verdict, Verdict::kFail);
  EXPECT_EQ(judgement().diverged_run, kResumed);
  ASSERT_TRUE(trial_->lead());
  const Lead& lead = *trial_->lead();
  EXPECT_EQ(lead.divergence.step, kFirstResumed + 1);
  EXPECT_EQ(lead.divergence.tensor, "pos.weight");
  EXPECT_TRUE(lead.run->spec.resume);
  EXPECT_EQ(lead.saved->spec.save_steps, std::vector<int64_t>{kFirstResumed - 1});
  EXPECT_EQ(lead.expected->spec.id, "exact/x");
}

TEST_F(ExactTrialTest, OfTwoWrongRunsTheWholeOneIsNamed) {
  TakeBoth(WrongIn(kWhole, 3, 2), WrongIn(kResumed, 0));
  EXPECT_EQ(trial_->lead()->divergence.step, 3);
  EXPECT_FALSE(trial_->lead()->run->spec.resume);
}

TEST_F(ExactTrialTest, AResumedRunThatCrashesStoppedInAStepOfItsOwn) {
  for (size_t traced : {size_t{0}, size_t{1}}) {
    trial_ = std::make_unique<ExactTrial>(spec_, description_, *truth_);
    Take(kWhole, Right(kWhole));
    Take(kResumed, Torn(kResumed, traced), {Kind::kCrashed, "signal 11"});
    EXPECT_EQ(judgement().verdict, Verdict::kError);
    EXPECT_TRUE(judgement().engine_failed);
    EXPECT_EQ(judgement().message.find("run resumed: signal 11"), 0u) << judgement().message;
    ASSERT_TRUE(trial_->lead());
    EXPECT_EQ(trial_->lead()->divergence.quantity, "engine");
    EXPECT_EQ(trial_->lead()->divergence.step, kFirstResumed + static_cast<int64_t>(traced));
    EXPECT_FALSE(trial_->lead()->run);
  }
}

// Runs may be taken in any order.
TEST_F(ExactTrialTest, AWholeRunThatCrashesIsNamedThoughTheResumedOneCrashesToo) {
  for (bool resumed_first : {false, true}) {
    trial_ = std::make_unique<ExactTrial>(spec_, description_, *truth_);
    const auto take_whole = [&] { Take(kWhole, Torn(kWhole, 1), {Kind::kCrashed, "signal 11"}); };
    if (!resumed_first) take_whole();
    Take(kResumed, Torn(kResumed, 0), {Kind::kCrashed, "no checkpoint"});
    if (resumed_first) take_whole();
    EXPECT_EQ(judgement().message, "signal 11; 1 of 4 steps were traced");
    EXPECT_EQ(trial_->lead()->divergence.step, 1) << resumed_first;
  }
}

TEST_F(ExactTrialTest, WhatTheMachineLacksForTheWholeRunIsNoErrorOfTheResumedOne) {
  Take(kWhole, Torn(kWhole, 0), {Kind::kEnvironment, "no device"});
  Take(kResumed, Torn(kResumed, 0), {Kind::kError, "no checkpoint"});
  EXPECT_EQ(judgement().verdict, Verdict::kNotRun);
  EXPECT_EQ(judgement().message, "no device");
  EXPECT_FALSE(trial_->lead());
}

TEST_F(ExactTrialTest, ACrashOfTheResumedRunDoesNotHideAWrongWholeOne) {
  Take(kWhole, WrongIn(kWhole, 0));
  Take(kResumed, Torn(kResumed, 0), {Kind::kCrashed, "signal 11"});
  EXPECT_EQ(judgement().verdict, Verdict::kFail);
  EXPECT_EQ(trial_->lead()->divergence.step, 0);
}

TEST_F(ExactTrialTest, ATraceOfTheResumedRunThatBeginsElsewhereFails) {
  TakeBoth(Right(kWhole), Right(kWhole));
  EXPECT_EQ(judgement().verdict, Verdict::kFail);
}

TEST(ExactTruthTask, NamesTheFirstRunThatDidNotEndWell) {
  Problem problem{"x", ExampleCase(1).model, ExampleCase(1).config, 6};
  ExactTruthTask task(problem, {});
  const std::vector<TaskRun> runs = task.Runs();
  ASSERT_GT(runs.size(), 2u);
  for (size_t i = 0; i < runs.size(); ++i) {
    task.Take(i, "nowhere", i == 0 ? CaseOutcome{} : CaseOutcome{Kind::kTimedOut, "after 60 s"});
  }
  task.Finish();
  EXPECT_EQ(task.truth().error, runs[1].spec.id + ": timed_out after 60 s");
}

}  // namespace
}  // namespace plumbline::conformance
