// SPDX-License-Identifier: Apache-2.0
// What is said of a tensor of a real family of which some elements have no value, as after a skipped step. Engines are
// made up.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>

#include "conformance/contract/testing/temporary_folder.h"
#include "conformance/runner/diagnosis.h"
#include "conformance/runner/testing/expect_best.h"
#include "conformance/runner/testing/made_up_engine.h"

namespace plumbline::conformance {
namespace {

using contract::TensorKind;
using reports::DivergenceRecord;

constexpr int64_t kStep = 2;
constexpr int64_t kWidth = 12;
const contract::TokenSource kSource{std::vector<int32_t>(1000, 1), true};

// Of a step from a state in which the third row of embed.weight has no value.
DivergenceRecord Diagnosed(const std::function<void(const RealStart&, StepSight&)>& mistake) {
  contract::Case spec = ExampleRealCase();
  spec.id = "gpt2/x";
  spec.first_step = kStep;
  RealStart start{contract::MakeInitialRealState(spec.model.gpt2(), spec.config, 7), 1};
  std::fill_n(start.state.front().master.begin() + 2 * kWidth, kWidth, NAN);
  const TaskRun run{spec, std::make_shared<const RealStart>(start)};

  const contract::testing::TemporaryFolder folder;
  const MadeUpEngine::MakeStep make = [](const TaskRun&, int64_t) { return ExampleTruth(3).front(); };
  ProbeCache probes;
  Diagnosis diagnosis({{kStep, "master", "embed.weight", 1, ""}, run}, spec.model, true, kSource, probes);
  MadeUpEngine(contract::DType::kF64, make).RunTaskIn(folder.path(), probes.begin()->second->task());
  MadeUpEngine(contract::DType::kF32, make, [&](const TaskRun&, StepSight& sight) {
    mistake(start, sight);
  }).RunTaskIn(folder.path(), *diagnosis.candidate());
  return diagnosis.Finish();
}

TEST(DiagnosedTensor, ElementsWithoutAValueOnBothSidesSayNothing) {
  const DivergenceRecord record = Diagnosed([](const RealStart& start, StepSight& sight) {
    const std::vector<float>& before = start.state.front().master;
    sight.of(TensorKind::kMaster).front().assign(before.begin(), before.end());
  });
  ExpectBest(record, "not_updated", "");
  EXPECT_EQ(record.ranks, std::vector<int64_t>{0});
  EXPECT_EQ(record.region.find("216 of 228 elements"), 0u) << record.region;
}

TEST(DiagnosedTensor, AnElementWithoutAValueOnOneSideIsTheCause) {
  const DivergenceRecord record =
      Diagnosed([](const RealStart&, StepSight& sight) { sight.of(TensorKind::kMaster).front()[0] = std::nan(""); });
  ExpectBest(record, "not_finite", "1 NaN, 0 infinite");
}

}  // namespace
}  // namespace plumbline::conformance
