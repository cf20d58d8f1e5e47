// SPDX-License-Identifier: Apache-2.0
// What is said of a number of a real family's trace, of an engine that is made up: which rank, and of which other group
// or step the number is.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "conformance/contract/testing/temporary_folder.h"
#include "conformance/oracle/schedule_formula.h"
#include "conformance/runner/diagnosis.h"
#include "conformance/runner/testing/expect_best.h"
#include "conformance/runner/testing/made_up_engine.h"

namespace plumbline::conformance {
namespace {

using reports::DivergenceRecord;

const contract::TokenSource kSource{std::vector<int32_t>(1000, 1), true};

class DiagnosedNumberTest : public ::testing::Test {
 protected:
  DiagnosedNumberTest() {
    spec_ = ExampleRealCase();
    spec_.id = "gpt2/x";
    spec_.steps = 3;
    spec_.config.groups = {{"*.bias", 5e-3, std::nullopt}};
    spec_.config.gradient_clipping = 0.25;
    spec_.config.schedule.kind = contract::Schedule::Kind::kWarmup;
    spec_.config.schedule.linear = true;
    spec_.config.schedule.warmup_num_steps = 10;
  }

  DivergenceRecord Diagnosed(const std::string& quantity, const std::function<void(StepSight&)>& mistake) const {
    const contract::testing::TemporaryFolder folder;
    const MadeUpEngine::MakeStep make = [](const TaskRun&, int64_t) { return ExampleTruth(3).front(); };
    ProbeCache probes;
    Diagnosis diagnosis({{2, quantity, "", 0, ""}, TaskRun{spec_}}, spec_.model, true, kSource, probes);
    MadeUpEngine(contract::DType::kF64, make).RunTaskIn(folder.path(), probes.begin()->second->task());
    MadeUpEngine(contract::DType::kF32, make, [&](const TaskRun&, StepSight& sight) {
      mistake(sight);
    }).RunTaskIn(folder.path(), *diagnosis.candidate());
    return diagnosis.Finish();
  }

  contract::Case spec_;
};

TEST_F(DiagnosedNumberTest, ARateIsThatOfAnotherGroupOrStep) {
  const auto rates = ScheduledLr(spec_.config, 2);
  ASSERT_EQ(rates.size(), 2u);
  ASSERT_NE(rates[0].value, rates[1].value);
  const DivergenceRecord group = Diagnosed("lr", [](StepSight& sight) { sight.real.lr[1] = sight.real.lr[0]; });
  EXPECT_EQ(group.ranks, std::vector<int64_t>{0});
  EXPECT_EQ(group.quantity, "lr");
  ExpectBest(group, "other_group_rate", "of group 0");
  const double early = ScheduledLr(spec_.config, 3)[0].value;
  ASSERT_NE(rates[0].value, early);
  ExpectBest(Diagnosed("lr", [&](StepSight& sight) { sight.real.lr[0] = early; }), "other_step_rate", "of step 3");
}

TEST_F(DiagnosedNumberTest, ANormIsThatAfterClipping) {
  const DivergenceRecord record = Diagnosed("gradient_norm", [&](StepSight& sight) {
    ASSERT_GT(sight.real.gradient_norm, 2 * spec_.config.gradient_clipping) << "it clips";
    sight.real.gradient_norm = spec_.config.gradient_clipping;
  });
  EXPECT_EQ(record.ranks, std::vector<int64_t>{0});
  ExpectBest(record, "clipping_norm", "after clipping");
}

TEST_F(DiagnosedNumberTest, WhatIsNoNumberIsNotWithinRounding) {
  const auto no_number = std::nan("");
  for (const DivergenceRecord& record :
       {Diagnosed("loss", [&](StepSight& sight) { sight.loss = no_number; }),
        Diagnosed("gradient_norm", [&](StepSight& sight) { sight.real.gradient_norm = no_number; })}) {
    EXPECT_EQ(record.ranks, std::vector<int64_t>{0});
    EXPECT_EQ(record.undiagnosed, "");
  }
}

TEST_F(DiagnosedNumberTest, RoundingIsNoMistake) {
  for (const char* quantity : {"lr", "gradient_norm", "loss"}) {
    const DivergenceRecord record = Diagnosed(quantity, [](StepSight& sight) {
      for (double& rate : sight.real.lr) rate = static_cast<float>(rate);
      sight.real.gradient_norm = static_cast<float>(sight.real.gradient_norm);
      sight.loss = static_cast<float>(sight.loss);
    });
    EXPECT_EQ(record.undiagnosed, "it did not diverge when it was run again with dumps") << quantity;
  }
}

}  // namespace
}  // namespace plumbline::conformance
