// SPDX-License-Identifier: Apache-2.0
#include "conformance/oracle/gather_formula.h"

#include <gtest/gtest.h>

#include "conformance/oracle/ledger_check.h"
#include "conformance/oracle/testing/example_gpt2.h"
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
  for (const GatherSet& group : PlanGathers(ExampleCase(2).model, config).groups) {
    gathers.push_back(group.gathers_per_step);
  }
  return gathers;
}

using Indices = std::vector<size_t>;

TEST(PlanGathers, GroupsByTheUnitsThatRead) {
  const GatherPlan plan = PlanGathers(ExampleCase(2).model, Config(1'000'000));
  ASSERT_EQ(plan.groups.size(), 3u);
  EXPECT_EQ(plan.groups[0].parameters, (Indices{7, 6, 5, 4, 3, 2}));
  EXPECT_EQ(plan.groups[1].parameters, Indices{1});
  EXPECT_EQ(plan.groups[2].parameters, Indices{0});
  EXPECT_TRUE(plan.resident.empty());
}

TEST(PlanGathers, GathersOnceAStepWhereEverythingMayStay) {
  EXPECT_EQ(Gathers(Config(1'000'000)), (std::vector<int64_t>{1, 1, 1}));
  EXPECT_EQ(Gathers(Config(1'000'000, 0, 3)), (std::vector<int64_t>{1, 1, 1}));
}

TEST(PlanGathers, GathersForEachUseWhereNothingMayStayButWhatIsUsedNext) {
  EXPECT_EQ(Gathers(Config(0)), (std::vector<int64_t>{2, 1, 2}));  // the head's two uses follow each other
  EXPECT_EQ(Gathers(Config(0, 0, 3)), (std::vector<int64_t>{6, 3, 6}));
}

TEST(PlanGathers, LetsGroupsStayUpToTheLimitAndNotBeyond) {
  // embed over the layer: 78 + 33; the layer over the head: 33 + 78.
  EXPECT_EQ(Gathers(Config(111)), (std::vector<int64_t>{1, 1, 1}));
  EXPECT_EQ(Gathers(Config(110)), (std::vector<int64_t>{2, 1, 2}));
}

TEST(PlanGathers, KeepsSmallParametersAside) {
  const GatherPlan plan = PlanGathers(ExampleCase(2).model, Config(0, 16));
  ASSERT_EQ(plan.groups.size(), 2u);
  EXPECT_EQ(plan.groups[0].parameters, (Indices{7, 6}));
  EXPECT_EQ(plan.groups[1].parameters, Indices{0});
  ASSERT_EQ(plan.resident.size(), 1u);
  EXPECT_EQ(plan.resident[0].parameters, (Indices{5, 4, 3, 2, 1}));
  EXPECT_EQ(plan.resident[0].stage, 3);
  EXPECT_EQ(plan.resident[0].gathers_per_step, 1);
  const GatherPlan all = PlanGathers(ExampleCase(2).model, Config(0, 1000));
  EXPECT_TRUE(all.groups.empty());
  EXPECT_EQ(all.resident.at(0).parameters.size(), 8u);
}

TEST(PlanGathers, ShardsAParameterAsLargeAsTheThreshold) {
  EXPECT_TRUE(PlanGathers(ExampleCase(2).model, Config(0, 9)).resident.empty());
  EXPECT_EQ(PlanGathers(ExampleCase(2).model, Config(0, 10)).resident.at(0).parameters, (Indices{5, 4, 3, 2}));
}

TEST(PlanGathers, HoldsDuringAUseWhatItReadsAndWhatStays) {
  contract::RunConfig config = Config(0);
  config.prefetch_bucket_elems = 0;
  using Live = std::vector<Indices>;
  EXPECT_EQ(PlanGathers(ExampleCase(2).model, config).live, (Live{{1, 2}, {0}, {2}, {2}, {0}}));
  config.max_live_elems = 111;
  EXPECT_EQ(PlanGathers(ExampleCase(2).model, config).live, (Live{{1, 2}, {0, 2}, {0, 2}, {0, 2}, {0}}));
  config.accumulation_steps = 2;  // pos may stay over head and layer only if 126 elements may be live
  EXPECT_EQ(PlanGathers(ExampleCase(2).model, config).live,
            (Live{{1, 2}, {0, 2}, {0, 2}, {0, 2}, {0, 2}, {1, 2}, {0, 2}, {0, 2}, {0, 2}, {0}}));
}

TEST(PlanGathers, HoldsWhatComesEarlyFromTheUseBeforeWhichItIsPosted) {
  contract::RunConfig config = Config(126);
  using Live = std::vector<Indices>;
  config.prefetch_bucket_elems = 78;
  EXPECT_EQ(PlanGathers(ExampleCase(2).model, config).live, (Live{{0, 1, 2}, {0, 2}, {0, 2}, {0, 2}, {0}}));
  config.prefetch_bucket_elems = 77;
  EXPECT_EQ(PlanGathers(ExampleCase(2).model, config).live, (Live{{1, 2}, {0, 2}, {0, 2}, {0, 2}, {0}}));
}

