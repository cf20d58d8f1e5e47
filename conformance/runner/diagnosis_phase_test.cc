// SPDX-License-Identifier: Apache-2.0
// Which runs the diagnosis of several failures adds, and in whose record each finding ends up. No engine runs.
#include "conformance/runner/diagnosis_phase.h"

#include <gtest/gtest.h>

#include "conformance/contract/testing/temporary_folder.h"
#include "conformance/oracle/testing/example_run.h"

namespace plumbline::conformance {
namespace {

constexpr const char* kName = "layers.0.mlp.up";

class FailedTrial final : public Trial {
 public:
  FailedTrial(const std::string& message, std::optional<Lead> lead) {
    judgement_.emplace();
    judgement_->verdict = reports::Verdict::kFail;
    judgement_->message = message;
    lead_ = std::move(lead);
  }
  std::vector<TaskRun> Runs() const override { return {}; }
  void Take(size_t, const std::filesystem::path&, const CaseOutcome&) override {}
};

contract::Case Spec() {
  contract::Case spec = ExampleCase(2);
  spec.model.exact().positions = 12;
  return spec;
}

Lead LeadIn(int64_t step, const std::string& quantity = "gradient") {
  return {{step, quantity, kName, 1, "step " + std::to_string(step)}, TaskRun{Spec()}};
}

class DiagnosisPhaseTest : public ::testing::Test {
 protected:
  DiagnosisPhaseTest() {
    dumps_.features = {"dump"};
    model_ = Spec().model;
  }

  void Add(const Trial& trial, const contract::EngineDescription& description,
           std::optional<reports::DivergenceRecord>& record) {
    phase_.Add({&trial, &model_, &candidate_, &description, &record});
  }
  // How many starts of each program the phase asks for.
  std::pair<int, int> Starts() {
    phase_.AddRuns(reference_, dumps_, schedule_);
    std::pair<int, int> starts;
    for (const RunUnit& unit : schedule_.units()) ++(unit.engine == &reference_ ? starts.first : starts.second);
    return starts;
  }
  // Every run ends like this.
  void EndAll(const CaseOutcome& outcome) {
    for (const ScheduledRun& run : schedule_.runs()) run.task->Take(run.index, run.out_dir, outcome);
  }

  const contract::testing::TemporaryFolder folder_;
  const contract::TokenSource source_{std::vector<int32_t>(1000, 1), true};
  const EngineProgram reference_{"reference", {}}, candidate_{"candidate", {}};
  contract::EngineDescription dumps_;
  const contract::EngineDescription plain_;
  contract::ModelSpec model_;
  DiagnosisPhase phase_{source_};
  Schedule schedule_{source_, folder_.path()};
  std::optional<reports::DivergenceRecord> first_, second_, third_;
};

TEST_F(DiagnosisPhaseTest, RunsNothingWhereNothingFailed) {
  EXPECT_EQ(Starts(), std::pair(0, 0));
  phase_.Finish();
}

TEST_F(DiagnosisPhaseTest, FailuresOfOneStepShareTheReferenceAndEachRunsItsEngineAgain) {
  const FailedTrial one("", LeadIn(1)), other("", LeadIn(1, "master")), later("", LeadIn(3));
  Add(one, dumps_, first_);
  Add(other, dumps_, second_);
  Add(later, dumps_, third_);
  EXPECT_EQ(Starts(), std::pair(2, 3));
  for (const ScheduledRun& run : schedule_.runs()) EXPECT_FALSE(run.keep) << run.spec.id;
}

TEST_F(DiagnosisPhaseTest, AnEngineThatDoesNotDumpIsNotRunAgain) {
  const FailedTrial trial("", LeadIn(1));
  Add(trial, plain_, first_);
  EXPECT_EQ(Starts(), std::pair(0, 0));
  phase_.Finish();
  ASSERT_TRUE(first_);
  EXPECT_EQ(first_->undiagnosed, "the engine does not dump tensors");
  EXPECT_EQ(first_->tensor, kName);
}

TEST_F(DiagnosisPhaseTest, WithoutALeadThePlaceIsThatOfTheMessage) {
  const FailedTrial trial("step 2, rank 1: sends 12 bytes too many", std::nullopt);
  Add(trial, dumps_, first_);
  EXPECT_EQ(Starts(), std::pair(0, 0));
  phase_.Finish();
  ASSERT_TRUE(first_);
  EXPECT_EQ(first_->step, 2);
  EXPECT_EQ(first_->ranks, std::vector<int64_t>{1});
  EXPECT_FALSE(first_->undiagnosed.empty());
}

TEST_F(DiagnosisPhaseTest, EachFindingIsWrittenIntoTheRecordOfItsFailure) {
  const FailedTrial one("", LeadIn(1)), stopped("", LeadOfStop(7, "signal 6")), later("", LeadIn(3));
  Add(one, dumps_, first_);
  Add(stopped, dumps_, second_);
  Add(later, dumps_, third_);
  Starts();
  EXPECT_FALSE(first_ || second_ || third_);
  EndAll({CaseOutcome::Kind::kCrashed, "signal 11"});
  phase_.Finish();
  EXPECT_EQ(first_->step, 1);
  EXPECT_EQ(first_->undiagnosed, "run again for its dumps: crashed signal 11");
  EXPECT_EQ(second_->step, 7);
  EXPECT_EQ(second_->undiagnosed, "the engine stopped in this step");
  EXPECT_EQ(third_->step, 3);
}

}  // namespace
}  // namespace plumbline::conformance
