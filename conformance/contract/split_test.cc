// SPDX-License-Identifier: Apache-2.0
#include "conformance/contract/split.h"

#include <gtest/gtest.h>

namespace plumbline::contract {
namespace {

using Parts = std::vector<std::string>;

TEST(Split, HasOnePartMoreThanSeparatorsAndKeepsEmptyOnes) {
  EXPECT_EQ(Split("", ','), Parts{""});
  EXPECT_EQ(Split("a b", ','), Parts{"a b"});
  EXPECT_EQ(Split("a,b", ','), (Parts{"a", "b"}));
  EXPECT_EQ(Split(",a,,b,", ','), (Parts{"", "a", "", "b", ""}));
  EXPECT_EQ(Split("one\ntwo\n", '\n'), (Parts{"one", "two", ""}));
}

}  // namespace
}  // namespace plumbline::contract
