// SPDX-License-Identifier: Apache-2.0
// The layers against finite differences of a naive loss in double: loss and every gradient, all numbers of key/value
// heads, with and without dropout, frozen and unused parameters, both storage types, cuts into micro-batches, weights
// that move, and samples of unequal lengths, of which nothing behind the end and nothing of an earlier micro-batch is
// seen.
#include "optimized/model/llama_model.h"

#include <gtest/gtest.h>

#include <numeric>
#include <set>

#include "conformance/contract/error.h"
#include "optimized/backend/cpu_backend.h"
#include "optimized/model/testing/decoder_world.h"
#include "optimized/model/testing/naive_llama.h"

namespace plumbline::optimized {
namespace {

using contract::DType;
using contract::LlamaSpec;
using testing::Result;
using testing::Runner;
using testing::World;

constexpr testing::Stored kStored{.per_layer = 30, .outside = 8};

Result Naive(const World& world) {
  return Truth(world, naive::NaiveLlama(world.spec.llama(), testing::kSeed), LlamaOutline(world.spec.llama()));
}

Runner MakeRunner(const World& world, int64_t samples) {
  const LlamaSpec& spec = world.spec.llama();
  return Runner(world, LlamaOutline(spec), samples,
                [&](int64_t of_each, const ParameterMemory& memory, Backend& backend) {
                  return MakeLlamaModel(spec, world.storage, testing::kSeed, of_each, memory, backend);
                });
}

LlamaSpec Spec(contract::RealSpec sizes, int64_t kv_heads) {
  LlamaSpec spec;
  static_cast<contract::RealSpec&>(spec) = std::move(sizes);
  spec.kv_heads = kv_heads;
  return spec;
}

std::vector<LlamaSpec> Specs() {
  std::vector<LlamaSpec> specs;
  for (const double dropout : {0.0, 0.3}) {
    const auto with = [&](contract::RealSpec sizes) {
      sizes.dropout = dropout;
      return sizes;
    };
    specs.push_back(
        Spec(with({.layers = 1, .width = 4, .heads = 1, .positions = 5, .hidden = 3, .vocab = 5, .frozen = {}}), 1));
    for (const int64_t kv_heads : {1, 2, 4}) {
      specs.push_back(
          Spec(with({.layers = 2, .width = 8, .heads = 4, .positions = 5, .hidden = 5, .vocab = 7, .frozen = {}}),
               kv_heads));
    }
  }
  specs.push_back(Spec({.layers = 2,
                        .width = 12,
                        .heads = 3,
                        .positions = 4,
                        .hidden = 7,
                        .vocab = 9,
                        .dropout = 0.1,
                        .norm_epsilon = 0.01,
                        .unused = true,
                        .frozen = {"embed.weight", "layers.0.attn.k.weight", "layers.1.norm1.weight",
                                   "layers.1.mlp.gate.weight", "norm.weight"}},
                       1));
  specs.back().rope_theta = 5;
  specs.push_back(Spec({.layers = 1,
                        .width = 8,
                        .heads = 2,
                        .positions = 3,
                        .hidden = 5,
                        .vocab = 7,
                        .unused = true,
                        .frozen = {"head.weight", "layers.0.attn.out.weight", "layers.0.attn.q.weight",
                                   "layers.0.attn.v.weight", "layers.0.mlp.down.weight", "layers.0.mlp.up.weight"}},
                       2));
  return specs;
}

// Lengths of the four samples of a batch. None; the longest in the first or in the last micro-batch; none with all.
const std::vector<std::vector<int32_t>> kLengths = {{}, {3, 1, 2, 3}, {1, 2, 3, 2}, {2, 1, 2, 1}};

World MakeWorld(const LlamaSpec& spec, DType storage, const std::vector<int32_t>& lengths) {
  World world(spec, storage);
  world.spec.llama().unequal_lengths = !lengths.empty();
  if (!lengths.empty()) world.Shorten(lengths);
  return world;
}

class LlamaModelTest : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Specs, LlamaModelTest, ::testing::Range(0, 10));

TEST_P(LlamaModelTest, LossAndGradientsAreThoseOfTheNaiveModelForEveryCutTypeAndLengths) {
  for (const DType storage : {DType::kF32, DType::kBF16, DType::kF16}) {
    for (const size_t lengths : {0, 1 + GetParam() % 3}) {
      const World world = MakeWorld(Specs()[GetParam()], storage, kLengths[lengths]);
      const Result expected = Naive(world);
      const double bound = RelativeBound(world.spec.real(), kStored, storage);
      for (const int64_t samples : {1, 2, 4}) {
        const double worst = Compare(world, bound, expected, MakeRunner(world, samples).RunAll());
        RecordProperty("share_of_bound_" + std::string(contract::Name(storage)) + "_" + std::to_string(samples),
                       std::to_string(worst));
      }
    }
  }
}

TEST_P(LlamaModelTest, ASecondRunGivesTheSameBits) {
  for (const DType storage : {DType::kF32, DType::kBF16, DType::kF16}) {
    const World world = MakeWorld(Specs()[GetParam()], storage, kLengths[1]);
    EXPECT_EQ(MakeRunner(world, 2).RunAll(), MakeRunner(world, 2).RunAll());
  }
}

// Padding of another content, and such that reading its row of the embedding would make all that it touches NaN.
TEST_P(LlamaModelTest, WhatIsBehindTheEndOfASampleChangesNoBit) {
  for (const DType storage : {DType::kF32, DType::kBF16, DType::kF16}) {
    for (const int64_t samples : {1, 2, 4}) {
      World world = MakeWorld(Specs()[GetParam()], storage, kLengths[1]);
      const auto poisoned = static_cast<int32_t>(world.spec.vocab() - 1);
      std::ranges::replace(world.tokens, poisoned, 0);
      const Result expected = MakeRunner(world, samples).RunAll();
      for (int64_t i = 0; i < testing::kBatch * world.positions; ++i) {
        if (i % world.positions < world.lengths[i / world.positions]) continue;
        world.tokens[i] = poisoned;
        world.labels[i] = static_cast<int32_t>((world.labels[i] + 1) % world.spec.vocab());
      }
      for (int64_t c = 0; c < world.spec.real().width; ++c) {
        world.weights[0][poisoned * world.spec.real().width + c] = INFINITY;
      }
      EXPECT_EQ(MakeRunner(world, samples).RunAll(), expected);
    }
  }
}

// Of two micro-batches one after the other, in both orders, the second is what it is alone.
TEST_P(LlamaModelTest, NothingOfAnEarlierMicroBatchIsRead) {
  for (const DType storage : {DType::kF32, DType::kBF16, DType::kF16}) {
    World world = MakeWorld(Specs()[GetParam()], storage, {3, 1, 2, 2});
    world.lengths[0] = static_cast<int32_t>(world.positions);
    for (const int64_t first : {0, 1, 2, 3}) {
      for (const int64_t second : {0, 1, 2, 3}) {
        Runner used = MakeRunner(world, 1);
        used.Run({first});
        EXPECT_EQ(used.Run({second}), MakeRunner(world, 1).Run({second})) << first << " before " << second;
      }
    }
  }
}

// The largest product's rows.
class RowsBackend final : public Backend {
 public:
  Storage Allocate(int64_t size_bytes, MemoryCategory category) override {
    return inner_->Allocate(size_bytes, category);
  }
  void Poison(std::byte* data, int64_t size_bytes) override { inner_->Poison(data, size_bytes); }
  void MatMul(const Matrices& a, const Matrices& b, const Matrices& c, WriteMode mode) override {
    largest = std::max(largest, c.batch * c.rows);
    inner_->MatMul(a, b, c, mode);
  }
  int64_t largest = 0;

