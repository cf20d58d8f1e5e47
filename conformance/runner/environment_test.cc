// SPDX-License-Identifier: Apache-2.0
#include "conformance/runner/environment.h"

#include <gtest/gtest.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <regex>
#include <set>

namespace plumbline::conformance {
namespace {

TEST(EnvironmentFingerprint, SaysWhatTheSystemSaysOfItself) {
  const std::map<std::string, std::string> environment = EnvironmentFingerprint();
  std::set<std::string> keys;
  for (const auto& [key, value] : environment) keys.insert(key);
  EXPECT_EQ(keys, (std::set<std::string>{"build_mode", "compiler", "cores", "cpu_model", "kernel", "os"}));
  utsname system{};
  ASSERT_EQ(uname(&system), 0);
  EXPECT_EQ(environment.at("kernel"), system.release);
  EXPECT_EQ(environment.at("cores"), std::to_string(sysconf(_SC_NPROCESSORS_ONLN)));
  EXPECT_TRUE(std::regex_match(environment.at("os"), std::regex("[^\"]+"))) << environment.at("os");
}

TEST(UtcNow, IsWrittenAsInIso8601) {
  EXPECT_TRUE(std::regex_match(UtcNow(), std::regex("20\\d\\d-[01]\\d-[0-3]\\dT[0-2]\\d:[0-5]\\d:[0-6]\\dZ")))
      << UtcNow();
}

}  // namespace
}  // namespace plumbline::conformance
