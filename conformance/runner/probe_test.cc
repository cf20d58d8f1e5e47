// SPDX-License-Identifier: Apache-2.0
// What a diagnosis runs besides, and what it makes of what those runs left: written here, no engine runs.
#include "conformance/runner/probe.h"

#include <gtest/gtest.h>

#include <functional>
#include <numeric>
#include <set>

#include "conformance/contract/testing/temporary_folder.h"
#include "conformance/oracle/testing/example_run.h"
#include "conformance/oracle/testing/example_step.h"
#include "conformance/runner/testing/made_up_engine.h"
#include "conformance/runner/testing/run_folder.h"

namespace plumbline::conformance {
namespace {

using contract::TensorKind;
using Kind = CaseOutcome::Kind;

constexpr int64_t kStep = 2;
constexpr size_t kTensor = 1;

const contract::TokenSource& Source() {
  static const contract::TokenSource source = [] {
    contract::TokenSource made{{}, true};
    for (int32_t i = 0; i < 997; ++i) made.tokens.push_back((i * i) % 11);
    return made;
  }();
  return source;
}

// Two ranks, two micro-batches each.
contract::Case Spec() {
  contract::Case spec = ExampleCase(2);
  spec.model.exact().positions = 12;  // weighted tokens enough for eight samples
  spec.config.accumulation_steps = 2;
  spec.config.train_batch_size = 8;
  spec.save_steps = {1};
  spec.dump_steps = {0};
  return spec;
}

// Distinguishes run, step, kind, tensor and element.
int64_t Number(size_t run, int64_t step, TensorKind kind, size_t tensor, int64_t index) {
  return ((static_cast<int64_t>(run) * 10 + step) * 10 + static_cast<int64_t>(kind)) * 10'000 +
         static_cast<int64_t>(tensor) * 100 + index;
}

Values Numbers(size_t run, int64_t step, TensorKind kind, size_t tensor) {
  Values values(static_cast<size_t>(contract::Parameters(Spec().model)[tensor].numel()));
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<double>(Number(run, step, kind, tensor, static_cast<int64_t>(i)));
  }
  return values;
}

// Lets the task take this run with all dumps that it asks for; losses are numbers of run and step.
void Feed(RunTask& task, size_t run) {
  const contract::testing::TemporaryFolder folder;
  const contract::Case spec = task.Runs().at(run).spec;
  WriteExactDumps(
      spec, folder.path(), spec.dump_steps,
      [&](int64_t, int64_t step, TensorKind kind, size_t tensor, int64_t index) {
        return Number(run, step, kind, tensor, index);
      },
      [&](int64_t, int64_t step) { return static_cast<double>(run) + 0.125 * static_cast<double>(step); });
  task.Take(run, folder.path(), {});
}

void FeedAll(RunTask& task) {
  for (size_t run = 0; run < task.Runs().size(); ++run) Feed(task, run);
}

TEST(DumpTask, TellsItsRunsWhatToDumpAndReadsThoseSteps) {
  DumpTask task({{{Spec()}, {1, 3}}, {{Spec()}, {}}, {{Spec()}, {0}}});
  EXPECT_EQ(task.Runs()[0].spec.dump_steps, (std::vector<int64_t>{1, 3}));
  EXPECT_TRUE(task.Runs()[1].spec.dump_steps.empty());
  FeedAll(task);
  EXPECT_EQ(task.error(), "");
  ASSERT_TRUE(task.dump(0, 3));
  EXPECT_EQ(task.dump(0, 3)->of(TensorKind::kMaster, kTensor).front().values,
            Numbers(0, 3, TensorKind::kMaster, kTensor));
  EXPECT_EQ(task.dump(0, 1)->records.at(1).loss, 0.125);
  EXPECT_EQ(task.dump(2, 0)->of(TensorKind::kGradient, 0).back().values, Numbers(2, 0, TensorKind::kGradient, 0));
  EXPECT_FALSE(task.dump(0, 2));
  EXPECT_FALSE(task.dump(1, 1));
}

TEST(DumpTask, ARunThatFailsCostsItsOwnDumpsAndTheFirstErrorIsTold) {
  DumpTask task({{{Spec()}, {1}}, {{Spec()}, {1}}, {{Spec()}, {1}}});
  task.Take(1, "nowhere", {Kind::kCrashed, "signal 6"});
  task.Take(2, "nowhere", {});  // ended well, and left nothing
  Feed(task, 0);
  EXPECT_EQ(task.error(), "crashed signal 6");
  EXPECT_TRUE(task.dump(0, 1));
  EXPECT_FALSE(task.dump(1, 1));
  EXPECT_FALSE(task.dump(2, 1));
  DumpTask missing({{{Spec()}, {1}}});
  missing.Take(0, "nowhere", {});
  EXPECT_NE(missing.error().find("tensors-000001"), std::string::npos) << missing.error();
}

// By what they are made of. The reference knows no ranks and no micro-batches.
TEST(ReferenceProbe, RunsThePlainCaseUpToTheStepOnOneRank) {
  ReferenceProbe probe({Spec()}, kStep, Source());
  const std::vector<TaskRun> runs = probe.task().Runs();
  // The truth, four micro-batches, five confusions.
  EXPECT_EQ(runs.size(), 10u);
  for (const TaskRun& run : runs) {
    EXPECT_EQ(run.spec.config.world_size(), 1);
    EXPECT_EQ(run.spec.config.micro_batch_size, 8);
    EXPECT_EQ(run.spec.config.train_batch_size, 8);
    EXPECT_EQ(run.spec.steps, kStep + 1);
    EXPECT_TRUE(run.spec.save_steps.empty());
  }
  EXPECT_EQ(runs[0].spec.dump_steps, (std::vector<int64_t>{kStep - 1, kStep}));
  EXPECT_FALSE(runs[0].batches);
}

TEST(ReferenceProbe, MicroBatchesShareTheWeightedTokensOfTheStep) {
  ReferenceProbe probe({Spec()}, kStep, Source());
  const std::vector<TaskRun> runs = probe.task().Runs();
  const contract::Case plain = runs[0].spec;
  const contract::Batches whole = contract::MakeBatches(Source(), plain.model, {plain.seed, 0, plain.steps, 8});
  ASSERT_EQ(probe.share_tokens().size(), 4u);
  EXPECT_EQ(std::accumulate(probe.share_tokens().begin(), probe.share_tokens().end(), 0.0),
            static_cast<double>(contract::NumWeightedTokens(8, whole.positions, kStep)));
  for (int64_t part = 0; part < 4; ++part) {
    const contract::Batches& batches = *runs[static_cast<size_t>(1 + part)].batches;
    for (int64_t sample = 0; sample < 8; ++sample) {
      for (int64_t position = 0; position < whole.positions; ++position) {
        const auto at = static_cast<size_t>(whole.Index(kStep, sample, position));
        const bool counts = sample / 2 == part && whole.loss_weights[at] != 0;
        EXPECT_EQ(batches.loss_weights[at] != 0, counts) << part << " " << sample << " " << position;
      }
    }
  }
}

TEST(ReferenceProbe, InTheFirstStepThereIsNoStepBeforeToConfuseItWith) {
  ReferenceProbe probe({Spec()}, 0, Source());
  const std::vector<TaskRun> runs = probe.task().Runs();
  EXPECT_EQ(runs[0].spec.dump_steps, std::vector<int64_t>{0});
  EXPECT_EQ(runs.size(), 8u);
  FeedAll(probe.task());
  EXPECT_FALSE(probe.Before(kTensor));
  for (const ChangedGradient& changed : probe.Changed(kTensor)) EXPECT_EQ(changed.hypothesis, "neighbour_data");
}

TEST(ReferenceProbe, OneMicroBatchHasNoSharesAndNoNeighbours) {
  contract::Case spec = Spec();
  spec.config.train_batch_size = spec.config.micro_batch_size;
  spec.config.data_degree = spec.config.accumulation_steps = 1;
  ReferenceProbe probe({spec}, kStep, Source());
  FeedAll(probe.task());
  EXPECT_TRUE(probe.Shares(kTensor).empty());
  std::set<std::string> whats;
  for (const ChangedGradient& changed : probe.Changed(kTensor)) whats.insert(changed.what);
  EXPECT_EQ(whats, (std::set<std::string>{"labels of the next sample", "the batch of the step before", ""}));
}

TEST(ReferenceProbe, AskedForAStaleGradientOnlyWithoutDropout) {
  const auto asks = [](bool dropout) {
    contract::Case spec = Spec();
    spec.model.exact().dropout = dropout;
    ReferenceProbe probe({spec}, kStep, Source());
    FeedAll(probe.task());
    int64_t num_stale = 0;
    for (const ChangedGradient& changed : probe.Changed(kTensor)) num_stale += changed.hypothesis == "stale_gradient";
    return num_stale;
  };
  EXPECT_EQ(asks(false), 1);
  EXPECT_EQ(asks(true), 0);
}

TEST(ReferenceProbe, GivesEachQuantityFromItsOwnRunAndStep) {
  ReferenceProbe probe({Spec()}, kStep, Source());
  FeedAll(probe.task());
  EXPECT_EQ(probe.Truth(TensorKind::kGradient, kTensor), Numbers(0, kStep, TensorKind::kGradient, kTensor));
  EXPECT_EQ(probe.Truth(TensorKind::kMaster, kTensor), Numbers(0, kStep, TensorKind::kMaster, kTensor));
  EXPECT_TRUE(probe.Truth(TensorKind::kSecondMoment, kTensor).empty());
  EXPECT_EQ(probe.Before(kTensor)->master, Numbers(0, kStep - 1, TensorKind::kMaster, kTensor));
  EXPECT_EQ(probe.Before(kTensor)->moment, Numbers(0, kStep - 1, TensorKind::kMoment, kTensor));
  EXPECT_EQ(probe.Loss(), Values{0.25});
  const std::vector<Values> shares = probe.Shares(kTensor);
  ASSERT_EQ(shares.size(), 4u);
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(shares[i], Numbers(1 + i, kStep, TensorKind::kGradient, kTensor)) << i;
  EXPECT_EQ(probe.LossShares().at(3), Values{4.25});
  const std::vector<ChangedGradient> changed = probe.Changed(kTensor);
  ASSERT_EQ(changed.size(), 5u);
  EXPECT_EQ(changed.back().hypothesis, "stale_gradient");
  // The step's batch one step earlier, at the weights that were there.
  EXPECT_EQ(changed.back().values, Numbers(9, kStep - 1, TensorKind::kGradient, kTensor));
}

TEST(ReferenceProbe, WithoutOneMicroBatchThereAreNoSharesAndTheRestStays) {
  ReferenceProbe probe({Spec()}, kStep, Source());
  for (size_t run = 0; run < probe.task().Runs().size(); ++run) {
    if (run == 3 || run == 6) {
      probe.task().Take(run, "nowhere", {Kind::kTimedOut, "after 60 s"});
    } else {
      Feed(probe.task(), run);
    }
  }
  EXPECT_TRUE(probe.Shares(kTensor).empty());
  EXPECT_TRUE(probe.LossShares().empty());
  EXPECT_FALSE(probe.Truth(TensorKind::kGradient, kTensor).empty());
  EXPECT_EQ(probe.Changed(kTensor).size(), 4u);
  EXPECT_EQ(probe.error(), "timed_out after 60 s");
}

TEST(ReferenceProbe, WithoutATruthNothingIsInvented) {
  ReferenceProbe probe({Spec()}, kStep, Source());
  probe.task().Take(0, "nowhere", {Kind::kCrashed, "signal 6"});
  EXPECT_TRUE(probe.Truth(TensorKind::kGradient, kTensor).empty());
  EXPECT_FALSE(probe.Before(kTensor));
  EXPECT_TRUE(probe.Loss().empty());
}

// In the real families the reference gives each part's own mean: the shares of what is the same for all parts add up to
// it only if the means were weighted by their tokens.
TEST(ReferenceProbe, SharesOfARealFamilyAddUpToTheWhole) {
  contract::Case spec = ExampleRealCase();
  spec.config.train_batch_size = 6;
  spec.config.micro_batch_size = 1;
  spec.config.data_degree = 3;
  spec.config.accumulation_steps = 2;
  const StepSight made = ExampleTruth(4).front();
  const MadeUpEngine engine(contract::DType::kF64, [&](const TaskRun&, int64_t) { return made; });
  const contract::testing::TemporaryFolder folder;
  ReferenceProbe probe({spec}, 0, Source());
  engine.RunTaskIn(folder.path(), probe.task());
  ASSERT_EQ(probe.error(), "");
  const Values whole = probe.Truth(TensorKind::kGradient, kTensor);
  Values sum(whole.size());
  for (const Values& share : probe.Shares(kTensor)) {
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += share[i];
  }
  for (size_t i = 0; i < sum.size(); ++i) EXPECT_NEAR(sum[i], whole[i], 1e-12 * std::abs(whole[i])) << i;
  double loss = 0;
  for (const Values& share : probe.LossShares()) loss += share[0];
  EXPECT_NEAR(loss, made.loss, 1e-12);
}

TEST(ReferenceProbeKey, IsThatOfTheRunsThatWouldBeMade) {
  const std::string key = ReferenceProbe::Key({Spec()}, kStep);
  TaskRun same{Spec()};
  same.spec.id = "another";
  same.spec.config.zero_stage = 2;
  same.spec.config.data_degree = 1;
  same.spec.config.accumulation_steps = 4;
  same.spec.steps = 50;
  EXPECT_EQ(ReferenceProbe::Key(same, kStep), key) << "the reference knows no layout";
  EXPECT_NE(ReferenceProbe::Key(same, kStep + 1), key);
  const auto differs = [&](const std::function<void(TaskRun&)>& change) {
    TaskRun run{Spec()};
    change(run);
    return ReferenceProbe::Key(run, kStep) != key;
  };
  EXPECT_TRUE(differs([](TaskRun& run) { run.spec.seed += 1; }));
  EXPECT_TRUE(differs([](TaskRun& run) { run.spec.config.accumulation_steps = 1; }));
  EXPECT_TRUE(differs([](TaskRun& run) { run.spec.model.exact().dropout = true; }));
  EXPECT_TRUE(differs([](TaskRun& run) { run.start = std::make_shared<RealStart>(); }));
}

}  // namespace
}  // namespace plumbline::conformance
