// SPDX-License-Identifier: Apache-2.0
// What the tests of the decoders share: a small world of weights and tokens, its truth by finite differences of a naive
// loss in double, runs of a model in micro-batches whose weights move, and the comparison of the two.
//
// Bounds. By tensor, in the 2-norm, relative to the true gradient. What a value goes through on its way down the
// network and back up is roundings in sequence: so many tensors of storage type per layer, and so many outside.
// Roundings are independent of each other, so that their sum grows as the root of their number; three times that (three
// standard deviations, and gains of a layer near 1) is allowed. In fp32 each stored tensor is also a sum of up to
// kSumTerms products, which adds as many roundings.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <list>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "conformance/contract/model_spec.h"
#include "conformance/contract/random_stream.h"
#include "optimized/backend/cpu_backend.h"
#include "optimized/backend/storage_types.h"
#include "optimized/model/model.h"

namespace plumbline::optimized::testing {

inline constexpr uint64_t kSeed = 11;
inline constexpr int64_t kBatch = 4;
inline constexpr int64_t kStep = 3;

// Tensors of storage type through which a value goes.
struct Stored {
  double per_layer = 0;
  double outside = 0;
};

inline double RelativeBound(const contract::RealSpec& spec, const Stored& stored, contract::DType storage) {
  constexpr double kSumTerms = 24;
  const double tensors = stored.per_layer * static_cast<double>(spec.layers) + stored.outside;
  if (storage == contract::DType::kF32) return 3 * std::sqrt(tensors * kSumTerms) * kernels::kUnitRoundoff<float>;
  return 3 * std::sqrt(tensors) *
         VisitStorage(storage, [](auto type) { return kernels::kUnitRoundoff<decltype(type)>; });
}

// Keeps gradients out of the subnormal numbers of fp16, where the bound does not hold, and below its largest.
inline float LossScale(contract::DType storage) { return storage == contract::DType::kF16 ? 256 : 1; }

inline uint32_t Word(int64_t tensor, int64_t element) {
  return contract::Draw(kSeed, contract::Site::kInitialWeight, 0, tensor, element);
}

// Weights of order one, so that every path bends: not the initialisation of training.
inline double InitialWeight(const contract::ParameterSpec& p, int64_t i) {
  const double uniform = static_cast<double>(Word(p.tensor_id, i)) * 0x1p-31 - 1;
  const bool is_norm = p.name.find("norm") != std::string::npos;
  if (is_norm && p.name.ends_with("weight")) return 1 + 0.3 * uniform;
  if (p.is_vector) return 0.2 * uniform;
  if (p.name == "embed.weight" || p.name == "pos.weight") return uniform;
  return 1.7 * uniform / std::sqrt(static_cast<double>(p.rows));
}

struct World {
  World(const contract::ModelSpec& model, contract::DType storage_type)
      : spec(model), storage(storage_type), parameters(contract::Parameters(model)), positions(model.positions()) {
    for (const auto& p : parameters) {
      weights.emplace_back();
      for (int64_t i = 0; i < p.numel(); ++i) {
        const auto value = static_cast<float>(InitialWeight(p, i));
        weights.back().push_back(VisitStorage(
            storage, [&](auto type) { return kernels::ToFloat(kernels::FromFloat<decltype(type)>(value)); }));
      }
    }
    for (int64_t i = 0; i < kBatch * positions; ++i) {
      tokens.push_back(static_cast<int32_t>(Word(1000, i) % spec.vocab()));
      labels.push_back(static_cast<int32_t>(Word(1001, i) % spec.vocab()));
      loss_weights.push_back(Word(1002, i) % 3 == 0 ? 0 : 1);
      sum_weights += loss_weights.back();
    }
  }

  // Ends samples early. What is behind stays what it was, but for its loss weight; each sample keeps its first.
  void Shorten(std::vector<int32_t> new_lengths) {
    lengths = std::move(new_lengths);
    sum_weights = 0;
    for (int64_t i = 0; i < kBatch * positions; ++i) {
      if (i % positions >= lengths[i / positions]) loss_weights[i] = 0;
      if (i % positions == 0) loss_weights[i] = 1;
      sum_weights += loss_weights[i];
    }
  }

  MicroBatch Rows(int64_t first, int64_t samples) const {
    const auto rows = [&](const std::vector<int32_t>& values) {
      return std::span(values).subspan(first * positions, samples * positions);
    };
    const std::span<const int32_t> own_lengths(lengths);
    return {kStep,
            first,
            rows(tokens),
            rows(labels),
            rows(loss_weights),
            lengths.empty() ? own_lengths : own_lengths.subspan(first, samples)};
  }

