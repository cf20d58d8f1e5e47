// SPDX-License-Identifier: Apache-2.0
// The layers against finite differences of a naive loss in double: loss and every gradient, tied and untied, with and
// without dropout, frozen and unused parameters, both storage types, cuts into micro-batches, weights that move.
//
// Bounds. By tensor, in the 2-norm, relative to the true gradient. What a value goes through on its way down the
// network and back up is roundings in sequence: kStoredPerLayer tensors of storage type per layer and kStoredOutside
// outside. Roundings are independent of each other, so that their sum grows as the root of their number; three times
// that (three standard deviations, and gains of a layer near 1) is allowed. In fp32 each stored tensor is also a sum of
// up to kSumTerms products, which adds as many roundings.
#include "optimized/model/gpt2_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <list>
#include <numeric>
#include <set>

#include "conformance/contract/error.h"
#include "kernels/bf16.h"
#include "optimized/backend/cpu_backend.h"
#include "optimized/model/testing/naive_gpt2.h"

namespace plumbline::optimized {
namespace {

using contract::DType;
using contract::Gpt2Spec;

constexpr uint64_t kSeed = 11;
constexpr int64_t kBatch = 4;
constexpr int64_t kStep = 3;

constexpr double kStoredPerLayer = 28;
constexpr double kStoredOutside = 8;
constexpr double kSumTerms = 24;

double RelativeBound(const Gpt2Spec& spec, DType storage) {
  const double stored = kStoredPerLayer * static_cast<double>(spec.layers) + kStoredOutside;
  return storage == DType::kBF16 ? 3 * std::sqrt(stored) * kernels::kUnitRoundoff<kernels::BFloat16>
                                 : 3 * std::sqrt(stored * kSumTerms) * kernels::kUnitRoundoff<float>;
}

uint32_t Word(int64_t tensor, int64_t element) {
  return contract::Draw(kSeed, contract::Site::kInitialWeight, 0, tensor, element);
}

// Weights of order one, so that every path bends: not the initialisation of training.
double InitialWeight(const contract::ParameterSpec& p, int64_t i) {
  const double uniform = static_cast<double>(Word(p.tensor_id, i)) * 0x1p-31 - 1;
  const bool is_norm = p.name.find("norm") != std::string::npos;
  if (is_norm && p.name.ends_with("weight")) return 1 + 0.3 * uniform;
  if (p.is_vector) return 0.2 * uniform;
  if (p.name == "embed.weight" || p.name == "pos.weight") return uniform;
  return 1.7 * uniform / std::sqrt(static_cast<double>(p.rows));
}

struct World {
  World(const Gpt2Spec& model, DType storage_type)
      : spec(model), storage(storage_type), parameters(contract::Parameters(model)) {
    for (const auto& p : parameters) {
      weights.emplace_back();
      for (int64_t i = 0; i < p.numel(); ++i) {
        const auto value = static_cast<float>(InitialWeight(p, i));
        weights.back().push_back(
            storage == DType::kF32 ? value : kernels::ToFloat(kernels::FromFloat<kernels::BFloat16>(value)));
      }
    }
    for (int64_t i = 0; i < kBatch * spec.positions; ++i) {
      tokens.push_back(static_cast<int32_t>(Word(1000, i) % spec.vocab));
      labels.push_back(static_cast<int32_t>(Word(1001, i) % spec.vocab));
      loss_weights.push_back(Word(1002, i) % 3 == 0 ? 0 : 1);
      sum_weights += loss_weights.back();
    }
  }

  MicroBatch Rows(int64_t first, int64_t samples) const {
    const auto rows = [&](const std::vector<int32_t>& values) {
      return std::span(values).subspan(first * spec.positions, samples * spec.positions);
    };
    return {kStep, first, rows(tokens), rows(labels), rows(loss_weights)};
  }

