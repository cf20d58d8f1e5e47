// SPDX-License-Identifier: Apache-2.0
// What is said of a failure in family exact: step, tensor, ranks and hypotheses, or why nothing is said. All that is
// run again is written here. Which hypothesis fits what is conformance/diagnosis' tests'.
#include "conformance/runner/diagnosis.h"

#include <gtest/gtest.h>

#include <functional>

#include "conformance/contract/testing/temporary_folder.h"
#include "conformance/oracle/testing/example_run.h"
#include "conformance/runner/resumed_run.h"
#include "conformance/runner/testing/expect_best.h"
#include "conformance/runner/testing/run_folder.h"

namespace plumbline::conformance {
namespace {

using contract::TensorKind;
using reports::DivergenceRecord;
using Kind = CaseOutcome::Kind;

constexpr int64_t kStep = 1;
const contract::TokenSource kSource{std::vector<int32_t>(1000, 1), true};

// Two ranks that hold everything; two micro-batches, one each.
contract::Case Spec() {
  contract::Case spec = ExampleCase(2);
  spec.model.exact().positions = 12;
  spec.id = "exact/x";
  return spec;
}

size_t IndexOf(const contract::ModelSpec& model, const std::string& name) {
  for (const contract::ParameterSpec& parameter : contract::Parameters(model)) {
    if (parameter.name == name) return static_cast<size_t>(parameter.tensor_id);
  }
  ADD_FAILURE() << name;
  return 0;
}

constexpr const char* kName = "layers.0.mlp.up";
size_t Tensor() { return IndexOf(Spec().model, kName); }

int64_t Draw(int64_t what, int64_t step, TensorKind kind, size_t tensor, int64_t index) {
  const int64_t seed =
      (((what * 8 + step) * 8 + static_cast<int64_t>(kind)) * 64 + static_cast<int64_t>(tensor)) * 4096;
  return static_cast<int64_t>(contract::Mix(static_cast<uint64_t>(seed + index)) % 41) - 20;
}

// The share of a rank's micro-batch in a gradient, and the truth of every kind.
int64_t Share(int64_t rank, size_t tensor, int64_t index) {
  return Draw(10 + rank, kStep, TensorKind::kGradient, tensor, index);
}
int64_t Truth(int64_t, int64_t step, TensorKind kind, size_t tensor, int64_t index) {
  if (kind == TensorKind::kGradient && step == kStep) return Share(0, tensor, index) + Share(1, tensor, index);
  return Draw(1, step, kind, tensor, index);
}
double ShareOfLoss(int64_t rank) { return rank == 0 ? 5 : 8; }

// A failure in family exact, its runs made again.
class DiagnosisTest : public ::testing::Test {
 protected:
  void Begin(const std::string& quantity, const std::string& tensor = kName) {
    lead_.divergence = {kStep, quantity, tensor, 1, "step 1: " + quantity + " of " + tensor};
    if (!lead_.run) lead_.run = TaskRun{Spec()};
    diagnosis_ = std::make_unique<Diagnosis>(lead_, Spec().model, /*engine_dumps=*/true, kSource, probes_);
  }

  static void Feed(RunTask& task, size_t run, const ExactValue& value, const ExactLoss& loss) {
    const contract::testing::TemporaryFolder folder;
    const contract::Case spec = task.Runs().at(run).spec;
    WriteExactDumps(spec, folder.path(), spec.dump_steps, value, loss);
    task.Take(run, folder.path(), {});
  }

