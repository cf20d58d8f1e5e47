// SPDX-License-Identifier: Apache-2.0
// What a cut keeps, what it puts in place of padding, and what it refuses.
#include "optimized/model/length_cut.h"

#include <gtest/gtest.h>

#include "conformance/contract/error.h"

namespace plumbline::optimized {
namespace {

using Values = std::vector<int32_t>;

Values ValuesOf(std::span<const int32_t> span) { return {span.begin(), span.end()}; }

// Three samples of four positions.
struct Rows {
  Values tokens = {10, 11, 12, 13, 20, 21, 22, 23, 30, 31, 32, 33};
  Values labels = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  Values loss_weights = {1, 0, 0, 0, 1, 1, 1, 0, 1, 0, 0, 0};

  MicroBatch Of(std::span<const int32_t> lengths) const { return {7, 24, tokens, labels, loss_weights, lengths}; }
};

TEST(LengthCut, IsTheMicroBatchItselfWithoutLengths) {
  const Rows rows;
  LengthCut cut(3, 4);
  const MicroBatch whole = cut.Cut(rows.Of({}));
  EXPECT_EQ(cut.longest(), 4);
  EXPECT_EQ(whole.tokens.data(), rows.tokens.data());
  EXPECT_EQ(whole.labels.data(), rows.labels.data());
  EXPECT_EQ(whole.loss_weights.data(), rows.loss_weights.data());
}

TEST(LengthCut, KeepsTheLongestSampleAndPadsOthersWithTheirFirstToken) {
  const Rows rows;
  LengthCut cut(3, 4);
  const Values lengths = {1, 3, 2};
  const MicroBatch part = cut.Cut(rows.Of(lengths));
  EXPECT_EQ(cut.longest(), 3);
  EXPECT_EQ(ValuesOf(part.tokens), (Values{10, 10, 10, 20, 21, 22, 30, 31, 30}));
  EXPECT_EQ(ValuesOf(part.labels), (Values{1, 0, 0, 5, 6, 7, 9, 10, 0}));
  EXPECT_EQ(ValuesOf(part.loss_weights), (Values{1, 0, 0, 1, 1, 1, 1, 0, 0}));
  EXPECT_EQ(part.step, 7);
  EXPECT_EQ(part.first_sample, 24);
}

TEST(LengthCut, NothingOfAnEarlierMicroBatchStays) {
  const Rows rows;
  const Values full = {4, 4, 4}, shortest = {1, 1, 1};
  LengthCut used(3, 4), fresh(3, 4);
  used.Cut(rows.Of(full));
  const MicroBatch after = used.Cut(rows.Of(shortest));
  EXPECT_EQ(ValuesOf(after.tokens), (Values{10, 20, 30}));
  EXPECT_EQ(ValuesOf(after.labels), ValuesOf(fresh.Cut(rows.Of(shortest)).labels));
  EXPECT_EQ(ValuesOf(used.Cut(rows.Of(full)).tokens), rows.tokens);
  used.Cut(rows.Of(shortest));
  used.Cut(rows.Of({}));
  EXPECT_EQ(used.longest(), 4);
}

TEST(LengthCut, RefusesLengthsAndSpansThatDoNotFit) {
  const Rows rows;
  LengthCut cut(3, 4);
  for (const Values& bad : {Values{1, 2}, Values{0, 1, 1}, Values{5, 1, 1}}) {
    EXPECT_THROW(cut.Cut(rows.Of(bad)), contract::Error);
  }
  MicroBatch short_labels = rows.Of({});
  short_labels.labels = short_labels.labels.first(11);
  EXPECT_THROW(cut.Cut(short_labels), contract::Error);
}

}  // namespace
}  // namespace plumbline::optimized
