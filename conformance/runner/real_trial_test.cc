// SPDX-License-Identifier: Apache-2.0
// The trial of an engine of a real family, with a truth, a yardstick and engines that are made up: in which of its many
// runs a mistake is seen, and what the diagnosis is to begin with. The checks themselves are the oracle's tests'.
#include "conformance/runner/real_trial.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <ranges>

#include "conformance/contract/testing/temporary_folder.h"
#include "conformance/runner/testing/made_up_engine.h"

namespace plumbline::conformance {
namespace {

using contract::DType;
using contract::TensorKind;
using reports::CheckOutcome;
using reports::Verdict;
using Kind = CaseOutcome::Kind;

constexpr int64_t kSteps = 5;  // injected: 0, 1, 2, 4
constexpr size_t kTensor = 3;

Problem SmallProblem() {
  Problem problem{"x", ExampleGpt2(), ExampleRealCase().config, kSteps};
  problem.plain.train_batch_size = problem.plain.micro_batch_size = 8;
  return problem;
}

StepSight TruthOf(int64_t step) {
  StepSight sight = ExampleTruth(1000 + static_cast<uint64_t>(step)).front();
  sight.step = step;
  sight.loss = 3 - 0.1 * static_cast<double>(step);
  return sight;
}

MadeUpEngine Fp64() {
  return MadeUpEngine(DType::kF64, [](const TaskRun&, int64_t step) { return TruthOf(step); });
}

// Twenty tokens, one after the other: a step has some of them, the next one others.
contract::TokenSource Text() {
  contract::TokenSource source{{}, true};
  for (int32_t i = 0; i < 1000; ++i) source.tokens.push_back(i / 50);
  return source;
}

// What an engine finds in a run whose first step is to be skipped: the head's gradient is the embedding's, and in that
// step none has a value.
void FindNothing(const TaskRun& run, StepSight& sight) {
  auto& gradients = sight.of(TensorKind::kGradient);
  gradients.insert(gradients.end() - 1, gradients.front());  // before unused.weight
  if (sight.step == run.spec.first_step) std::fill(gradients.front().begin(), gradients.front().end(), NAN);
}

bool BeginsWithNothing(const TaskRun& run) { return run.spec.id.find("-nan") != std::string::npos; }

// With the errors of fp32; other ones for another number, and for a run that begins at other weights if `drifts`.
MadeUpEngine::MakeStep Rounded(uint64_t number, bool drifts) {
  return [number, drifts](const TaskRun& run, int64_t step) {
    const uint64_t start =
        drifts && run.start ? std::bit_cast<uint32_t>(run.start->state.front().master.front()) : uint64_t{0};
    return ExampleEngine({TruthOf(step)}, DType::kF32, number + start).front();
  };
}

// What the engines behind a truth have wrong, and what of.
struct Behind {
  Problem problem = SmallProblem();
  MadeUpEngine trajectory = Fp64(), reference = Fp64(), witness = Fp64();
  MadeUpEngine::Change make_plain = nullptr;  // changes what a step of the plain engines computes
};

std::unique_ptr<RealTruth> MakeTruth(const contract::TokenSource& source, const contract::EngineDescription& plain,
                                     const Behind& behind = {}) {
  const contract::testing::TemporaryFolder folder;
  const std::set storages{DType::kF32, DType::kBF16};
  auto truth = std::make_unique<RealTruth>(behind.problem, storages, PlanOptions{}, source);
  behind.trajectory.RunTaskIn(folder.path(), truth->trajectory());
  truth->MakeLines(plain);
  for (RunTask* line : truth->truth_lines()) behind.reference.RunTaskIn(folder.path(), *line);
  const std::vector<RunTask*> lines = truth->plain_lines();
  for (size_t i = 0; i + 1 < lines.size(); ++i) {
    const auto make = [&](const TaskRun& run, int64_t step) {
      StepSight sight = Rounded(100 + i, /*drifts=*/true)(run, step);
      if (behind.make_plain) behind.make_plain(run, sight);
      return sight;
    };
    MadeUpEngine(DType::kF32, make).RunTaskIn(folder.path(), *lines[i]);
  }
  behind.witness.RunTaskIn(folder.path(), *lines.back());
  truth->Finish();
  return truth;
}

class RealTrialTest : public ::testing::Test {
 protected:
  // One truth for all tests: it is read only.
  static const RealTruth& Truth() {
    static const contract::TokenSource source = Text();
    static const contract::EngineDescription plain;
    static const std::unique_ptr<RealTruth> truth = MakeTruth(source, plain);
    return *truth;
  }