  // The truth, the two shares, and for the batches that an engine may have confused other numbers.
  void FeedReference() {
    ASSERT_EQ(probes_.size(), 1u);
    RunTask& task = probes_.begin()->second->task();
    for (size_t run = 0; run < task.Runs().size(); ++run) {
      const ExactValue value = [run](int64_t rank, int64_t step, TensorKind kind, size_t tensor, int64_t index) {
        if (run == 0) return Truth(rank, step, kind, tensor, index);
        if (run <= 2) return Share(static_cast<int64_t>(run) - 1, tensor, index);
        return Draw(20 + static_cast<int64_t>(run), step, kind, tensor, index);
      };
      Feed(task, run, value, [run](int64_t, int64_t) {
        return run == 0 ? ShareOfLoss(0) + ShareOfLoss(1) : run <= 2 ? ShareOfLoss(static_cast<int64_t>(run) - 1) : 77;
      });
    }
  }

  void FeedCandidate(
      const ExactValue& value, const ExactLoss& loss = [](int64_t, int64_t) { return 13.0; }) {
    for (size_t run = 0; run < diagnosis_->candidate()->Runs().size(); ++run) {
      Feed(*diagnosis_->candidate(), run, value, loss);
    }
  }

  // Right but for one kind of one tensor, of one rank or (rank -1) of both.
  static ExactValue WrongIn(TensorKind wrong_kind, int64_t wrong_rank,
                            const std::function<int64_t(int64_t index)>& value) {
    return [=](int64_t rank, int64_t step, TensorKind kind, size_t tensor, int64_t index) {
      const bool is_wrong =
          kind == wrong_kind && step == kStep && tensor == Tensor() && (wrong_rank < 0 || rank == wrong_rank);
      return is_wrong ? value(index) : Truth(rank, step, kind, tensor, index);
    };
  }