// Persistent but for the two matrices of each MLP: groups are layer 1, layer 0 (42 each) and embed (33). Nothing stays
// but the head; a group of 42 comes early only after embed, and embed waits where it does not fit.
TEST(PlanGathers, LetsNothingOvertakeWhatDoesNotFit) {
  contract::ModelSpec model = ExampleCase(2).model;
  model.exact().layers = 2;
  contract::RunConfig config = Config(84, 16);
  config.prefetch_bucket_elems = 1'000'000;
  // Waits by length: embed over layers 0 and 1 (uses 1, 2: 42 + 33), then layer 1 over the head (33 + 42); layer 0 over
  // uses 2 ... 5 would make 117 at use 2. Layer 0 comes early to use 0 (33 + 42); layer 1 does not fit there, nor at
  // use
  // 1. The second residence of layer 0, from use 6, fits at use 5 only: 42 + 42.
  using Live = std::vector<Indices>;
  EXPECT_EQ(PlanGathers(model, config).live, (Live{{1, 2}, {1, 2}, {0, 2}, {0, 2}, {0, 2}, {0, 1}, {1}}));
  config.max_live_elems = 83;
  EXPECT_EQ(PlanGathers(model, config).live, (Live{{1, 2}, {1, 2}, {0, 2}, {0, 2}, {0, 2}, {0}, {1}}));
  config.prefetch_bucket_elems = 41;
  EXPECT_EQ(PlanGathers(model, config).live, (Live{{2}, {1, 2}, {0, 2}, {0, 2}, {0, 2}, {0}, {1}}));
}

TEST(ExpectedComm, OfStageThreeIsTheSumByHand) {
  // Padded for two ranks: the layer 6 * 32 = 192, pos 64, embed 64.
  const auto counts = ExpectedComm(ExampleCase(2).model, Config(0, 0, 3));
  EXPECT_EQ(counts.at("all_reduce"), (CommCount{2, 16}));
  EXPECT_EQ(counts.at("reduce_scatter"), (CommCount{9, 3 * 4 * (192 + 64 + 64)}));
  // Six uses of the layer, three of pos; embed: nine uses, of which the head's pairs stay.
  EXPECT_EQ(counts.at("all_gather"), (CommCount{6 + 3 + 6, 4 * (6 * 192 + 3 * 64 + 6 * 64)}));
}

// Groups of the tied model: norm (8 elements), layer (163), pos (20), embed (44).
TEST(PlanGathers, OfGpt2GroupsTheLastNormApartFromATiedHead) {
  const contract::Case spec = ExampleGpt2(2, 3);
  const GatherPlan plan = PlanGathers(spec.model, spec.config);
  ASSERT_EQ(plan.groups.size(), 4u);
  EXPECT_EQ(plan.groups[0].parameters, (Indices{15, 14}));
  EXPECT_EQ(plan.groups[1].parameters, (Indices{13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2}));
  EXPECT_EQ(plan.groups[2].parameters, Indices{1});
  EXPECT_EQ(plan.groups[3].parameters, Indices{0});
  EXPECT_EQ(plan.live, (std::vector<Indices>{{2, 3}, {1}, {0, 3}, {0, 3}, {1}}));
}

TEST(PlanGathers, OfGpt2NeverGathersTheUnusedParameter) {
  contract::Case spec = ExampleGpt2(2, 3);
  spec.model.gpt2().tied_head = false;
  spec.model.gpt2().unused = true;
  spec.config.max_live_elems = spec.config.prefetch_bucket_elems = 1'000'000;
  const GatherPlan plan = PlanGathers(spec.model, spec.config);
  ASSERT_EQ(plan.groups.size(), 4u);
  EXPECT_EQ(plan.groups[0].parameters, Indices{17});
  EXPECT_EQ(plan.groups[0].gathers_per_step, 0);
  EXPECT_EQ(plan.groups[1].parameters, (Indices{16, 15, 14}));
  EXPECT_EQ(plan.groups[3].parameters, (Indices{1, 0}));
  EXPECT_EQ(plan.live, (std::vector<Indices>{{1, 2, 3}, {1, 2}, {1, 2}, {1, 2}, {2}}));
}

TEST(PlanGathers, LeavesFrozenParametersOutOfGroupsSizesAndThePersistentSet) {
  contract::Case spec = ExampleGpt2(2, 3);
  spec.model.gpt2().frozen = {"pos.weight", "layers.0.attn.qkv.weight", "norm.bias"};
  spec.config.max_live_elems = 44 + 163 - 48;  // embed over a layer without its largest matrix
  const GatherPlan plan = PlanGathers(spec.model, spec.config);
  ASSERT_EQ(plan.groups.size(), 3u);
  EXPECT_EQ(plan.groups[0].parameters, Indices{14});
  EXPECT_EQ(plan.groups[1].parameters, (Indices{13, 12, 11, 10, 9, 8, 7, 6, 5, 3, 2}));
  EXPECT_EQ(plan.groups[2].parameters, Indices{0});
  EXPECT_EQ(plan.groups[2].gathers_per_step, 1);
  spec.config.persistence_threshold_elems = 5;
  EXPECT_EQ(PlanGathers(spec.model, spec.config).resident.at(0).parameters, (Indices{14, 13, 9, 8, 7, 3, 2}));
}

