// SPDX-License-Identifier: Apache-2.0
#include "conformance/oracle/bucket_formula.h"

#include <gtest/gtest.h>

#include "conformance/oracle/gather_formula.h"
#include "conformance/oracle/testing/example_gpt2.h"
#include "conformance/oracle/testing/example_run.h"

namespace plumbline::conformance {
namespace {

using Lengths = std::vector<int64_t>;

// Elements of the example in reverse: down 21, up 21, o, v, k, q 9 each, pos 15, embed 33; alone each is padded to 32,
// embed to 64.
Lengths OfWholeModel(const contract::Case& spec) {
  return PaddedBucketElems(spec.model, spec.config, PlanGathers(spec.model, spec.config).resident.at(0).parameters);
}

Lengths OfWholeModel(int64_t bucket_elems, int64_t world) {
  contract::Case spec = ExampleCase(world);
  spec.config.reduce_bucket_elems = bucket_elems;
  return OfWholeModel(spec);
}

TEST(PaddedBucketElems, AlignsEachParameterAndPadsTheBucketToTheWorld) {
  EXPECT_EQ(OfWholeModel(1000, 1), Lengths{288});
  EXPECT_EQ(OfWholeModel(1000, 2), Lengths{320});
  EXPECT_EQ(OfWholeModel(1000, 3), Lengths{288});
  EXPECT_EQ(OfWholeModel(1000, 4), Lengths{384});
  EXPECT_EQ(OfWholeModel(1000, 5), Lengths{320});
}

TEST(PaddedBucketElems, GivesARankAlignedSpaceWhereTheWorldIsLargerThanTheElements) {
  EXPECT_EQ(OfWholeModel(1000, 97), Lengths{32 * 97});
  EXPECT_EQ(OfWholeModel(1, 97), Lengths(8, 32 * 97));
}

TEST(PaddedBucketElems, CountsElementsWithoutPaddingAgainstTheBucketSize) {
  // All elements: 21 + 21 + 4 * 9 + 15 + 33 = 126.
  EXPECT_EQ(OfWholeModel(126, 1), Lengths{288});
  EXPECT_EQ(OfWholeModel(125, 1), (Lengths{224, 64}));
  EXPECT_EQ(OfWholeModel(42, 1), (Lengths{64, 128, 32, 64}));  // {down, up} {o, v, k, q} {pos} {embed}
  EXPECT_EQ(OfWholeModel(41, 1), (Lengths{32, 96, 96, 64}));   // {down} {up, o, v} {k, q, pos} {embed}
}

TEST(PaddedBucketElems, OfNoParametersAreNone) {
  const contract::Case spec = ExampleCase(3);
  EXPECT_TRUE(PaddedBucketElems(spec.model, spec.config, {}).empty());
}

TEST(PaddedBucketElems, HasNoSpaceForFrozenParameters) {
  contract::Case spec = ExampleGpt2(3, 1);
  const auto padded = [&] { return OfWholeModel(spec); };
  EXPECT_EQ(padded(), Lengths{576});
  spec.model.gpt2().frozen = {"layers.0.attn.qkv.weight", "norm.bias"};
  EXPECT_EQ(padded(), Lengths{480});
  spec.config.data_degree = 7;
  EXPECT_EQ(padded(), Lengths{672});
}

}  // namespace
}  // namespace plumbline::conformance
