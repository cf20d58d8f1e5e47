// SPDX-License-Identifier: Apache-2.0
#include "cli/doctor_report.h"

#include <gtest/gtest.h>

#include "conformance/contract/strict_json.h"

namespace plumbline::cli {
namespace {

using conformance::Finding;
using conformance::Gpu;
using conformance::State;
using contract::JsonValue;

const Finding kOk{"os", State::kOk, "Debian \"12\"", "", false};
const Finding kWeak{"cpu", State::kWeak, "one core", "speed", false};
const Finding kOptional{"nccl", State::kMissing, "none", "GPUs", false};
const Finding kRequired{"libtorch", State::kMissing, "none", "verify", true};

TEST(DoctorText, HasALineForEachFindingAndWhatItDisablesBelow) {
  EXPECT_EQ(DoctorText({kOk, kWeak, kOptional}),
            "ok       os                Debian \"12\"\n"
            "weak     cpu               one core\n"
            "                           disables: speed\n"
            "missing  nccl              none\n"
            "                           disables: GPUs\n"
            "verify can run.\n");
}

TEST(DoctorText, NamesWhatVerifyLacks) {
  EXPECT_TRUE(DoctorText({kOk, kRequired}).ends_with("verify cannot run; missing: libtorch\n"));
}

TEST(DoctorJson, HoldsItemsAsTheyAre) {
  const JsonValue json = JsonValue::Parse(DoctorJson({kOk, kRequired}, {}), "doctor");
  json.AllowOnly({"schema", "can_verify", "items", "gpus"});
  EXPECT_EQ(json.At("schema").Int(), 1);
  EXPECT_FALSE(json.At("can_verify").Bool());
  EXPECT_EQ(json.At("gpus").Size(), 0u);
  ASSERT_EQ(json.At("items").Size(), 2u);
  EXPECT_EQ(json.At("items")[0].At("value").String(), "Debian \"12\"");
  const JsonValue item = json.At("items")[1];
  item.AllowOnly({"id", "state", "required", "value", "disables"});
  EXPECT_EQ(item.At("id").String(), "libtorch");
  EXPECT_EQ(item.At("state").String(), "missing");
  EXPECT_TRUE(item.At("required").Bool());
  EXPECT_EQ(item.At("disables").String(), "verify");
}

TEST(DoctorJson, WritesNullForWhatAGpuDoesNotTell) {
  Gpu told;
  told.name = "H1";
  told.memory_bytes = 5;
  told.mig = false;
  const std::string text = DoctorJson({kOk}, {told, Gpu{}});
  const JsonValue json = JsonValue::Parse(text, "doctor");
  EXPECT_TRUE(json.At("can_verify").Bool());
  ASSERT_EQ(json.At("gpus").Size(), 2u);
  EXPECT_EQ(json.At("gpus")[0].At("memory_bytes").Int(), 5);
  EXPECT_FALSE(json.At("gpus")[0].At("mig").Bool());
  EXPECT_EQ(json.At("gpus")[0].Keys(), json.At("gpus")[1].Keys());
  EXPECT_NE(text.find("{\"name\": null, \"memory_bytes\": null, \"compute_capability\": null, \"mig\": null"),
            std::string::npos);
}

}  // namespace
}  // namespace plumbline::cli
