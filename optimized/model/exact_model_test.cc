// SPDX-License-Identifier: Apache-2.0
// The layers against a naive integer model: loss and every gradient, for models with and without grouped heads and
// dropout, both storage types, any cut into micro-batches.
#include "optimized/model/exact_model.h"

#include <gtest/gtest.h>

#include <cmath>
#include <list>
#include <numeric>

#include "conformance/contract/batch_source.h"
#include "optimized/backend/cpu_backend.h"
#include "optimized/backend/storage_types.h"
#include "optimized/model/testing/naive_exact.h"

namespace plumbline::optimized {
namespace {

using contract::DType;
using contract::ExactSpec;

constexpr uint64_t kSeed = 7;
constexpr int64_t kBatch = 6;
constexpr int64_t kStep = 1;

struct World {
  explicit World(const ExactSpec& model) : spec(model), parameters(contract::Parameters(model)) {
    contract::TokenSource text;
    text.reduce_modulo_vocab = true;
    for (int i = 0; i < 997; ++i) text.tokens.push_back(i * i % 251);
    batches = contract::MakeBatches(text, spec, {kSeed, 0, kStep + 1, kBatch});
    state = contract::MakeInitialState(spec, contract::OptimizerKind::kModularMomentum, kSeed);
    for (int64_t i = batches.Index(kStep, 0, 0); i < batches.Index(kStep + 1, 0, 0); ++i) {
      num_tokens += batches.loss_weights[i] != 0;
    }
  }

  std::span<const int32_t> Rows(const std::vector<int32_t>& values, int64_t sample, int64_t samples) const {
    return std::span(values).subspan(batches.Index(kStep, sample, 0), samples * spec.positions);
  }

  ExactSpec spec;
  std::vector<contract::ParameterSpec> parameters;
  contract::Batches batches;
  std::vector<contract::ParameterState> state;
  int64_t num_tokens = 0;
};

struct Result {
  double loss = 0;
  std::vector<std::vector<double>> gradients;
  std::vector<int64_t> ready_order;  // of the last micro-batch
  std::vector<int64_t> use_order;    // of units, of the last micro-batch
  friend bool operator==(const Result&, const Result&) = default;
};

Result Naive(const World& world) {
  std::vector<naive::Matrix> weights;
  for (const auto& p : world.parameters) {
    naive::Matrix weight = naive::Zeros(p.rows, p.cols);
    for (int64_t i = 0; i < p.numel(); ++i) weight[i / p.cols][i % p.cols] = world.state[p.tensor_id].weight[i];
    weights.push_back(weight);
  }
  naive::NaiveExact model(world.spec, kSeed, weights);
  for (int64_t sample = 0; sample < kBatch; ++sample) {
    model.AddSample(kStep, sample, world.Rows(world.batches.tokens, sample, 1),
                    world.Rows(world.batches.labels, sample, 1), world.Rows(world.batches.loss_weights, sample, 1),
                    world.num_tokens);
  }
  Result result;
  result.loss = static_cast<double>(model.loss);
  for (const naive::Matrix& gradient : model.gradients) {
    std::vector<double> flat;
    for (const auto& row : gradient) flat.insert(flat.end(), row.begin(), row.end());
    result.gradients.push_back(flat);
  }
  result.ready_order.resize(world.parameters.size());
  std::iota(result.ready_order.rbegin(), result.ready_order.rend(), 0);
  const ModelOutline outline = ExactOutline(world.spec);
  result.use_order = outline.forward;
  result.use_order.insert(result.use_order.end(), outline.backward.begin(), outline.backward.end());
  return result;
}

// Puts the weights of a unit into the table only while the unit is in use, each time at another address, and overwrites
// them with NaN afterwards.
class MovingWeights final : public UnitHooks {
 public:
  MovingWeights(const ModelOutline& outline, const std::vector<std::vector<std::byte>>& values, ParameterMemory& memory)
      : outline_(outline), values_(values), memory_(memory), homes_(values.size()) {
    memory.weights.assign(values.size(), nullptr);
    memory.hooks = this;
  }

  void BeforeUse(int64_t unit) override {
    ASSERT_EQ(in_use_, -1) << "one unit at a time";
    in_use_ = unit;
    use_order.push_back(unit);
    for (const int64_t parameter : outline_.units.at(unit)) {
      homes_[parameter].push_back(values_[parameter]);
      memory_.weights[parameter] = homes_[parameter].back().data();
    }
  }

  void AfterUse(int64_t unit) override {
    ASSERT_EQ(in_use_, unit);
    in_use_ = -1;
    for (const int64_t parameter : outline_.units[unit]) {
      std::fill(homes_[parameter].back().begin(), homes_[parameter].back().end(), std::byte{0xFF});
      memory_.weights[parameter] = nullptr;
    }
  }

  std::vector<int64_t> use_order;

