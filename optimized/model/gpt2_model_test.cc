// SPDX-License-Identifier: Apache-2.0
// The layers against finite differences of a naive loss in double: loss and every gradient, tied and untied, with and
// without dropout, frozen and unused parameters, both storage types, cuts into micro-batches, weights that move.
#include "optimized/model/gpt2_model.h"

#include <gtest/gtest.h>

#include <numeric>
#include <set>

#include "conformance/contract/error.h"
#include "optimized/model/testing/decoder_world.h"
#include "optimized/model/testing/naive_gpt2.h"

namespace plumbline::optimized {
namespace {

using contract::DType;
using contract::Gpt2Spec;
using testing::Result;
using testing::World;

constexpr testing::Stored kStored{.per_layer = 28, .outside = 8};

Result Naive(const World& world) {
  return Truth(world, naive::NaiveGpt2(world.spec.gpt2(), testing::kSeed), Gpt2Outline(world.spec.gpt2()));
}

Result RunInMicroBatches(const World& world, int64_t samples) {
  const Gpt2Spec& spec = world.spec.gpt2();
  return testing::Runner(world, Gpt2Outline(spec), samples,
                         [&](int64_t of_each, const ParameterMemory& memory, Backend& backend) {
                           return MakeGpt2Model(spec, world.storage, testing::kSeed, of_each, memory, backend);
                         })
      .RunAll();
}

double Compare(const World& world, const Result& expected, const Result& result) {
  return testing::Compare(world, RelativeBound(world.spec.real(), kStored, world.storage), expected, result);
}

std::vector<Gpt2Spec> Specs() {
  std::vector<Gpt2Spec> specs;
  for (const double dropout : {0.0, 0.3}) {
    for (const bool tied : {true, false}) {
      specs.push_back({{.layers = 1, .width = 4, .heads = 1, .positions = 5, .hidden = 3, .vocab = 5, .frozen = {}}});
      specs.push_back({{.layers = 2, .width = 6, .heads = 3, .positions = 7, .hidden = 11, .vocab = 13, .frozen = {}}});
      for (size_t i = specs.size() - 2; i < specs.size(); ++i) {
        specs[i].dropout = dropout;
        specs[i].tied_head = tied;
      }
    }
  }
  specs.push_back({{.layers = 2,
                    .width = 10,
                    .heads = 2,
                    .positions = 4,
                    .hidden = 7,
                    .vocab = 9,
                    .dropout = 0.1,
                    .norm_epsilon = 0.01,
                    .unused = true,
                    .frozen = {"embed.weight", "layers.0.attn.qkv.bias", "layers.1.norm1.weight",
                               "layers.1.mlp.up.weight", "norm.bias"}}});
  specs.push_back({{.layers = 1,
                    .width = 6,
                    .heads = 2,
                    .positions = 3,
                    .hidden = 5,
                    .vocab = 7,
                    .unused = true,
                    .frozen = {"pos.weight", "head.weight", "layers.0.attn.out.weight", "layers.0.norm2.bias"}},
                   /*tied_head=*/false});
  return specs;
}

class Gpt2ModelTest : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Specs, Gpt2ModelTest, ::testing::Range(0, 10));

TEST_P(Gpt2ModelTest, LossAndGradientsAreThoseOfTheNaiveModelForEveryCutAndType) {
  for (const DType storage : {DType::kF32, DType::kBF16, DType::kF16}) {
    const World world(Specs()[GetParam()], storage);
    const Result expected = Naive(world);
    for (const int64_t samples : {1, 2, 4}) {
      const double worst = Compare(world, expected, RunInMicroBatches(world, samples));
      RecordProperty("share_of_bound_" + std::string(contract::Name(storage)) + "_" + std::to_string(samples),
                     std::to_string(worst));
    }
  }
}

TEST_P(Gpt2ModelTest, ASecondRunGivesTheSameBits) {
  for (const DType storage : {DType::kF32, DType::kBF16, DType::kF16}) {
    const World world(Specs()[GetParam()], storage);
    EXPECT_EQ(RunInMicroBatches(world, 2), RunInMicroBatches(world, 2));
  }
}

TEST(Gpt2Model, AnUnusedParameterHasAZeroGradientAndFrozenOnesAreNotReported) {
  const World world(Specs()[8], DType::kF32);
  const Result result = RunInMicroBatches(world, 2);
  EXPECT_EQ(world.parameters.back().name, "unused.weight");
  EXPECT_EQ(result.gradients.back(), std::vector<double>(15, 0.0));
  EXPECT_EQ(result.ready_order.front(), world.parameters.back().tensor_id);
  const std::set<int64_t> reported(result.ready_order.begin(), result.ready_order.end());
  EXPECT_EQ(reported.size(), world.parameters.size() - world.spec.real().frozen.size());
  for (const auto& p : world.parameters) EXPECT_EQ(reported.count(p.tensor_id), p.frozen ? 0u : 1u) << p.name;
}

TEST(Gpt2Model, TheOutlineReadsATiedEmbeddingInTwoUnitsAndAnUnusedParameterInNoUnitThatIsUsed) {
  const ModelOutline tied = Gpt2Outline(
      {{.layers = 1, .width = 4, .heads = 1, .positions = 5, .hidden = 3, .vocab = 5, .unused = true, .frozen = {}}});
  std::vector<int64_t> layer(12);
  std::iota(layer.begin(), layer.end(), 2);
  EXPECT_EQ(tied.units, (std::vector<std::vector<int64_t>>{{0, 1}, layer, {14, 15, 0}, {16}}));
  EXPECT_EQ(tied.forward, (std::vector<int64_t>{0, 1, 2}));
  EXPECT_EQ(tied.backward, (std::vector<int64_t>{2, 1}));
  const ModelOutline untied =
      Gpt2Outline({{.layers = 1, .width = 4, .heads = 1, .positions = 5, .hidden = 3, .vocab = 5, .frozen = {}},
                   /*tied_head=*/false});
  EXPECT_EQ(untied.units, (std::vector<std::vector<int64_t>>{{0, 1}, layer, {14, 15, 16}}));
}

TEST(Gpt2Model, RefusesOtherStorageTypes) {
  const auto backend = MakeCpuBackend();
  EXPECT_THROW(MakeGpt2Model(Specs()[0], DType::kF64, 1, 1, {}, *backend), contract::Error);
}

}  // namespace
}  // namespace plumbline::optimized
