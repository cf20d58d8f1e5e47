// SPDX-License-Identifier: Apache-2.0
#include "conformance/environment/nvml.h"

#include <gtest/gtest.h>

namespace plumbline::conformance {
namespace {

constexpr const char* kFake = "conformance/environment/testing/libfake_nvml.so";
constexpr const char* kBroken = "conformance/environment/testing/libbroken_nvml.so";

TEST(AskGpuDriver, SaysWhyThereIsNone) {
  const GpuDriver absent = AskGpuDriver("libno-such-library.so.1");
  EXPECT_EQ(absent.absent, "libno-such-library.so.1 cannot be loaded");
  EXPECT_TRUE(absent.gpus.empty());
  EXPECT_NE(AskGpuDriver(kBroken).absent.find("does not answer"), std::string::npos);
}

TEST(AskGpuDriver, ReadsVersionsAndGpus) {
  const GpuDriver driver = AskGpuDriver(kFake);
  EXPECT_EQ(driver.absent, "");
  EXPECT_EQ(driver.version, "580.65.06");
  EXPECT_EQ(driver.cuda_version, "13.0");
  ASSERT_EQ(driver.gpus.size(), 2u);
  EXPECT_EQ(driver.gpus[0], (Gpu{.name = "Fake H1",
                                 .memory_bytes = uint64_t{1} << 37,
                                 .compute_capability = "9.0",
                                 .mig = std::nullopt,  // the function does not exist
                                 .persistence = true,
                                 .ecc = false,
                                 .clock_mhz = 345,
                                 .clock_max_mhz = 1980}));
}

TEST(AskGpuDriver, KeepsAGpuThatTellsNothing) { EXPECT_EQ(AskGpuDriver(kFake).gpus.at(1), Gpu{}); }

}  // namespace
}  // namespace plumbline::conformance