 private:
  const ModelOutline outline_;
  const std::vector<std::vector<std::byte>>& values_;
  ParameterMemory& memory_;
  std::vector<std::list<std::vector<std::byte>>> homes_;
  int64_t in_use_ = -1;
};

template <typename T>
std::vector<std::byte> Bytes(const std::vector<T>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

// Runs the batch in micro-batches of `samples`. Gradients begin as NaN, so that a missing assignment shows.
Result RunInMicroBatches(const World& world, DType storage, int64_t samples, int64_t loss_scale = 1) {
  const auto backend = MakeCpuBackend();
  std::vector<std::vector<std::byte>> weights;
  std::vector<std::vector<float>> gradients;
  ParameterMemory memory;
  for (const auto& p : world.parameters) {
    const auto& values = world.state[p.tensor_id].weight;
    const std::vector<float> wide(values.begin(), values.end());
    VisitStorage(storage, [&](auto type) {
      std::vector<decltype(type)> stored;
      for (const float value : wide) stored.push_back(kernels::FromFloat<decltype(type)>(value));
      weights.push_back(Bytes(stored));
    });
    gradients.emplace_back(p.numel(), NAN);
  }
  for (std::vector<float>& gradient : gradients) memory.gradients.push_back(gradient.data());
  MovingWeights hooks(ExactOutline(world.spec), weights, memory);
  const auto model = MakeExactModel(world.spec, {storage, kSeed, samples}, memory, *backend);
  Result result;
  for (int64_t first = 0; first < kBatch; first += samples) {
    result.ready_order.clear();
    hooks.use_order.clear();
    model->Forward({kStep, first, world.Rows(world.batches.tokens, first, samples),
                    world.Rows(world.batches.labels, first, samples),
                    world.Rows(world.batches.loss_weights, first, samples)});
    result.loss += model->Loss(1.0f / static_cast<float>(world.num_tokens), static_cast<float>(loss_scale));
    model->Backward(std::vector(gradients.size(), first == 0 ? WriteMode::kAssign : WriteMode::kAccumulate),
                    [&](int64_t parameter) { result.ready_order.push_back(parameter); });
  }
  for (const auto& gradient : gradients) result.gradients.emplace_back(gradient.begin(), gradient.end());
  result.use_order = hooks.use_order;
  return result;
}

std::vector<ExactSpec> Specs() {
  std::vector<ExactSpec> specs;
  for (const bool dropout : {false, true}) {
    specs.push_back({.layers = 1, .width = 4, .heads = 1, .kv_heads = 1, .positions = 5, .hidden = 3, .vocab = 5});
    specs.push_back({.layers = 2, .width = 12, .heads = 3, .kv_heads = 3, .positions = 8, .hidden = 20, .vocab = 19});
    specs.push_back({.layers = 2, .width = 12, .heads = 6, .kv_heads = 2, .positions = 7, .hidden = 11, .vocab = 13});
    specs.push_back({.layers = 3, .width = 10, .heads = 5, .kv_heads = 1, .positions = 9, .hidden = 17, .vocab = 7});
    for (size_t i = specs.size() - 4; i < specs.size(); ++i) specs[i].dropout = dropout;
  }
  specs.push_back({.layers = 1,
                   .width = 6,
                   .heads = 2,
                   .kv_heads = 1,
                   .positions = 5,
                   .hidden = 7,
                   .vocab = 11,
                   .weight_bound = 2,
                   .fold_bound = 3,
                   .gradient_fold_bound = 2});
  return specs;
}

class ExactModelTest : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Specs, ExactModelTest, ::testing::Range(0, 9));

TEST_P(ExactModelTest, LossAndGradientsEqualTheNaiveModelForEveryCutAndType) {
  const World world(Specs()[GetParam()]);
  const Result expected = Naive(world);
  EXPECT_NE(expected.loss, 0);
  const std::pair<DType, int64_t> kTypes[] = {
      {DType::kF32, 1}, {DType::kBF16, 1}, {DType::kF16, 1}, {DType::kF16, 256}};
  for (const auto& [storage, loss_scale] : kTypes) {
    for (const int64_t samples : {1, 2, 3, 6}) {
      const Result result = RunInMicroBatches(world, storage, samples, loss_scale);
      EXPECT_EQ(result.loss, expected.loss);
      EXPECT_EQ(result.ready_order, expected.ready_order) << "reverse canonical order";
      EXPECT_EQ(result.use_order, expected.use_order) << "as the outline says";
      for (const auto& p : world.parameters) {
        auto scaled = expected.gradients[p.tensor_id];
        for (auto& value : scaled) value *= loss_scale;
        EXPECT_EQ(result.gradients[p.tensor_id], scaled)
            << p.name << ", micro-batches of " << samples << ", " << contract::Name(storage);
      }
    }
  }
}

TEST(ExactModel, DropoutMasksFollowTheGlobalSampleNotTheMicroBatch) {
  ExactSpec spec = Specs()[1];
  const Result without = RunInMicroBatches(World(spec), DType::kF32, 2);
  spec.dropout = true;
  const Result with = RunInMicroBatches(World(spec), DType::kF32, 2);
  EXPECT_NE(with.gradients, without.gradients);
  EXPECT_EQ(with, RunInMicroBatches(World(spec), DType::kF32, 3));
}

TEST(ExactModel, TheOutlineReadsTheTiedEmbeddingInTwoUnits) {
  const ModelOutline outline = ExactOutline(Specs()[0]);
  EXPECT_EQ(outline.units, (std::vector<std::vector<int64_t>>{{0, 1}, {2, 3, 4, 5, 6, 7}, {0}}));
  EXPECT_EQ(outline.forward, (std::vector<int64_t>{0, 1, 2}));
  EXPECT_EQ(outline.backward, (std::vector<int64_t>{2, 1}));
}

TEST(ExactModel, RefusesOtherStorageTypes) {
  const auto backend = MakeCpuBackend();
  EXPECT_ANY_THROW(MakeExactModel(Specs()[0], {.storage = DType::kF64, .samples = 1}, {}, *backend));
}

}  // namespace
}  // namespace plumbline::optimized
