// SPDX-License-Identifier: Apache-2.0
#include "conformance/engines/one_line.h"

#include <gtest/gtest.h>

#include <string>

namespace plumbline::conformance {
namespace {

TEST(OneLine, KeepsPrintableText) {
  EXPECT_EQ(OneLine(""), "");
  EXPECT_EQ(OneLine("a b"), "a b");
  EXPECT_EQ(OneLine("Größe \xE2\x82\xAC \xF0\x9F\x98\x80"), "Größe \xE2\x82\xAC \xF0\x9F\x98\x80");
}

TEST(OneLine, MakesOneSpaceOfBlanksAndControls) {
  EXPECT_EQ(OneLine("  a\r\n\tb\x01\x7F\xC2\x85\xE2\x80\xA8 c \n"), "a b c");
  EXPECT_EQ(OneLine(std::string_view("a\0b", 3)), "a b");
  EXPECT_EQ(OneLine(" \n "), "");
}

// "a", override of direction, "cba": a terminal would show "abca" the wrong way round.
TEST(OneLine, LetsNothingTurnOrHideWhatStandsBesideIt) {
  EXPECT_EQ(OneLine("a\xE2\x80\xAE"
                    "cba"),
            "a cba");
  EXPECT_EQ(OneLine("a\xE2\x80\x8B"
                    "b\xE2\x81\xA6"
                    "c\xEF\xBB\xBF"
                    "d"),
            "a b c d");
  EXPECT_EQ(OneLine("\xE2\x80\x93 \xE2\x80\xA6 \xE2\x81\x84"), "\xE2\x80\x93 \xE2\x80\xA6 \xE2\x81\x84");  // dash, dots
}

TEST(OneLine, ReplacesEachByteThatIsNotUtf8) {
  EXPECT_EQ(OneLine("a\xFF"), "a?");
  EXPECT_EQ(OneLine("\xC0\x80"), "??");            // overlong
  EXPECT_EQ(OneLine("\xE0\x80\x80"), "???");       // overlong
  EXPECT_EQ(OneLine("\xED\xA0\x80"), "???");       // surrogate
  EXPECT_EQ(OneLine("\xF4\x90\x80\x80"), "????");  // beyond U+10FFFF
  EXPECT_EQ(OneLine("\xE2\x82"), "??");            // cut off
  EXPECT_EQ(OneLine("\xE2\x82z"), "??z");
}

TEST(OneLine, CutsBetweenCharactersAndNeverExceedsTheLimit) {
  EXPECT_EQ(OneLine("abcdefgh", 8), "abcdefgh");
  EXPECT_EQ(OneLine("abcdefghi", 8), "abcde...");
  EXPECT_EQ(OneLine("ab\xE2\x82\xAC\xE2\x82\xAC\xE2\x82\xAC", 9), "ab\xE2\x82\xAC...");
  for (size_t limit = 0; limit < 12; ++limit) {
    EXPECT_LE(OneLine("ab\xE2\x82\xAC\xE2\x82\xAC\xE2\x82\xAC", limit).size(), limit);
  }
}

TEST(LastLine, SkipsBlankLinesAtTheEnd) {
  EXPECT_EQ(LastLine(""), "");
  EXPECT_EQ(LastLine("\n \n"), "");
  EXPECT_EQ(LastLine("one"), "one");
  EXPECT_EQ(LastLine("one\ntwo\n"), "two");
  EXPECT_EQ(LastLine("one\n two \r\n\n \n"), "two");
}

}  // namespace
}  // namespace plumbline::conformance