  Gpt2Spec spec;
  DType storage;
  std::vector<contract::ParameterSpec> parameters;
  std::vector<std::vector<double>> weights;
  std::vector<int32_t> tokens, labels, loss_weights;
  double sum_weights = 0;
};

struct Result {
  double loss = 0;
  std::vector<std::vector<double>> gradients;   // empty if frozen
  std::vector<int64_t> ready_order, use_order;  // of the last micro-batch
  friend bool operator==(const Result&, const Result&) = default;
};

double NaiveLoss(const World& world, const naive::NaiveGpt2& model) {
  double loss = 0;
  for (int64_t sample = 0; sample < kBatch; ++sample) {
    const MicroBatch rows = world.Rows(sample, 1);
    loss += model.SampleLoss(kStep, sample, rows.tokens, rows.labels, rows.loss_weights, world.sum_weights);
  }
  return loss;
}

// Five-point differences: an error of h^4 times the fifth derivative, and 2^-53 / h.
Result Naive(const World& world) {
  naive::NaiveGpt2 model(world.spec, kSeed);
  for (const auto& p : world.parameters) model.weights[p.name] = world.weights[p.tensor_id];
  Result result;
  result.loss = NaiveLoss(world, model);
  constexpr double h = 0x1p-9;
  for (const auto& p : world.parameters) {
    std::vector<double>& gradient = result.gradients.emplace_back();
    if (p.frozen) continue;
    for (double& weight : model.weights[p.name]) {
      if (p.name == "unused.weight") {
        gradient.push_back(0);
        continue;
      }
      const double centre = weight;
      const auto at = [&](double change) {
        weight = centre + change;
        return NaiveLoss(world, model);
      };
      gradient.push_back((8 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12 * h));
      weight = centre;
    }
  }
  for (auto p = world.parameters.rbegin(); p != world.parameters.rend(); ++p) {
    if (!p->frozen) result.ready_order.push_back(p->tensor_id);
  }
  const ModelOutline outline = Gpt2Outline(world.spec);
  result.use_order = outline.forward;
  result.use_order.insert(result.use_order.end(), outline.backward.begin(), outline.backward.end());
  return result;
}

// Puts the weights of a unit into the table only while the unit is in use, each time at another address, and overwrites
// them with NaN afterwards.
class MovingWeights final : public UnitHooks {
 public:
  MovingWeights(const World& world, ParameterMemory& memory)
      : outline_(Gpt2Outline(world.spec)), memory_(memory), homes_(world.weights.size()) {
    for (const std::vector<double>& weight : world.weights) {
      values_.emplace_back();
      for (const double value : weight) {
        const auto wide = static_cast<float>(value);
        const kernels::BFloat16 narrow = kernels::FromFloat<kernels::BFloat16>(wide);
        const auto bytes =
            world.storage == DType::kF32 ? std::as_bytes(std::span(&wide, 1)) : std::as_bytes(std::span(&narrow, 1));
        values_.back().insert(values_.back().end(), bytes.begin(), bytes.end());
      }
    }
    memory.weights.assign(values_.size(), nullptr);
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
  ParameterMemory& memory_;
  std::vector<std::vector<std::byte>> values_;
  std::vector<std::list<std::vector<std::byte>>> homes_;
  int64_t in_use_ = -1;
};

// Runs the batch in micro-batches of `samples`. Gradients begin as NaN, so that a missing assignment shows.
Result RunInMicroBatches(const World& world, int64_t samples) {
  const auto backend = MakeCpuBackend();
  std::vector<std::vector<float>> gradients;
  ParameterMemory memory;
  for (const auto& p : world.parameters) gradients.emplace_back(p.frozen ? 0 : p.numel(), NAN);
  for (const auto& p : world.parameters) {
    memory.gradients.push_back(p.frozen ? nullptr : gradients[p.tensor_id].data());
  }
  MovingWeights hooks(world, memory);
  const auto model = MakeGpt2Model(world.spec, world.storage, kSeed, samples, memory, *backend);
  Result result;
  for (int64_t first = 0; first < kBatch; first += samples) {
    result.ready_order.clear();
    hooks.use_order.clear();
    const MicroBatch micro_batch = world.Rows(first, samples);
    model->Forward(micro_batch);
    result.loss += model->Loss(1.0f / static_cast<float>(world.sum_weights));
    model->Backward(first == 0 ? WriteMode::kAssign : WriteMode::kAccumulate,
                    [&](int64_t parameter) { result.ready_order.push_back(parameter); });
  }
  result.use_order = hooks.use_order;
  for (const auto& gradient : gradients) result.gradients.emplace_back(gradient.begin(), gradient.end());
  return result;
}

double Norm(const std::vector<double>& values) {
  return std::sqrt(std::inner_product(values.begin(), values.end(), values.begin(), 0.0));
}

// The largest error of a tensor's gradient, as a share of the bound.
double Compare(const World& world, const Result& expected, const Result& result) {
  const double bound = RelativeBound(world.spec, world.storage);
  EXPECT_LE(std::abs(result.loss - expected.loss), bound * expected.loss);
  EXPECT_EQ(result.ready_order, expected.ready_order) << "reverse canonical order, without frozen parameters";
  EXPECT_EQ(result.use_order, expected.use_order) << "as the outline says";
  double worst = 0;
  for (const auto& p : world.parameters) {
    const std::vector<double>& truth = expected.gradients[p.tensor_id];
    std::vector<double> difference = result.gradients[p.tensor_id];
    EXPECT_EQ(difference.size(), truth.size()) << p.name;
    for (size_t i = 0; i < truth.size(); ++i) difference[i] -= truth[i];
    EXPECT_LE(Norm(difference), bound * Norm(truth)) << p.name << ", " << contract::Name(world.storage);
    if (Norm(truth) > 0) worst = std::max(worst, Norm(difference) / (bound * Norm(truth)));
  }
  return worst;
}

std::vector<Gpt2Spec> Specs() {
  std::vector<Gpt2Spec> specs;
  for (const double dropout : {0.0, 0.3}) {
    for (const bool tied : {true, false}) {
      specs.push_back({.layers = 1, .width = 4, .heads = 1, .positions = 5, .hidden = 3, .vocab = 5, .frozen = {}});
      specs.push_back({.layers = 2, .width = 6, .heads = 3, .positions = 7, .hidden = 11, .vocab = 13, .frozen = {}});
      for (size_t i = specs.size() - 2; i < specs.size(); ++i) {
        specs[i].dropout = dropout;
        specs[i].tied_head = tied;
      }
    }
  }
  specs.push_back({.layers = 2,
                   .width = 10,
                   .heads = 2,
                   .positions = 4,
                   .hidden = 7,
                   .vocab = 9,
                   .dropout = 0.1,
                   .tied_head = true,
                   .norm_epsilon = 0.01,
                   .unused = true,
                   .frozen = {"embed.weight", "layers.0.attn.qkv.bias", "layers.1.norm1.weight",
                              "layers.1.mlp.up.weight", "norm.bias"}});
  specs.push_back({.layers = 1,
                   .width = 6,
                   .heads = 2,
                   .positions = 3,
                   .hidden = 5,
                   .vocab = 7,
                   .tied_head = false,
                   .unused = true,
                   .frozen = {"pos.weight", "head.weight", "layers.0.attn.out.weight", "layers.0.norm2.bias"}});
  return specs;
}

class Gpt2ModelTest : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Specs, Gpt2ModelTest, ::testing::Range(0, 10));

TEST_P(Gpt2ModelTest, LossAndGradientsAreThoseOfTheNaiveModelForEveryCutAndType) {
  for (const DType storage : {DType::kF32, DType::kBF16}) {
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
  for (const DType storage : {DType::kF32, DType::kBF16}) {
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
  EXPECT_EQ(reported.size(), world.parameters.size() - world.spec.frozen.size());
  for (const auto& p : world.parameters) EXPECT_EQ(reported.count(p.tensor_id), p.frozen ? 0u : 1u) << p.name;
}

TEST(Gpt2Model, TheOutlineReadsATiedEmbeddingInTwoUnitsAndAnUnusedParameterInNoUnitThatIsUsed) {
  const ModelOutline tied = Gpt2Outline(
      {.layers = 1, .width = 4, .heads = 1, .positions = 5, .hidden = 3, .vocab = 5, .unused = true, .frozen = {}});
  std::vector<int64_t> layer(12);
  std::iota(layer.begin(), layer.end(), 2);
  EXPECT_EQ(tied.units, (std::vector<std::vector<int64_t>>{{0, 1}, layer, {14, 15, 0}, {16}}));
  EXPECT_EQ(tied.forward, (std::vector<int64_t>{0, 1, 2}));
  EXPECT_EQ(tied.backward, (std::vector<int64_t>{2, 1}));
  const ModelOutline untied = Gpt2Outline(
      {.layers = 1, .width = 4, .heads = 1, .positions = 5, .hidden = 3, .vocab = 5, .tied_head = false, .frozen = {}});
  EXPECT_EQ(untied.units, (std::vector<std::vector<int64_t>>{{0, 1}, layer, {14, 15, 16}}));
}

TEST(Gpt2Model, RefusesOtherStorageTypes) {
  const auto backend = MakeCpuBackend();
  EXPECT_THROW(MakeGpt2Model(Specs()[0], DType::kF16, 1, 1, {}, *backend), contract::Error);
}

}  // namespace
}  // namespace plumbline::optimized