 private:
  const std::unique_ptr<Backend> inner_ = MakeCpuBackend();
};

TEST(LlamaModel, ComputesAsManyPositionsAsTheLongestSampleHas) {
  const LlamaSpec spec =
      Spec({.layers = 1, .width = 2, .heads = 1, .positions = 50, .hidden = 2, .vocab = 2, .frozen = {}}, 1);
  World world(spec, DType::kF32);
  std::vector<float> memory(4096, 0.5f);
  const ParameterMemory parameters{.weights = std::vector<void*>(world.parameters.size(), memory.data()),
                                   .gradients = std::vector<float*>(world.parameters.size(), memory.data() + 2048)};
  RowsBackend backend;
  const auto model = MakeLlamaModel(spec, DType::kF32, 1, 4, parameters, backend);
  for (const int32_t longest : {50, 7, 31}) {
    world.Shorten({3, longest, 1, 2});
    backend.largest = 0;
    model->Forward(world.Rows(0, 4));
    EXPECT_EQ(backend.largest, 4 * longest);
  }
}

TEST(LlamaModel, AnUnusedParameterHasAZeroGradientAndFrozenOnesAreNotReported) {
  const World world(Specs()[8], DType::kF32);
  const Result result = MakeRunner(world, 2).RunAll();
  EXPECT_EQ(world.parameters.back().name, "unused.weight");
  EXPECT_EQ(result.gradients.back(), std::vector<double>(15, 0.0));
  EXPECT_EQ(result.ready_order.front(), world.parameters.back().tensor_id);
  const std::set<int64_t> reported(result.ready_order.begin(), result.ready_order.end());
  EXPECT_EQ(reported.size(), world.parameters.size() - world.spec.real().frozen.size());
  for (const auto& p : world.parameters) EXPECT_EQ(reported.count(p.tensor_id), p.frozen ? 0u : 1u) << p.name;
}

TEST(LlamaModel, TheOutlineHasAUnitForTheEmbeddingEachLayerTheHeadAndWhatIsUnused) {
  LlamaSpec spec = Spec(
      {.layers = 2, .width = 4, .heads = 1, .positions = 5, .hidden = 3, .vocab = 5, .unused = true, .frozen = {}}, 1);
  const ModelOutline outline = LlamaOutline(spec);
  std::vector<int64_t> first(9), second(9);
  std::iota(first.begin(), first.end(), 1);
  std::iota(second.begin(), second.end(), 10);
  EXPECT_EQ(outline.units, (std::vector<std::vector<int64_t>>{{0}, first, second, {19, 20}, {21}}));
  EXPECT_EQ(outline.forward, (std::vector<int64_t>{0, 1, 2, 3}));
  EXPECT_EQ(outline.backward, (std::vector<int64_t>{3, 2, 1}));
  spec.unused = false;
  EXPECT_EQ(LlamaOutline(spec).units.size(), 4u);
}

TEST(LlamaModel, RefusesOtherStorageTypes) {
  const auto backend = MakeCpuBackend();
  EXPECT_THROW(MakeLlamaModel(Specs()[0], DType::kF64, 1, 1, {}, *backend), contract::Error);
}

}  // namespace
}  // namespace plumbline::optimized