  contract::ModelSpec spec;
  contract::DType storage;
  std::vector<contract::ParameterSpec> parameters;
  int64_t positions;
  std::vector<std::vector<double>> weights;
  std::vector<int32_t> tokens, labels, loss_weights, lengths;
  double sum_weights = 0;
};

struct Result {
  double loss = 0;
  std::vector<std::vector<double>> gradients;   // empty if frozen
  std::vector<int64_t> ready_order, use_order;  // of the last micro-batch
  friend bool operator==(const Result&, const Result&) = default;
};

// NaiveModel: weights by name, and SampleLoss(step, sample, tokens, labels, loss weights, their sum). A sample with a
// length is given without its padding.
template <typename NaiveModel>
double NaiveLoss(const World& world, const NaiveModel& model) {
  double loss = 0;
  for (int64_t sample = 0; sample < kBatch; ++sample) {
    const MicroBatch rows = world.Rows(sample, 1);
    const auto length = static_cast<size_t>(world.lengths.empty() ? world.positions : world.lengths[sample]);
    loss += model.SampleLoss(kStep, sample, rows.tokens.first(length), rows.labels.first(length),
                             rows.loss_weights.first(length), world.sum_weights);
  }
  return loss;
}

// Five-point differences: an error of h^4 times the fifth derivative, and 2^-53 / h.
template <typename NaiveModel>
Result Truth(const World& world, NaiveModel model, const ModelOutline& outline) {
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
  result.use_order = outline.forward;
  result.use_order.insert(result.use_order.end(), outline.backward.begin(), outline.backward.end());
  return result;
}

// Puts the weights of a unit into the table only while the unit is in use, each time at another address, and overwrites
// them with NaN afterwards.
class MovingWeights final : public UnitHooks {
 public:
  MovingWeights(const World& world, ModelOutline outline, ParameterMemory& memory)
      : outline_(std::move(outline)), memory_(memory), homes_(world.weights.size()) {
    for (const std::vector<double>& weight : world.weights) {
      values_.emplace_back();
      for (const double value : weight) {
        VisitStorage(world.storage, [&](auto type) {
          type = kernels::FromFloat<decltype(type)>(static_cast<float>(value));
          const auto bytes = std::as_bytes(std::span(&type, 1));
          values_.back().insert(values_.back().end(), bytes.begin(), bytes.end());
        });
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

// A family's model of a world, for micro-batches of so many samples.
using Make = std::function<std::unique_ptr<Model>(int64_t samples, const ParameterMemory& memory, Backend& backend)>;

// A model with memory of its own. Gradients begin as NaN, so that a missing assignment shows.
class Runner {
 public:
  Runner(const World& world, const ModelOutline& outline, int64_t samples, const Make& make)
      : world_(world), samples_(samples), backend_(MakeCpuBackend()) {
    for (const auto& p : world.parameters) gradients_.emplace_back(p.frozen ? 0 : p.numel(), NAN);
    for (const auto& p : world.parameters) {
      memory_.gradients.push_back(p.frozen ? nullptr : gradients_[p.tensor_id].data());
    }
    hooks_ = std::make_unique<MovingWeights>(world, outline, memory_);
    model_ = make(samples, memory_, *backend_);
  }

  // Micro-batches of the world's batch, which begin with these samples, in this order.
  Result Run(const std::vector<int64_t>& first_samples) {
    Result result;
    for (const int64_t first : first_samples) {
      result.ready_order.clear();
      hooks_->use_order.clear();
      const MicroBatch micro_batch = world_.Rows(first, samples_);
      model_->Forward(micro_batch);
      result.loss += model_->Loss(1.0f / static_cast<float>(world_.sum_weights), LossScale(world_.storage));
      const WriteMode mode = first == first_samples.front() ? WriteMode::kAssign : WriteMode::kAccumulate;
      model_->Backward(std::vector(gradients_.size(), mode),
                       [&](int64_t parameter) { result.ready_order.push_back(parameter); });
    }
    result.use_order = hooks_->use_order;
    for (const auto& gradient : gradients_) {
      result.gradients.emplace_back(gradient.begin(), gradient.end());
      for (double& value : result.gradients.back()) value /= LossScale(world_.storage);
    }
    return result;
  }

  Result RunAll() {
    std::vector<int64_t> first_samples;
    for (int64_t first = 0; first < kBatch; first += samples_) first_samples.push_back(first);
    return Run(first_samples);
  }

 private:
  const World& world_;
  int64_t samples_;
  std::unique_ptr<Backend> backend_;
  std::vector<std::vector<float>> gradients_;
  ParameterMemory memory_;
  std::unique_ptr<MovingWeights> hooks_;
  std::unique_ptr<Model> model_;
};

inline double Norm(const std::vector<double>& values) {
  return std::sqrt(std::inner_product(values.begin(), values.end(), values.begin(), 0.0));
}

// The largest error of a tensor's gradient, as a share of the bound.
inline double Compare(const World& world, double bound, const Result& expected, const Result& result) {
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

}  // namespace plumbline::optimized::testing
