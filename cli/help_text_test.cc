// SPDX-License-Identifier: Apache-2.0
#include "cli/help_text.h"

#include <gtest/gtest.h>

#include <memory>
#include <sstream>

namespace plumbline::cli {
namespace {

TEST(Wrapped, BreaksAtTheLastSpaceThatFits) {
  EXPECT_EQ(Wrapped("", 0, 2, 5), "");
  EXPECT_EQ(Wrapped("ab cd", 0, 2, 5), "ab cd");
  EXPECT_EQ(Wrapped("ab cd", 1, 2, 5), "ab\n  cd");
  EXPECT_EQ(Wrapped("ab cd ef", 0, 2, 5), "ab cd\n  ef");
  EXPECT_EQ(Wrapped("ab cd ef", 0, 0, 5), "ab cd\nef");
}

TEST(Wrapped, LeavesALongWordWhole) {
  EXPECT_EQ(Wrapped("abcdefgh", 0, 2, 5), "abcdefgh");
  EXPECT_EQ(Wrapped("a bcdefgh i", 0, 2, 5), "a\n  bcdefgh\n  i");
}

TEST(HelpText, StaysWithin80ColumnsAndNamesTypes) {
  CLI::App app;
  app.formatter(std::make_shared<HelpText>());
  std::string value;
  std::string words;
  for (int i = 0; i < 40; ++i) words += "word" + std::to_string(i) + " ";
  app.add_option("--short", value, words)->type_name("N");
  app.add_option("--a-name-that-takes-the-whole-column", value, words)->type_name("N from 1 to 256");
  app.add_flag("--flag", words);
  const std::string help = app.help();
  EXPECT_NE(help.find("  --short N                 word0 word1"), std::string::npos) << help;
  EXPECT_NE(help.find("--a-name-that-takes-the-whole-column N from 1 to 256\n" + std::string(28, ' ') + "word0"),
            std::string::npos)
      << help;
  EXPECT_EQ(help.find("TEXT"), std::string::npos) << help;
  std::istringstream lines(help);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80u) << line;
  EXPECT_NE(help.find("word39"), std::string::npos);
}

}  // namespace
}  // namespace plumbline::cli