  Lead lead_;
  ProbeCache probes_;
  std::unique_ptr<Diagnosis> diagnosis_;
};

TEST_F(DiagnosisTest, NamesTheRankThatIsWrongAndWhatItsGradientLacks) {
  for (int64_t wrong : {0, 1}) {
    probes_.clear();
    Begin("gradient");
    FeedReference();
    const int64_t other = 1 - wrong;  // holds what the other rank has added alone
    FeedCandidate(WrongIn(TensorKind::kGradient, wrong, [&](int64_t index) { return Share(other, Tensor(), index); }));
    const DivergenceRecord record = diagnosis_->Finish();
    EXPECT_EQ(record.step, kStep);
    EXPECT_EQ(record.quantity, "gradient");
    EXPECT_EQ(record.tensor, kName);
    EXPECT_EQ(record.layer, 0);
    EXPECT_EQ(record.ranks, std::vector<int64_t>{wrong});
    EXPECT_EQ(record.residual_limit, 0);
    ExpectBest(record, "missing_rank", "rank " + std::to_string(wrong));
  }
}

TEST_F(DiagnosisTest, SaysWhereInTheTensorItDiffers) {
  Begin("gradient");
  FeedReference();
  FeedCandidate(WrongIn(TensorKind::kGradient, -1, [](int64_t index) {
    return Truth(0, kStep, TensorKind::kGradient, Tensor(), index) + (index == 4 ? 1 : 0);
  }));
  const DivergenceRecord record = diagnosis_->Finish();
  EXPECT_EQ(record.ranks, (std::vector<int64_t>{0, 1}));
  EXPECT_NE(record.region.find("element 4"), std::string::npos) << record.region;
  ASSERT_FALSE(record.hypotheses.empty());
  EXPECT_FALSE(record.hypotheses.front().fits) << record.hypotheses.front().name;
}

TEST_F(DiagnosisTest, WhatFollowsTheGradientIsExplainedByTheStateBefore) {
  Begin("master");
  FeedReference();
  FeedCandidate(WrongIn(TensorKind::kMaster, -1,
                        [](int64_t index) { return Truth(0, kStep - 1, TensorKind::kMaster, Tensor(), index); }));
  const DivergenceRecord record = diagnosis_->Finish();
  EXPECT_EQ(record.quantity, "master");
  ExpectBest(record, "not_updated");
}

TEST_F(DiagnosisTest, RanksThatHoldDifferentThingsAreFoundBySearchingTheDump) {
  Begin("dump", "");
  FeedReference();
  FeedCandidate(WrongIn(TensorKind::kWeight, 1, [](int64_t) { return 0; }));
  const DivergenceRecord record = diagnosis_->Finish();
  EXPECT_EQ(record.quantity, "weight");
  EXPECT_EQ(record.tensor, kName);
  EXPECT_EQ(record.ranks, std::vector<int64_t>{1});
}

TEST_F(DiagnosisTest, WhatDoesNotHappenAgainIsSaidToHaveNot) {
  struct Again {
    std::string quantity, tensor, says;
  };
  const std::string none = "it did not diverge when it was run again with dumps";
  for (const Again& again : {Again{"gradient", kName, none}, Again{"master", kName, none}, Again{"loss", "", none},
                             Again{"dump", "", "ranks hold the same when it is run again with dumps"}}) {
    probes_.clear();
    Begin(again.quantity, again.tensor);
    FeedReference();
    FeedCandidate(Truth);
    const DivergenceRecord record = diagnosis_->Finish();
    EXPECT_EQ(record.undiagnosed, again.says) << again.quantity;
    EXPECT_TRUE(record.hypotheses.empty());
    EXPECT_TRUE(record.ranks.empty());
    EXPECT_EQ(record.step, kStep);
  }
}

// Of what a trace alone states otherwise, a dump that is right is no sign that the failure was chance.
TEST_F(DiagnosisTest, ATraceThatStatesOtherNumbersThanItsDumpIsSaidToAndItsRanksAreNamed) {
  const std::string says = "the trace states other numbers than the engine's own dump";
  for (const std::string quantity : {"gradient", "dump"}) {
    probes_.clear();
    Begin(quantity, quantity == "dump" ? "" : kName);
    FeedReference();
    const contract::testing::TemporaryFolder folder;
    const contract::Case spec = diagnosis_->candidate()->Runs().at(0).spec;
    WriteExactDumps(
        spec, folder.path(), spec.dump_steps, Truth, [](int64_t, int64_t) { return 13.0; },
        WrongIn(TensorKind::kGradient, 1, [](int64_t index) { return Share(0, Tensor(), index); }));
    diagnosis_->candidate()->Take(0, folder.path(), {});
    const DivergenceRecord record = diagnosis_->Finish();
    EXPECT_EQ(record.undiagnosed, quantity == "dump" ? says : says + ", which is right");
    EXPECT_EQ(record.tensor, kName);
    EXPECT_EQ(record.layer, 0);
    EXPECT_EQ(record.ranks, std::vector<int64_t>{1});
    EXPECT_TRUE(record.hypotheses.empty());
  }
}

TEST_F(DiagnosisTest, OfALossTheRankIsNamedAndItsSharesAreTried) {
  Begin("loss", "");
  FeedReference();
  FeedCandidate(Truth, [](int64_t rank, int64_t) { return rank == 1 ? ShareOfLoss(0) : 13.0; });
  const DivergenceRecord record = diagnosis_->Finish();
  EXPECT_EQ(record.quantity, "loss");
  EXPECT_EQ(record.tensor, "");
  EXPECT_EQ(record.ranks, std::vector<int64_t>{1});
  ExpectBest(record, "missing_rank", "rank 1");
}

TEST_F(DiagnosisTest, ARunThatFailsWhenItIsMadeAgainIsToldWithItsError) {
  Begin("gradient");
  FeedReference();
  diagnosis_->candidate()->Take(0, "nowhere", {Kind::kCrashed, "signal 6"});
  const DivergenceRecord record = diagnosis_->Finish();
  EXPECT_EQ(record.undiagnosed, "run again for its dumps: crashed signal 6");
  EXPECT_EQ(record.tensor, kName) << "what the verdict said stays";
}

TEST_F(DiagnosisTest, AReferenceThatFailsIsToldAsSuch) {
  Begin("gradient");
  probes_.begin()->second->task().Take(0, "nowhere", {Kind::kTimedOut, "after 60 s"});
  FeedCandidate(Truth);
  EXPECT_EQ(diagnosis_->Finish().undiagnosed, "the reference: timed_out after 60 s");
}

// The whole run is the truth of the resumed one; the reference is not asked.
TEST_F(DiagnosisTest, AResumedRunIsComparedWithTheRunThatItShouldEqual) {
  contract::Case whole = Spec();
  whole.save_steps = {0};
  lead_.run = TaskRun{ResumedCase(whole)};
  lead_.saved = lead_.expected = TaskRun{whole};
  Begin("moment");
  EXPECT_TRUE(probes_.empty());
  const std::vector<TaskRun> runs = diagnosis_->candidate()->Runs();
  ASSERT_EQ(runs.size(), 3u);
  EXPECT_EQ(runs[0].spec.save_steps, std::vector<int64_t>{0});
  EXPECT_EQ(runs[1].resumes, 0u);
  EXPECT_TRUE(runs[1].spec.resume);
  EXPECT_EQ(runs[1].spec.dump_steps, std::vector<int64_t>{kStep});
  EXPECT_EQ(runs[1].spec.steps, kStep + 1);
  EXPECT_EQ(runs[2].spec.dump_steps, (std::vector<int64_t>{kStep - 1, kStep}));
  EXPECT_TRUE(runs[2].spec.save_steps.empty());
  EXPECT_FALSE(runs[2].resumes);

  RunTask& task = *diagnosis_->candidate();
  const ExactLoss loss = [](int64_t, int64_t) { return 13.0; };
  // The resumed run's moment is what it was after the step before.
  const ExactValue stale = WrongIn(
      TensorKind::kMoment, -1, [](int64_t index) { return Truth(0, kStep - 1, TensorKind::kMoment, Tensor(), index); });
  Feed(task, 0, Truth, loss);
  Feed(task, 1, stale, loss);
  Feed(task, 2, Truth, loss);
  const DivergenceRecord record = diagnosis_->Finish();
  EXPECT_EQ(record.quantity, "moment");
  EXPECT_EQ(record.tensor, kName);
  EXPECT_EQ(record.ranks, (std::vector<int64_t>{0, 1}));
  ExpectBest(record, "not_updated");
}

TEST_F(DiagnosisTest, OnlyWhatHypothesesSpeakOfIsRunAgain) {
  const auto why = [&](const Lead& lead, bool dumps) {
    ProbeCache probes;
    Diagnosis diagnosis(lead, Spec().model, dumps, kSource, probes);
    EXPECT_EQ(diagnosis.candidate(), nullptr);
    EXPECT_TRUE(probes.empty());
    const DivergenceRecord record = diagnosis.Finish();
    EXPECT_EQ(record.step, 3);
    EXPECT_TRUE(record.hypotheses.empty());
    return record.undiagnosed;
  };
  EXPECT_EQ(why(LeadOfStop(3, "signal 6"), true), "the engine stopped in this step");
  EXPECT_EQ(why({{3, "gradient", kName, 1, ""}}, true), "what was found has no first place");
  EXPECT_EQ(why({{3, "gradient", kName, 1, ""}, TaskRun{Spec()}}, false), "the engine does not dump tensors");
  EXPECT_EQ(why({{3, "tokens", "", 0, ""}, TaskRun{Spec()}}, true), "no hypothesis speaks of it");
}

TEST_F(DiagnosisTest, FailuresOfTheSameStepShareTheRunsOfTheReference) {
  Begin("gradient");
  const auto first = probes_;
  Begin("master");
  EXPECT_EQ(probes_, first);
  lead_.run->spec.seed += 1;
  Begin("gradient");
  EXPECT_EQ(probes_.size(), 2u);
}

}  // namespace
}  // namespace plumbline::conformance
