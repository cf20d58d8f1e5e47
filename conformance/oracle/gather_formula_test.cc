// SPDX-License-Identifier: Apache-2.0
#include "conformance/oracle/gather_formula.h"

#include <gtest/gtest.h>

#include "conformance/oracle/ledger_check.h"
#include "conformance/oracle/testing/example_run.h"

namespace plumbline::conformance {
namespace {

using contract::CommCount;

// One layer: q, k, v, o of 9 elements, up and down of 21, pos of 15, embed of 33. Uses of a micro-batch: embedding,
// layer, head, head, layer. Groups in order: the layer (78), pos (15), embed (33).
contract::RunConfig Config(int64_t max_live, int64_t threshold = 0, int64_t accumulation = 1) {
  contract::RunConfig config = ExampleCase(2, 3).config;
  config.reduce_bucket_elems = 1000;
  config.max_live_elems = max_live;
  config.persistence_threshold_elems = threshold;
  config.accumulation_steps = accumulation;
  return config;
}

std::vector<int64_t> Gathers(const contract::RunConfig& config) {
  std::vector<int64_t> gathers;
  for (const GatherSet& set : GatherSets(ExampleCase(2).model.exact(), config)) gathers.push_back(set.gathers_per_step);
  return gathers;
}

TEST(GatherSets, GroupByTheUnitsThatReadThem) {
  const auto sets = GatherSets(ExampleCase(2).model.exact(), Config(1'000'000));
  ASSERT_EQ(sets.size(), 3u);
  EXPECT_EQ(sets[0].parameters, (std::vector<size_t>{7, 6, 5, 4, 3, 2}));
  EXPECT_EQ(sets[1].parameters, std::vector<size_t>{1});
  EXPECT_EQ(sets[2].parameters, std::vector<size_t>{0});
}

TEST(GatherSets, AreGatheredOnceAStepWhereEverythingMayStay) {
  EXPECT_EQ(Gathers(Config(1'000'000)), (std::vector<int64_t>{1, 1, 1}));
  EXPECT_EQ(Gathers(Config(1'000'000, 0, 3)), (std::vector<int64_t>{1, 1, 1}));
}

TEST(GatherSets, AreGatheredForEachUseWhereNothingMayStayButWhatIsUsedNext) {
  EXPECT_EQ(Gathers(Config(0)), (std::vector<int64_t>{2, 1, 2}));  // the head's two uses follow each other
  EXPECT_EQ(Gathers(Config(0, 0, 3)), (std::vector<int64_t>{6, 3, 6}));
}

TEST(GatherSets, StayUpToTheLimitAndNotBeyond) {
  // embed over the layer: 78 + 33; the layer over the head: 33 + 78.
  EXPECT_EQ(Gathers(Config(111)), (std::vector<int64_t>{1, 1, 1}));
  EXPECT_EQ(Gathers(Config(110)), (std::vector<int64_t>{2, 1, 2}));
}

TEST(GatherSets, KeepSmallParametersAside) {
  const auto sets = GatherSets(ExampleCase(2).model.exact(), Config(0, 16));
  ASSERT_EQ(sets.size(), 3u);
  EXPECT_EQ(sets[0].parameters, (std::vector<size_t>{7, 6}));
  EXPECT_EQ(sets[1].parameters, std::vector<size_t>{0});
  EXPECT_EQ(sets[2].parameters, (std::vector<size_t>{5, 4, 3, 2, 1}));
  EXPECT_EQ(sets[2].gathers_per_step, 1);
  EXPECT_EQ(GatherSets(ExampleCase(2).model.exact(), Config(0, 1000)).size(), 1u) << "everything is persistent";
}

TEST(ExpectedComm, OfStageThreeIsTheSumByHand) {
  // Padded for two ranks: the layer 6 * 32 = 192, pos 64, embed 64.
  const auto counts = ExpectedComm(ExampleCase(2).model, Config(0, 0, 3));
  EXPECT_EQ(counts.at("all_reduce"), (CommCount{2, 16}));
  EXPECT_EQ(counts.at("reduce_scatter"), (CommCount{9, 3 * 4 * (192 + 64 + 64)}));
  // Six uses of the layer, three of pos; embed: nine uses, of which the head's pairs stay.
  EXPECT_EQ(counts.at("all_gather"), (CommCount{6 + 3 + 6, 4 * (6 * 192 + 3 * 64 + 6 * 64)}));
}

}  // namespace
}  // namespace plumbline::conformance
