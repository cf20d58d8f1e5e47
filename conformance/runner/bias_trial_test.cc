// SPDX-License-Identifier: Apache-2.0
// The search for a small bias, with steps of engines that are made up: what passes, what is named, and how many runs
// end in one verdict. What a bias is, and how small a one is found, is oracle/bias_check_test's.
#include "conformance/runner/bias_trial.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <optional>

#include "conformance/contract/testing/temporary_folder.h"
#include "conformance/runner/real_runs.h"
#include "conformance/runner/testing/made_up_engine.h"

namespace plumbline::conformance {
namespace {

using contract::DType;
using contract::TensorKind;
using reports::CheckOutcome;
using reports::Verdict;
using Kind = CaseOutcome::Kind;

constexpr int64_t kNumSteps = 12;
constexpr const char* kTensor =
    "layers.0.mlp.up.weight";  // the only ones of 4096 elements are this and mlp.down.weight

Problem SmallProblem() {
  contract::Gpt2Spec model;
  model.layers = 1;
  model.width = 32;
  model.heads = 2;
  model.positions = 4;
  model.hidden = 128;
  model.vocab = 8;
  Problem problem{"bias", model, ExampleRealCase().config, 1, kNumSteps};
  problem.plain.train_batch_size = problem.plain.micro_batch_size = 8;
  return problem;
}

// Gradients drawn by the seed of the step, with errors of relative size `error`, and one tensor's times `factor`.
MadeUpEngine::MakeStep Draw(double error, double factor = 1) {
  return [error, factor](const TaskRun& run, int64_t) {
    StepSight sight;
    sight.loss = 2;
    sight.tokens = 20;
    ExampleNumbers numbers(run.spec.seed), errors(run.spec.seed + 1);
    for (const contract::ParameterSpec& parameter : contract::Parameters(run.spec.model)) {
      std::vector<double>& values = sight.of(TensorKind::kGradient).emplace_back();
      for (int64_t i = 0; i < parameter.numel(); ++i) {
        values.push_back(numbers.Normal() * (1 + error * errors.Normal()) * (parameter.name == kTensor ? factor : 1));
      }
    }
    return sight;
  };
}

// `witness_factor`: 1, or what the witness has wrong.
BiasTruth MakeTruth(double witness_factor = 1) {
  const contract::testing::TemporaryFolder folder;
  BiasTruth truth(SmallProblem(), {});
  MadeUpEngine(DType::kF64, Draw(0)).RunTaskIn(folder.path(), truth.reference_task());
  for (RunTask* task : truth.witness_tasks()) {
    MadeUpEngine(DType::kF64, Draw(0, witness_factor)).RunTaskIn(folder.path(), *task);
  }
  truth.Finish();
  return truth;
}

const BiasTruth& GoodTruth() {
  static const BiasTruth truth = MakeTruth();
  return truth;
}

contract::Case Base() { return CaseOf(SmallProblem(), "gpt2/bias/x", PlainLayout(SmallProblem(), DType::kBF16), {}); }

using Touch = std::function<CaseOutcome(size_t run, const std::filesystem::path& out_dir)>;  // how a run ended

struct Judged {
  Judgement judgement;
  std::optional<Lead> lead;
};

Judged Try(double factor, const BiasTruth& truth, const Touch& touch = nullptr) {
  const contract::testing::TemporaryFolder folder;
  const contract::EngineDescription description;
  const MadeUpEngine engine(DType::kF32, Draw(5e-3, factor));
  BiasTrial trial(Base(), description, truth);
  const std::vector<TaskRun> runs = trial.Runs();
  EXPECT_EQ(static_cast<int64_t>(runs.size()), kNumSteps);
  for (size_t i = 0; i < runs.size(); ++i) {
    EXPECT_FALSE(trial.is_judged());
    engine.Run(runs[i], folder.path() / std::to_string(i));
    trial.Take(i, folder.path() / std::to_string(i),
               touch ? touch(i, folder.path() / std::to_string(i)) : CaseOutcome{});
  }
  return {trial.judgement(), trial.lead()};
}

Judgement JudgeEngine(double factor, const BiasTruth& truth, const Touch& touch = nullptr) {
  return Try(factor, truth, touch).judgement;
}

CheckOutcome Outcome(const Judgement& judgement, const std::string& name) {
  const auto found = std::find_if(judgement.checks.begin(), judgement.checks.end(),
                                  [&](const auto& check) { return check.name == name; });
  return found == judgement.checks.end() ? CheckOutcome::kNotApplicable : found->outcome;
}

TEST(BiasTrial, RoundingAloneIsNoBias) {
  const Judgement judgement = JudgeEngine(1, GoodTruth());
  EXPECT_EQ(judgement.verdict, Verdict::kPass) << judgement.message;
  for (const char* check : {"bias", "truth", "dump", "guard"}) {
    EXPECT_EQ(Outcome(judgement, check), CheckOutcome::kPass) << check;
  }
}

TEST(BiasTrial, AFactorInOneGradientIsFoundAndItsTensorNamed) {
  const Judgement judgement = JudgeEngine(1.01, GoodTruth());
  EXPECT_EQ(judgement.verdict, Verdict::kFail);
  EXPECT_EQ(Outcome(judgement, "bias"), CheckOutcome::kFail);
  ASSERT_TRUE(judgement.divergence);
  EXPECT_EQ(judgement.divergence->tensor, kTensor);
}

TEST(BiasTrial, ACrashInOneOfManyRunsIsNotHiddenByWhatAnotherLacked) {
  const Judgement judgement = JudgeEngine(1, GoodTruth(), [](size_t run, const auto&) {
    if (run == 0) return CaseOutcome{Kind::kEnvironment, "no device"};
    if (run == 3) return CaseOutcome{Kind::kUnsupported, "no such type"};
    return run == 7 || run == 9 ? CaseOutcome{Kind::kError, "out of memory"} : CaseOutcome{};
  });
  EXPECT_EQ(judgement.verdict, Verdict::kError);
  EXPECT_TRUE(judgement.engine_failed);
  EXPECT_EQ(judgement.message, "run unrelated7: out of memory");
  EXPECT_EQ(judgement.diverged_run, 7u);
}

TEST(BiasTrial, OfOneRunWithoutADumpNothingIsCompared) {
  const Judgement judgement = JudgeEngine(1, GoodTruth(), [](size_t run, const std::filesystem::path& out_dir) {
    if (run == 5) std::filesystem::remove(DumpPath(out_dir, 0, 0));
    return CaseOutcome{};
  });
  EXPECT_EQ(judgement.verdict, Verdict::kFail);
  EXPECT_EQ(Outcome(judgement, "dump"), CheckOutcome::kFail);
  EXPECT_EQ(Outcome(judgement, "bias"), CheckOutcome::kNotApplicable);
}

TEST(BiasTrial, LeadsToTheTensorTheStepThatStoppedOrTheRunWhoseRanksDiffer) {
  EXPECT_FALSE(Try(1, GoodTruth()).lead);
  const std::optional<Lead> bias = Try(1.01, GoodTruth()).lead;
  ASSERT_TRUE(bias);
  EXPECT_EQ(bias->divergence.quantity, "gradient");
  EXPECT_EQ(bias->divergence.tensor, kTensor);
  EXPECT_FALSE(bias->run) << "no single step shows it";

  const std::optional<Lead> stop = Try(1, GoodTruth(), [](size_t run, const std::filesystem::path& out_dir) {
                                     if (run != 7) return CaseOutcome{};
                                     std::filesystem::remove_all(out_dir / "rank0");
                                     return CaseOutcome{Kind::kError, "out of memory"};
                                   }).lead;
  ASSERT_TRUE(stop);
  EXPECT_EQ(stop->divergence.quantity, "engine");
  EXPECT_EQ(stop->divergence.step, 0);
  EXPECT_EQ(stop->divergence.detail, "run unrelated7: out of memory");
  EXPECT_FALSE(stop->run);

  const std::optional<Lead> dump = Try(1, GoodTruth(), [](size_t run, const std::filesystem::path& out_dir) {
                                     if (run == 5 || run == 6) std::filesystem::remove(DumpPath(out_dir, 0, 0));
                                     return CaseOutcome{};
                                   }).lead;
  ASSERT_TRUE(dump);
  EXPECT_EQ(dump->divergence.quantity, "dump");
  ASSERT_TRUE(dump->run);
  EXPECT_EQ(NameOfRun(dump->run->spec.id, Base().id), "unrelated5");
}

TEST(BiasTrial, WhereReferenceAndWitnessDisagreeNobodyIsAccused) {
  const Judgement judgement = JudgeEngine(1.01, MakeTruth(/*witness_factor=*/1.001));
  EXPECT_EQ(judgement.verdict, Verdict::kError);
  EXPECT_TRUE(judgement.no_truth);
  EXPECT_FALSE(judgement.engine_failed);
  EXPECT_NE(judgement.message.find("reference and witness disagree"), std::string::npos) << judgement.message;
}

}  // namespace
}  // namespace plumbline::conformance
