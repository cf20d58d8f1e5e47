// SPDX-License-Identifier: Apache-2.0
#include "cli/option_values.h"

#include <gtest/gtest.h>

#include <limits>

#include "conformance/contract/error.h"

namespace plumbline::cli {
namespace {

std::string RefusalOf(const auto& range, const std::string& value) {
  try {
    range.Parse("--x", value);
  } catch (const contract::Error& error) {
    EXPECT_EQ(error.code(), contract::ErrorCode::kInvalidArgument);
    return error.what();
  }
  return "";
}

TEST(IntegerRange, TakesItsEndsAndNothingBeyond) {
  const IntegerRange range{1, 256};
  EXPECT_EQ(range.Parse("--x", "1"), 1u);
  EXPECT_EQ(range.Parse("--x", "256"), 256u);
  for (const char* value : {"", "0", "257", "-1", "+1", " 1", "1 ", "1.0", "two", "0x1", "18446744073709551617"}) {
    EXPECT_EQ(RefusalOf(range, value), "--x is \"" + std::string(value) + "\"; allowed: N from 1 to 256");
  }
  constexpr uint64_t kMax = std::numeric_limits<uint64_t>::max();
  EXPECT_EQ((IntegerRange{0, kMax}.Parse("--x", "18446744073709551615")), kMax);
  EXPECT_NE(RefusalOf(IntegerRange{0, kMax}, "18446744073709551616"), "");
}

TEST(SecondsRange, TakesItsEndsAndNothingBeyond) {
  const SecondsRange range{0.1, 86400};
  EXPECT_EQ(range.Parse("--x", "0.1"), 0.1);
  EXPECT_EQ(range.Parse("--x", "86400"), 86400);
  EXPECT_EQ(range.Parse("--x", "1e2"), 100);
  for (const char* value : {"", "0", "0.0999", "86400.1", "-1", "nan", "inf", "1s", "1,5", "1e999"}) {
    EXPECT_EQ(RefusalOf(range, value), "--x is \"" + std::string(value) + "\"; allowed: SECONDS from 0.1 to 86400");
  }
}

}  // namespace
}  // namespace plumbline::cli