  RealTrialTest() {
    description_.features = {"deterministic", "save"};
    contract::RunConfig config = SmallProblem().plain;
    config.reduce_bucket_elems = 20;  // so that the simplest layout is another
    base_ = CaseOf(SmallProblem(), "gpt2/x", config, {});
  }

  using End = std::function<CaseOutcome(const std::string& name, const std::filesystem::path& out_dir)>;

  // An engine with these mistakes, on all runs. `make` changes what a step computes, `change` what it leaves.
  void Judge(const MadeUpEngine::Change& make, const MadeUpEngine::Change& change = nullptr, const End& end = nullptr,
             const RealTruth& truth = Truth()) {
    const contract::testing::TemporaryFolder folder;
    trial_ = std::make_unique<RealTrial>(base_, description_, truth, beside_);
    const MadeUpEngine::MakeStep right = Rounded(7, /*drifts=*/false);
    const MadeUpEngine engine(
        DType::kF32,
        [&](const TaskRun& run, int64_t step) {
          StepSight sight = right(run, step);
          if (BeginsWithNothing(run)) FindNothing(run, sight);
          if (make) make(run, sight);
          return sight;
        },
        change);
    const std::vector<TaskRun> runs = trial_->Runs();
    for (size_t i = 0; i < runs.size(); ++i) {
      const std::filesystem::path out_dir = folder.path() / std::to_string(i);
      TaskRun run = runs[i];
      // What a checkpoint gives back, after a step that was skipped.
      if (run.resumes && runs[*run.resumes].start) run.start = runs[*run.resumes].start;
      engine.Run(run, out_dir);
      trial_->Take(i, out_dir, end ? end(NameOfRun(runs[i].spec.id, base_.id), out_dir) : CaseOutcome{});
    }
  }

  const Judgement& judgement() const { return trial_->judgement(); }
  const Lead& lead() const { return *trial_->lead(); }
  std::string Failed() const {  // names of checks
    std::string names;
    for (const auto& check : judgement().checks) {
      if (check.outcome == CheckOutcome::kFail) names += (names.empty() ? "" : " ") + check.name;
    }
    return names;
  }
  std::string IdOf(const std::optional<TaskRun>& run) const { return run ? NameOfRun(run->spec.id, base_.id) : "none"; }

