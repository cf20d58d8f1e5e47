// SPDX-License-Identifier: Apache-2.0
#include "conformance/contract/error.h"

#include <gtest/gtest.h>

#include <string>

namespace plumbline::contract {
namespace {

TEST(Fail, CarriesCodeMessageAndPlace) {
  try {
    Fail(ErrorCode::kTimeout, "all_reduce took longer than 3 s");
    FAIL() << "did not throw";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kTimeout);
    EXPECT_STREQ(error.what(), "all_reduce took longer than 3 s");
    EXPECT_NE(std::string(error.where().file_name()).find("error_test.cc"), std::string::npos);
    EXPECT_EQ(error.where().line(), __LINE__ - 6);
  }
}

TEST(Check, ThrowsOnlyWhereTheInvariantIsBrokenAndNamesFileAndLine) {
  EXPECT_NO_THROW(Check(true, "never shown"));
  try {
    Check(false, "slices cover the tensor");
    FAIL() << "did not throw";
  } catch (const Error& error) {
    const std::string place = "error_test.cc:" + std::to_string(__LINE__ - 3);
    EXPECT_EQ(error.code(), ErrorCode::kInternal);
    EXPECT_NE(std::string(error.what()).find(place + ": broken invariant: slices cover the tensor"), std::string::npos)
        << error.what();
  }
}

TEST(ExitCodeOf, FollowsTheDesignsTable) {
  const struct {
    ErrorCode code;
    int exit;
  } kTable[] = {{ErrorCode::kInvalidArgument, 2},
                {ErrorCode::kUnsupported, 3},
                {ErrorCode::kEnvironment, 4},
                {ErrorCode::kTimeout, 4},
                {ErrorCode::kInternal, 5}};
  for (const auto& [code, exit] : kTable) EXPECT_EQ(static_cast<int>(ExitCodeOf(code)), exit);
}

}  // namespace
}  // namespace plumbline::contract
