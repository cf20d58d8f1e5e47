// SPDX-License-Identifier: Apache-2.0
// Each schedule with every key away from its default: what is read, that it is written as it was read, and what each
// type refuses. Defaults are config_document_test.cc's.
#include "conformance/contract/schedule_config.h"

#include <gtest/gtest.h>

#include <string>

#include "conformance/contract/error.h"
#include "conformance/contract/testing/error_message.h"

namespace plumbline::contract {
namespace {

using Kind = Schedule::Kind;
using testing::ErrorMessage;

Schedule Read(const std::string& type, const std::string& params) {
  const std::string json = R"({"type": ")" + type + R"(", "params": {)" + params + "}}";
  return ParseSchedule(JsonValue::Parse(json, "scheduler"), 0.5);
}

Schedule Again(const Schedule& schedule) {
  return ParseSchedule(JsonValue::Parse(ToJson(schedule), "scheduler"), 0.125);
}

TEST(Schedule, ReadsWarmupLr) {
  const Schedule schedule = Read(
      "WarmupLR", R"("warmup_min_lr": 0.25, "warmup_max_lr": 0.75, "warmup_num_steps": 7, "warmup_type": "linear")");
  EXPECT_EQ(schedule, (Schedule{Kind::kWarmup, 0.25, 0.75, 7, true}));
  EXPECT_EQ(Again(schedule), schedule);
}

TEST(Schedule, ReadsWarmupDecayLr) {
  const Schedule schedule = Read(
      "WarmupDecayLR",
      R"("total_num_steps": 9, "warmup_min_lr": 0.25, "warmup_max_lr": 0.75, "warmup_num_steps": 7, "warmup_type": "linear")");
  EXPECT_EQ(schedule, (Schedule{Kind::kWarmupDecay, 0.25, 0.75, 7, true, 9}));
  EXPECT_EQ(Again(schedule), schedule);
  EXPECT_EQ(Read("WarmupDecayLR", R"("total_num_steps": 9)").warmup_max_lr, 1e-3) << "not the optimizer's";
}

TEST(Schedule, ReadsWarmupCosineLr) {
  const Schedule schedule =
      Read("WarmupCosineLR",
           R"("total_num_steps": 9, "warmup_min_ratio": 0.25, "warmup_num_steps": 7, "cos_min_ratio": 0.0625,
              "warmup_type": "linear")");
  EXPECT_EQ(schedule, (Schedule{Kind::kWarmupCosine, 0, 1e-3, 7, true, 9, 0.25, 0.0625}));
  EXPECT_EQ(Again(schedule), schedule);
}

TEST(Schedule, ReadsOneCycle) {
  const Schedule schedule =
      Read("OneCycle",
           R"("cycle_min_lr": 0.25, "cycle_max_lr": 0.75, "decay_lr_rate": 2.5, "cycle_first_step_size": 5,
              "cycle_second_step_size": 6, "cycle_first_stair_count": 3, "cycle_second_stair_count": 4,
              "decay_step_size": 8, "cycle_momentum": false, "cycle_min_mom": 0.125, "cycle_max_mom": 0.375)");
  EXPECT_EQ(schedule.kind, Kind::kOneCycle);
  EXPECT_EQ(schedule.cycle, (Cycle{0.25, 0.75, 2.5, 5, 6, 3, 4, 8, false, 0.125, 0.375}));
  EXPECT_EQ(Again(schedule), schedule);
}

TEST(Schedule, TakesTheSecondHalfOfACycleFromTheFirst) {
  const std::string rates = R"("cycle_min_lr": 0.25, "cycle_max_lr": 0.75, )";
  const Schedule schedule = Read("OneCycle", rates + R"("cycle_first_step_size": 5, "cycle_first_stair_count": 3)");
  EXPECT_EQ(schedule.cycle.second_steps, 5);
  EXPECT_EQ(schedule.cycle.second_stairs, 3);
  EXPECT_EQ(
      Read("OneCycle", rates + R"("cycle_first_stair_count": 3, "cycle_second_stair_count": 0)").cycle.second_stairs,
      0);
}

TEST(Schedule, SaysWhichTypesThereAre) {
  EXPECT_EQ(ErrorMessage(ErrorCode::kInvalidArgument, [] { Read("Cosine", ""); }),
            "scheduler: type is \"Cosine\"; allowed: WarmupLR, WarmupDecayLR, WarmupCosineLR, OneCycle");
}

TEST(Schedule, RefusesKeysOfAnotherType) {
  const std::string message = ErrorMessage(
      ErrorCode::kInvalidArgument, [] { Read("WarmupCosineLR", R"("total_num_steps": 9, "warmup_min_lr": 0.25)"); });
  EXPECT_NE(message.find("warmup_min_lr"), std::string::npos) << message;
}

TEST(Schedule, RefusesAHalfOfACycleWithoutSteps) {
  const std::string rates = R"("cycle_min_lr": 0.25, "cycle_max_lr": 0.75, )";
  for (const char* key : {"cycle_first_step_size", "cycle_second_step_size"}) {
    const std::string message =
        ErrorMessage(ErrorCode::kInvalidArgument, [&] { Read("OneCycle", rates + "\"" + key + "\": 0"); });
    EXPECT_NE(message.find(std::string(key) + " is 0; allowed: an integer from 1"), std::string::npos) << message;
  }
}

TEST(Schedule, CallsADecayOfTheMomentumUnsupported) {
  const std::string message = ErrorMessage(ErrorCode::kUnsupported, [] {
    Read("OneCycle", R"("cycle_min_lr": 0.25, "cycle_max_lr": 0.75, "decay_mom_rate": 0.5)");
  });
  EXPECT_NE(message.find("decay_mom_rate is 0.5, which is known but not built yet; supported: 0"), std::string::npos)
      << message;
}

}  // namespace
}  // namespace plumbline::contract