  contract::EngineDescription description_;
  Beside beside_ = Beside::kNothing;
  contract::Case base_;
  std::unique_ptr<RealTrial> trial_;
};

// A change of one run's master weights after this step, which shows in the trace and in the dump.
MadeUpEngine::Change WrongMaster(const std::string& run_name, int64_t step) {
  return [=](const TaskRun& run, StepSight& sight) {
    if (!run.spec.id.ends_with("/" + run_name) || sight.step != step) return;
    sight.of(TensorKind::kMaster)[kTensor][0] += 0.5;
  };
}

TEST_F(RealTrialTest, ARightEnginePassesWithItsGuard) {
  Judge(nullptr);
  EXPECT_EQ(judgement().verdict, Verdict::kPass) << judgement().message;
  for (const char* name :
       {"trace", "dump", "truth", "gradient", "loss", "update", "skip", "relation", "trajectory", "guard"}) {
    const auto found = std::find_if(judgement().checks.begin(), judgement().checks.end(),
                                    [&](const auto& check) { return check.name == name; });
    ASSERT_NE(found, judgement().checks.end()) << name;
    EXPECT_EQ(found->outcome, CheckOutcome::kPass) << name << ": " << found->detail;
  }
  EXPECT_FALSE(trial_->lead());
}

TEST_F(RealTrialTest, AWrongGradientIsRunAgainFromTheStateOfTheFirstStepThatHasIt) {
  for (int64_t first : {0, 2}) {
    Judge([=](const TaskRun&, StepSight& sight) {
      if (sight.step < first) return;
      for (double& value : sight.of(TensorKind::kGradient)[kTensor]) value *= 1.5;
    });
    EXPECT_EQ(judgement().verdict, Verdict::kFail);
    EXPECT_EQ(Failed(), "gradient");
    ASSERT_TRUE(trial_->lead());
    EXPECT_EQ(lead().divergence.step, first);
    EXPECT_EQ(lead().divergence.quantity, "gradient");
    EXPECT_EQ(lead().divergence.tensor, contract::Parameters(base_.model)[kTensor].name);
    EXPECT_EQ(IdOf(lead().run), "step" + std::to_string(first));
    EXPECT_TRUE(lead().run->start) << "from the truth's state";
    EXPECT_EQ(IdOf(lead().expected), "none");
    EXPECT_GT(lead().noise, 0);
  }
}

TEST_F(RealTrialTest, ARunInThreadsIsMadeBesideProcessesAloneAndMustHaveTheirBits) {
  const auto num_in_threads = [&] {
    return std::ranges::count_if(trial_->Runs(), [](const TaskRun& run) { return run.in_threads; });
  };
  Judge(nullptr);
  EXPECT_EQ(num_in_threads(), 0);
  beside_ = Beside::kThreads;
  Judge(nullptr);
  EXPECT_EQ(num_in_threads(), 1);
  EXPECT_EQ(judgement().verdict, Verdict::kPass) << judgement().message;
  Judge(nullptr, WrongMaster("threads", 1));
  EXPECT_EQ(Failed(), "relation");
  EXPECT_NE(judgement().message.find("processes and threads"), std::string::npos) << judgement().message;
  EXPECT_EQ(lead().divergence.step, 1);
  EXPECT_EQ(IdOf(lead().run), "none") << "nothing to run again with one engine";
}

TEST_F(RealTrialTest, AWrongUpdateIsRunAgainInItsOwnStep) {
  Judge(nullptr, WrongMaster("step4", 4));
  EXPECT_EQ(Failed(), "update");
  EXPECT_EQ(lead().divergence.step, 4);
  EXPECT_EQ(lead().divergence.quantity, "master");
  EXPECT_EQ(lead().divergence.tensor, contract::Parameters(base_.model)[kTensor].name);
  EXPECT_EQ(IdOf(lead().run), "step4");
  EXPECT_EQ(lead().run->start->num_updates, 4);
}

TEST_F(RealTrialTest, AStepThatIsNotSkippedAndTheOneAfterItAreJudgedInTheirRun) {
  Judge(nullptr, WrongMaster("step1-nan", 1));
  EXPECT_EQ(Failed(), "skip");
  EXPECT_EQ(lead().divergence.step, 1);
  EXPECT_EQ(IdOf(lead().run), "step1-nan");
  Judge(nullptr, WrongMaster("step1-nan", 2));
  EXPECT_EQ(Failed(), "update");
  EXPECT_EQ(lead().divergence.step, 2);
  EXPECT_EQ(lead().divergence.quantity, "master");
  EXPECT_EQ(IdOf(lead().run), "step1-nan");
  EXPECT_EQ(lead().run->start->num_updates, 1) << "the skipped step made none";
  Judge(nullptr, nullptr, [](const std::string& name, const std::filesystem::path& out_dir) {
    if (name == "step1-nan") std::filesystem::remove(DumpPath(out_dir, 0, 2));
    return CaseOutcome{};
  });
  EXPECT_EQ(Failed(), "dump");
  EXPECT_EQ(lead().divergence.step, 2);
  EXPECT_EQ(IdOf(lead().run), "step1-nan");
}

// It is told from a mistake of the engine by the saving run, which has made the step too.
TEST_F(RealTrialTest, AStepThatIsWrongAfterASkippedOneWasSavedIsComparedWithTheSavingRun) {
  Judge(nullptr, WrongMaster("step1-nan/resumed", 2));
  EXPECT_EQ(Failed(), "update");
  EXPECT_EQ(lead().divergence.step, 2);
  EXPECT_EQ(lead().divergence.quantity, "master");
  EXPECT_EQ(IdOf(lead().run), "step1-nan/resumed");
  EXPECT_EQ(IdOf(lead().saved), "step1-nan");
  EXPECT_EQ(lead().saved->spec.save_steps, std::vector<int64_t>{1});
  EXPECT_EQ(IdOf(lead().expected), "step1-nan");
}

TEST_F(RealTrialTest, NothingIsSavedAfterASkippedStepWhereNothingIsCountedOrSaved) {
  const auto has_resumed = [&] {
    const std::vector<TaskRun> runs = RealTrial(base_, description_, Truth()).Runs();
    return std::any_of(runs.begin(), runs.end(), [&](const TaskRun& run) { return IdOf(run) == "step1-nan/resumed"; });
  };
  EXPECT_TRUE(has_resumed());
  description_.features = {"deterministic"};
  EXPECT_FALSE(has_resumed());
  description_.features = {"deterministic", "save"};
  base_.config.optimizer = contract::OptimizerKind::kSgd;
  EXPECT_FALSE(has_resumed());
}

// The last of the single steps is clipped whatever the norms were, unless the truth's own trajectory has a norm that
// the step has not.
TEST_F(RealTrialTest, OneStepIsClippedByHistoryOrTheCaseIsVacuous) {
  const contract::TokenSource source = Text();
  const contract::EngineDescription plain;
  Problem problem = SmallProblem();
  problem.plain.adaptive_clipping.kind = contract::AdaptiveClipping::Kind::kHistory;
  problem.plain.adaptive_clipping.warmup_steps = 100;
  base_.config.adaptive_clipping = problem.plain.adaptive_clipping;
  base_.config.gradient_clipping = problem.plain.gradient_clipping = 0;
  const auto truth = MakeTruth(source, plain, {.problem = problem});
  Judge(nullptr, nullptr, nullptr, *truth);
  EXPECT_EQ(judgement().verdict, Verdict::kPass) << judgement().message;
  const MadeUpEngine::Change larger = [](const TaskRun&, StepSight& sight) { sight.real.gradient_norm *= 100; };
  const MadeUpEngine of_trajectory(
      DType::kF64, [](const TaskRun&, int64_t step) { return TruthOf(step); }, larger);
  const auto unclipped = MakeTruth(source, plain, {.problem = problem, .trajectory = of_trajectory});
  Judge(nullptr, nullptr, nullptr, *unclipped);
  EXPECT_EQ(judgement().verdict, Verdict::kVacuous);
  EXPECT_NE(judgement().message.find("none of 4 steps is clipped"), std::string::npos) << judgement().message;
}

TEST_F(RealTrialTest, SumsOfSeveralSharesMustHoldMoreThanBf16Does) {
  const MadeUpEngine::Change in_bf16 = [](const TaskRun&, StepSight& sight) {
    for (auto& tensor : sight.of(TensorKind::kGradient)) {
      for (double& value : tensor) value = ToBf16(static_cast<float>(value));
    }
  };
  const auto outcome = [&] {
    for (const auto& check : judgement().checks) {
      if (check.name == "accumulation") return check.outcome;
    }
    return CheckOutcome::kNotApplicable;
  };
  base_.config.storage = DType::kBF16;
  Judge(in_bf16);
  EXPECT_EQ(outcome(), CheckOutcome::kNotApplicable) << "of one share";
  base_.config.accumulation_steps = 2;
  base_.config.micro_batch_size /= 2;
  Judge(nullptr);
  EXPECT_EQ(judgement().verdict, Verdict::kPass) << judgement().message;
  EXPECT_EQ(outcome(), CheckOutcome::kPass);
  EXPECT_NE(judgement().checks.back().detail.find("accumulation"), std::string::npos)
      << "the guard: " << judgement().checks.back().detail;
  Judge(in_bf16);
  EXPECT_EQ(outcome(), CheckOutcome::kFail);
}

TEST_F(RealTrialTest, AResumedRunThatGoesOnElsewhereIsComparedWithTheTrajectory) {
  Judge(nullptr, WrongMaster("resumed", 3));
  EXPECT_EQ(Failed(), "relation");
  EXPECT_EQ(judgement().message.find("save and resume: step 3"), 0u) << judgement().message;
  EXPECT_EQ(lead().divergence.step, 3);
  EXPECT_EQ(IdOf(lead().run), "resumed");
  EXPECT_EQ(IdOf(lead().saved), "again");
  EXPECT_EQ(lead().saved->spec.save_steps, std::vector<int64_t>{1});
  EXPECT_EQ(IdOf(lead().expected), "");
}

// Of two runs that should be equal neither is the truth; the trajectory is looked at, and expected to be like the
// other.
TEST_F(RealTrialTest, ARunThatIsNotRepeatedNamesTheRunThatItShouldEqual) {
  for (const std::string other : {"again", "related"}) {
    Judge(nullptr, WrongMaster(other, 1));
    EXPECT_EQ(Failed(), "relation");
    EXPECT_EQ(lead().divergence.step, 1) << other;
    EXPECT_EQ(IdOf(lead().run), "");
    EXPECT_EQ(IdOf(lead().expected), other);
    EXPECT_EQ(IdOf(lead().saved), "none");
  }
}

TEST_F(RealTrialTest, ATrajectoryThatDriftsHasNoFirstPlace) {
  Judge([](const TaskRun& run, StepSight& sight) {
    if (!run.start && sight.step >= 3) sight.loss += 0.5;
  });
  EXPECT_EQ(Failed(), "trajectory");
  EXPECT_EQ(lead().divergence.quantity, "loss");
  EXPECT_EQ(IdOf(lead().run), "none");
}

TEST_F(RealTrialTest, AMistakeInAStepLeadsThoughRelationsAreBrokenToo) {
  Judge([](const TaskRun&, StepSight& sight) { sight.of(TensorKind::kGradient)[kTensor][0] *= 40; },
        WrongMaster("again", 1));
  EXPECT_EQ(Failed(), "gradient relation");
  EXPECT_EQ(lead().divergence.quantity, "gradient");
  EXPECT_EQ(judgement().message.find("relation"), std::string::npos) << judgement().message;
}

TEST_F(RealTrialTest, AStepWithoutADumpIsNamedAndItsGradientsAreNotJudged) {
  Judge(nullptr, nullptr, [](const std::string& name, const std::filesystem::path& out_dir) {
    if (name == "step2") std::filesystem::remove(DumpPath(out_dir, 0, 2));
    return CaseOutcome{};
  });
  EXPECT_EQ(Failed(), "dump");
  EXPECT_EQ(lead().divergence.quantity, "dump");
  EXPECT_EQ(lead().divergence.step, 2);
  EXPECT_EQ(IdOf(lead().run), "step2");
}

TEST_F(RealTrialTest, TheWorstEndOfManyRunsIsToldWithItsRunAndItsStep) {
  Judge(nullptr, nullptr, [](const std::string& name, const std::filesystem::path& out_dir) -> CaseOutcome {
    if (name.empty()) return {Kind::kEnvironment, "no device"};
    if (name == "step0") return {Kind::kUnsupported, "not this"};
    if (name != "step2" && name != "step4") return {};
    std::filesystem::remove_all(out_dir);
    return {Kind::kCrashed, "signal 11"};
  });
  EXPECT_EQ(judgement().verdict, Verdict::kError);
  EXPECT_EQ(judgement().message, "run step2: signal 11; no step was traced");
  EXPECT_EQ(lead().divergence.quantity, "engine");
  EXPECT_EQ(lead().divergence.step, 2);
  EXPECT_EQ(IdOf(lead().run), "none");
}

TEST_F(RealTrialTest, ARunWithoutACheckpointToResumeFromIsNoError) {
  Judge(nullptr, nullptr, [](const std::string& name, const std::filesystem::path&) -> CaseOutcome {
    if (name == "again") return {Kind::kEnvironment, "the disk is full"};
    if (name == "resumed") return {Kind::kError, "no checkpoint"};
    return {};
  });
  EXPECT_EQ(judgement().verdict, Verdict::kNotRun);
  EXPECT_EQ(judgement().message, "run again: the disk is full");
  EXPECT_FALSE(trial_->lead());
}

TEST_F(RealTrialTest, OfAnEngineThatClaimsNothingNoRelationIsDemanded) {
  description_.features.clear();
  Judge(nullptr);
  for (const TaskRun& run : trial_->Runs()) {
    for (const char* name : {"again", "resumed", "related"}) EXPECT_NE(IdOf(run), name);
  }
  EXPECT_EQ(judgement().verdict, Verdict::kPass) << judgement().message;
}

// The numbers of a run can leave the range of fp32 while the truth goes on: an engine that loses them where a plain one
// does neither fails nor passes, one that loses them alone fails.
TEST_F(RealTrialTest, AGradientThatPlainEnginesLoseTooIsNoFault) {
  const auto lose = [](const TaskRun&, StepSight& sight) {
    if (sight.step == 4) std::ranges::fill(sight.of(TensorKind::kGradient)[kTensor], NAN);
  };
  const contract::TokenSource source = Text();
  const contract::EngineDescription plain;
  const auto truth = MakeTruth(source, plain, {.make_plain = lose});
  Judge(lose, nullptr, nullptr, *truth);
  EXPECT_EQ(judgement().verdict, Verdict::kVacuous) << judgement().message;
  EXPECT_EQ(judgement().message,
            "step 4: the gradient of the plain engine is not finite: nothing can be measured by it");
  const auto update = std::ranges::find(judgement().checks, "update", &reports::CheckRecord::name);
  ASSERT_NE(update, judgement().checks.end());
  EXPECT_EQ(update->detail,
            "step 4: the gradient is not finite, nor is a plain engine's: the run leaves the range of its types");
  Judge(nullptr, WrongMaster("step2", 2), nullptr, *truth);
  EXPECT_EQ(Failed(), "update") << "other steps are judged";
  Judge(lose);
  EXPECT_EQ(judgement().verdict, Verdict::kFail);
}

TEST_F(RealTrialTest, ARunWithoutFiniteValuesIsSaidToHaveNone) {
  const contract::EngineDescription plain;
  const contract::TokenSource source = Text();
  const auto lose = [](int64_t step) {
    StepSight sight = TruthOf(step);
    if (step == 2) std::ranges::fill(sight.of(TensorKind::kGradient)[kTensor], NAN);
    return sight;
  };
  const MadeUpEngine lost(DType::kF64, [&](const TaskRun&, int64_t step) { return lose(step); });
  const auto truth = MakeTruth(source, plain, {.reference = lost, .witness = lost});
  Judge(nullptr, nullptr, nullptr, *truth);
  EXPECT_TRUE(judgement().no_truth);
  EXPECT_EQ(judgement().message.find("there is no truth: the run has no finite values: step 2: gradient of "), 0u)
      << judgement().message;
}

TEST_F(RealTrialTest, WithoutATruthNobodyIsAccused) {
  const contract::TokenSource source{std::vector<int32_t>(1000, 1), true};
  const contract::EngineDescription plain;
  const MadeUpEngine wrong_witness(DType::kF64, [](const TaskRun&, int64_t step) {
    StepSight sight = TruthOf(step);
    sight.of(TensorKind::kGradient)[kTensor][0] += 1e-3;
    return sight;
  });
  const auto truth = MakeTruth(source, plain, {.witness = wrong_witness});
  Judge([](const TaskRun&, StepSight& sight) { sight.loss += 1; }, nullptr, nullptr, *truth);
  EXPECT_EQ(judgement().verdict, Verdict::kError);
  EXPECT_TRUE(judgement().no_truth);
  EXPECT_FALSE(judgement().engine_failed);
  EXPECT_NE(judgement().message.find("reference and witness disagree"), std::string::npos) << judgement().message;
  EXPECT_FALSE(trial_->lead());
}

}  // namespace
}  // namespace plumbline::conformance
