// SPDX-License-Identifier: Apache-2.0
// The trial of an engine on a metamorphic case, with runs written here: what is compared, which run is named, and that
// nothing passes of which nothing was seen.
#include "conformance/runner/metamorphic_trial.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "conformance/contract/testing/temporary_folder.h"
#include "conformance/oracle/testing/example_run.h"
#include "conformance/runner/testing/run_folder.h"

namespace plumbline::conformance {
namespace {

using contract::TensorKind;
using contract::Trace;
using reports::CheckOutcome;
using reports::Verdict;
using Kind = CaseOutcome::Kind;

constexpr size_t kWhole = 0, kVariant = 1;

contract::Case Whole(int64_t accumulation_steps = 4) {
  contract::Case spec = ExampleCase(1);
  spec.model.exact().positions = 12;
  spec.id = "exact/x/relation";
  spec.config.micro_batch_size = 2;
  spec.config.accumulation_steps = accumulation_steps;
  spec.config.train_batch_size = 2 * accumulation_steps;
  spec.seed = 5;
  return spec;
}

class MetamorphicTrialTest : public ::testing::Test {
 protected:
  MetamorphicTrialTest() {
    for (int32_t i = 0; i < 1000; ++i) source_.tokens.push_back((i * 7) % 11);
    Begin(Whole());
  }

  void Begin(const contract::Case& whole, MetamorphicRelation relation = MetamorphicRelation::kPermuted) {
    trial_ = std::make_unique<MetamorphicTrial>(relation, whole, description_, source_);
    std::filesystem::remove_all(folder_ / "runs");
  }

  std::vector<Trace> Right(size_t run) const { return ExactTraces(trial_->Runs().at(run).spec); }

  void Take(size_t run, const std::vector<Trace>& traces, const CaseOutcome& outcome = {}) {
    const std::filesystem::path out_dir = folder_ / "runs" / std::to_string(run);
    WriteTraces(out_dir, traces);
    trial_->Take(run, out_dir, outcome);
  }
  const Judgement& judgement() const { return trial_->judgement(); }
  std::optional<CheckOutcome> Outcome(const std::string& name) const {
    const auto found = std::find_if(judgement().checks.begin(), judgement().checks.end(),
                                    [&](const auto& check) { return check.name == name; });
    return found == judgement().checks.end() ? std::nullopt : std::optional(found->outcome);
  }

  const contract::testing::TemporaryFolder folder_;
  contract::TokenSource source_{{}, true};
  const contract::EngineDescription description_;
  std::unique_ptr<MetamorphicTrial> trial_;
};

TEST_F(MetamorphicTrialTest, EqualRunsPassAndPlantedChangesAreNoticed) {
  Take(kVariant, Right(kVariant));
  EXPECT_FALSE(trial_->is_judged());
  Take(kWhole, Right(kWhole));
  EXPECT_EQ(judgement().verdict, Verdict::kPass) << judgement().message;
  EXPECT_EQ(Outcome("metamorphic"), CheckOutcome::kPass);
  EXPECT_EQ(Outcome("guard"), CheckOutcome::kPass);
  EXPECT_FALSE(trial_->lead());
}

TEST_F(MetamorphicTrialTest, RunsThatDifferFailInTheirFirstPlaceAndNoneOfThemIsAccused) {
  for (size_t wrong : {kWhole, kVariant}) {
    Begin(Whole());
    for (size_t run : {kWhole, kVariant}) {
      std::vector<Trace> traces = Right(run);
      if (run == wrong) DigestIn(traces.front(), 2, TensorKind::kGradient, 1).hash += 1;
      Take(run, traces);
    }
    EXPECT_EQ(judgement().verdict, Verdict::kFail);
    EXPECT_EQ(judgement().message.find("permuted: step 2"), 0u) << judgement().message;
    ASSERT_TRUE(trial_->lead());
    EXPECT_EQ(trial_->lead()->divergence.step, 2);
    EXPECT_EQ(trial_->lead()->divergence.tensor, "pos.weight");
    EXPECT_FALSE(trial_->lead()->run) << "which of the two is wrong is not known";
    EXPECT_FALSE(Outcome("guard"));
  }
}

// Samples that stay in their micro-batches would make the relation hold for any engine.
TEST_F(MetamorphicTrialTest, AVariantThatChangesNothingIsVacuousThoughTheRunsAreEqual) {
  Begin(Whole(/*accumulation_steps=*/1));
  Take(kWhole, Right(kWhole));
  Take(kVariant, Right(kVariant));
  EXPECT_EQ(judgement().verdict, Verdict::kVacuous);
  EXPECT_EQ(judgement().message.find("permuted: "), 0u) << judgement().message;
}

TEST_F(MetamorphicTrialTest, WhereTheBatchHasNoTwoPartsTheWholeRunAloneIsJudged) {
  contract::Case whole = Whole(1);
  whole.config.train_batch_size = whole.config.micro_batch_size = 1;
  Begin(whole, MetamorphicRelation::kSplit);
  ASSERT_EQ(trial_->Runs().size(), 1u);
  Take(kWhole, Right(kWhole));
  EXPECT_EQ(judgement().verdict, Verdict::kVacuous);
}

TEST_F(MetamorphicTrialTest, ARunThatCrashesIsNamedWithTheStepInWhichItStopped) {
  std::vector<Trace> torn = Right(kVariant);
  torn.front().steps.resize(3);
  Take(kWhole, Right(kWhole));
  Take(kVariant, torn, {Kind::kCrashed, "signal 6"});
  EXPECT_EQ(judgement().verdict, Verdict::kError);
  EXPECT_EQ(judgement().message, "run permuted: signal 6; 3 of 4 steps were traced");
  EXPECT_EQ(trial_->lead()->divergence.quantity, "engine");
  EXPECT_EQ(trial_->lead()->divergence.step, 3);
}

TEST_F(MetamorphicTrialTest, TheWorstEndCountsWhicheverRunItIsOf) {
  Take(kWhole, Right(kWhole), {Kind::kEnvironment, "no device"});
  Take(kVariant, Right(kVariant), {Kind::kError, "wrong state"});
  EXPECT_EQ(judgement().verdict, Verdict::kError);
  EXPECT_EQ(judgement().message, "run permuted: wrong state");
  Begin(Whole());
  Take(kWhole, Right(kWhole), {Kind::kUnsupported, "not this"});
  Take(kVariant, Right(kVariant), {Kind::kInterrupted, ""});
  EXPECT_EQ(judgement().verdict, Verdict::kUnsupported);
  EXPECT_FALSE(trial_->lead());
}

TEST_F(MetamorphicTrialTest, ATraceOfOneRunThatLacksATensorFailsAndNothingIsCompared) {
  Take(kWhole, Right(kWhole));
  std::vector<Trace> traces = Right(kVariant);
  traces.front().steps[1].of(TensorKind::kWeight).pop_back();
  Take(kVariant, traces);
  EXPECT_EQ(judgement().verdict, Verdict::kFail);
  EXPECT_EQ(Outcome("trace"), CheckOutcome::kFail);
  EXPECT_FALSE(Outcome("metamorphic"));
  EXPECT_FALSE(trial_->lead());
}

}  // namespace
}  // namespace plumbline::conformance