TEST(PlanGathers, UnderStagesZeroToTwoHasAllThatIsTrainedInOneSet) {
  for (int64_t stage : {0, 1, 2}) {
    contract::Case spec = ExampleGpt2(2, stage);
    spec.model.gpt2().unused = true;
    spec.model.gpt2().frozen = {"embed.weight", "layers.0.attn.qkv.weight", "norm.bias"};
    spec.config.persistence_threshold_elems = 20;
    const GatherPlan plan = PlanGathers(spec.model, spec.config);
    EXPECT_TRUE(plan.groups.empty());
    ASSERT_EQ(plan.resident.size(), 1u);
    EXPECT_EQ(plan.resident[0].parameters, (Indices{16, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 3, 2, 1}));
    EXPECT_EQ(plan.resident[0].stage, stage);
    EXPECT_EQ(plan.resident[0].gathers_per_step, stage == 0 ? 0 : 1);
  }
}

// Parameters 2 to 13 of layer 0, 14 to 25 of layer 1, and so on; the four norms and biases of a layer have 4 to 12
// elements.
TEST(PlanGathers, SortsParametersByTheStagesOfTheirLayers) {
  contract::Case spec = ExampleGpt2(2, 3);
  spec.model.gpt2().layers = 4;
  spec.config.layer_stages = {2, 0, 3, 1};
  spec.config.persistence_threshold_elems = 5;
  const GatherPlan plan = PlanGathers(spec.model, spec.config);
  const auto layer = [](size_t index) {
    Indices parameters;
    for (size_t i = 12; i-- > 0;) parameters.push_back(2 + 12 * index + i);
    return parameters;
  };
  ASSERT_EQ(plan.groups.size(), 3u) << "layer 2, pos and embed";
  for (size_t parameter : plan.groups[0].parameters) EXPECT_EQ((parameter - 2) / 12, 2u) << parameter;
  ASSERT_EQ(plan.resident.size(), 4u);
  EXPECT_EQ(plan.resident[0].stage, 3);
  EXPECT_EQ(plan.resident[0].parameters.size() + plan.groups[0].parameters.size(), 2u + 12u) << "norm, layer 2";
  for (size_t set : {1, 2, 3}) EXPECT_EQ(plan.resident[set].stage, 3 - static_cast<int64_t>(set));
  EXPECT_EQ(plan.resident[1].parameters, layer(0));
  EXPECT_EQ(plan.resident[2].parameters, layer(3));
  EXPECT_EQ(plan.resident[3].parameters, layer(1));
  EXPECT_EQ(plan.resident[3].gathers_per_step, 0);
}

// Three layers of 163 elements, and room for two. Uses of the first micro-batch: embedding, layers 0, 1, 2 (use 3),
// head, head, layers 2 (use 6), 1, 0 (use 8). Shorter waits come first: layer 0 from use 8 to 10 and layer 2 from 3 to
// 6, then layer 1 from 7 to 11 and from 2 to 7, which leaves no room for the long waits of layers 0 and 2.
TEST(PlanGathers, PrefersShortWaitsToEarlyOnes) {
  contract::Case spec = ExampleGpt2(2, 3);
  spec.model.gpt2().layers = 3;
  spec.model.gpt2().frozen = {"embed.weight", "pos.weight", "norm.weight", "norm.bias"};
  spec.config.accumulation_steps = 2;
  spec.config.max_live_elems = 2 * 163;
  std::vector<int64_t> gathers;
  for (const GatherSet& group : PlanGathers(spec.model, spec.config).groups) gathers.push_back(group.gathers_per_step);
  EXPECT_EQ(gathers, (std::vector<int64_t>{2, 1, 3}));  // layers 2, 1, 0
}

// norm 8, layer 163, pos 20, embed 200. During the layer's backward (use 4) pos fits and comes early for the next
// micro-batch, embed does not; were embed asked first, neither would come.
TEST(PlanGathers, GathersForOneUseInTheOrderOfGroups) {
  contract::Case spec = ExampleGpt2(2, 3);
  spec.model.gpt2().vocab = 50;
  spec.config.accumulation_steps = 2;
  spec.config.max_live_elems = 200;
  spec.config.prefetch_bucket_elems = 1'000'000;
  EXPECT_EQ(PlanGathers(spec.model, spec.config).live,
            (std::vector<Indices>{{2, 3}, {0, 1}, {0, 3}, {0, 3}, {1, 2}, {2, 3}, {0, 1}, {0, 3}, {0, 3}, {1}}));
}

}  // namespace
}  // namespace plumbline::conformance
