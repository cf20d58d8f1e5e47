// SPDX-License-Identifier: Apache-2.0
#include "conformance/contract/group_pattern.h"

#include <fnmatch.h>
#include <gtest/gtest.h>

#include <string_view>

namespace plumbline::contract {
namespace {

TEST(GroupPattern, MayHaveStarsQuestionMarksAndClosedSets) {
  for (const char* pattern : {"*", "?", "embed.weight", "layers.*.norm?.bias", "[!u]*", "layers.[0-2].*", "[ab]",
                              "*.[a-cxY-Z_]*", "layers.[13]*", "[.]"}) {
    EXPECT_TRUE(IsGroupPattern(pattern)) << pattern;
  }
}

TEST(GroupPattern, IsNoneWhereASetIsBrokenOrReadInTwoWays) {
  for (const char* pattern :
       {"",      "[",     "layers.[0.*", "[]",   "[!]",  "[]a]", "[!]a]", "[^u]*",    "[[:alpha:]]*", "[[]",
        "[z-a]", "[a-[]", "[a",          "[a-",  "[a-b", "]",    "a]",    "\\*",      "\\",           "[\\]]",
        "{a,b}", "a b",   "layers/*",    "+(a)", "-",    "[-a]", "[a-]",  "\xc3\xa4*"}) {
    EXPECT_FALSE(IsGroupPattern(pattern)) << pattern;
  }
  EXPECT_FALSE(IsGroupPattern(std::string_view("a\0b", 3)));
}

// What is let through means what it looks like.
TEST(GroupPattern, IsReadByFnmatchAsASet) {
  EXPECT_EQ(fnmatch("layers.[0-2].*", "layers.1.norm", 0), 0);
  EXPECT_NE(fnmatch("layers.[0-2].*", "layers.3.norm", 0), 0);
  EXPECT_NE(fnmatch("[!u]*", "unused.weight", 0), 0);
}

}  // namespace
}  // namespace plumbline::contract
