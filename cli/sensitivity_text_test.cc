// SPDX-License-Identifier: Apache-2.0
#include "cli/sensitivity_text.h"

#include <gtest/gtest.h>

namespace plumbline::cli {
namespace {

using reports::CaseRecord;
using reports::CheckOutcome;
using reports::CheckRecord;

CheckRecord Gradient(const std::string& share) {
  return {"gradient", CheckOutcome::kPass, 1,
          "8 steps; nearest to its limit: norm of w, " + share + " of it; a factor"};
}

CaseRecord CaseWith(const std::string& layout, const std::string& storage, CheckRecord check) {
  CaseRecord entry;
  entry.id = "gpt2/tied/" + layout;
  entry.axes = {{"problem", "tied"}, {"storage", storage}};
  entry.checks = {std::move(check)};
  return entry;
}

TEST(SensitivityText, NamesTheCaseThatCameNearestToItsLimitOfEachProblemAndStorage) {
  reports::Record record;
  record.cases = {CaseWith("a", "bf16", Gradient("0.324")), CaseWith("b", "fp32", Gradient("0.09")),
                  CaseWith("c", "bf16", Gradient("0.4")), CaseWith("d", "fp32", Gradient("1.2e-05")),
                  CaseWith("e", "bf16", Gradient("0.0999"))};
  EXPECT_EQ(SensitivityText(record),
            "\nCould these checks have failed?\n"
            "  tied             bf16: 8 steps; nearest to its limit: norm of w, 0.4 of it; a factor (case c)\n"
            "  tied             fp32: 8 steps; nearest to its limit: norm of w, 0.09 of it; a factor (case b)\n");
}

TEST(SensitivityText, LeavesOutWhatDidNotPass) {
  reports::Record record;
  CheckRecord failed = Gradient("7.5");
  failed.outcome = CheckOutcome::kFail;
  record.cases = {CaseWith("a", "bf16", failed)};
  EXPECT_EQ(SensitivityText(record), "");
  record.cases.push_back(CaseWith("b", "bf16", Gradient("0.1")));
  EXPECT_NE(SensitivityText(record).find("0.1 of it; a factor (case b)"), std::string::npos);
}

TEST(SensitivityText, SaysOncePerProblemWhatIsNoShareOfALimit) {
  reports::Record record;
  record.cases = {CaseWith("a", "fp32", {"liveness", CheckOutcome::kPass, 1, "gradients live"}),
                  CaseWith("b", "bf16", {"liveness", CheckOutcome::kPass, 1, "gradients live"}),
                  CaseWith("c", "bf16", {"guard", CheckOutcome::kPass, 12, ""})};
  EXPECT_EQ(SensitivityText(record),
            "\nCould these checks have failed?\n"
            "  tied             gradients live\n"
            "  12 changes planted into what was seen of 1 case: each was noticed\n");
}

TEST(ShareOfLimit, ReadsTheNumberBehindTheNameAndNothingElse) {
  EXPECT_EQ(ShareOfLimit("nearest to its limit: slope of layers.0, 0.5 of it; x, 0.9 of it"), 0.5);
  EXPECT_EQ(ShareOfLimit("nearest to its limit: norm of layers.0.attn.qkv.weight (k part), 3.06e-06 of it; a"),
            3.06e-06);
  for (const char* other : {"", "0.5 of it", "nearest to its limit: norm of w", "nearest to its limit: w, x of it",
                            "nearest to its limit: w, 0.5x of it", "nearest to its limit 0.5 of it",
                            "nearest to its limit: w, nothing; 0.5 of it"}) {
    EXPECT_EQ(ShareOfLimit(other), std::nullopt) << other;
  }
}

}  // namespace
}  // namespace plumbline::cli
