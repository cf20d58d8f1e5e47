// SPDX-License-Identifier: Apache-2.0
// Tests of what autograd sees: the autograd Functions, products (where they round, on sums whose partial sums fp16 cannot
// hold), and the decoder: one file for both, since each that includes LibTorch costs half a minute. The oracles are
// plain int64 loops and finite differences. Agreement of the whole engine with others is not tested here; the harness
// does that.
#include "conformance/engines/torch_eager/decoder.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/full.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/variable.h>

#include <cmath>
#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

#include "conformance/contract/model_spec.h"
#include "conformance/engines/torch_eager/product.h"
#include "conformance/engines/torch_eager/storage_type.h"

namespace plumbline::conformance::torch_eager {
namespace {

using contract::DType;
using torch::autograd::grad;

// As the engine runs. On a loaded machine a second thread makes products of this size wait, not faster.
class OneThread : public testing::Environment {
  void SetUp() override { at::set_num_threads(1); }
};
const testing::Environment* const kOneThread = testing::AddGlobalTestEnvironment(new OneThread);

constexpr at::ScalarType kStorageTypes[] = {at::kDouble, at::kFloat, at::kBFloat16, at::kHalf};

// A small generator of the test's own (xorshift), so that no shared code decides the values.
class Values {
 public:
  explicit Values(uint64_t seed) : state_(seed * 2 + 1) {}
  int64_t In(int64_t low, int64_t high) {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return low + static_cast<int64_t>((state_ >> 20) % static_cast<uint64_t>(high - low + 1));
  }
  at::Tensor Tensor(at::IntArrayRef shape, int64_t low, int64_t high) {
    std::vector<int64_t> values(c10::multiply_integers(shape));
    for (int64_t& v : values) v = In(low, high);
    return at::from_blob(values.data(), shape, at::kLong).clone();
  }

 private:
  uint64_t state_;
};

at::Tensor FromInts(std::vector<int64_t> values, at::ScalarType type) {
  return at::from_blob(values.data(), {static_cast<int64_t>(values.size())}, at::kLong).to(type, false, true);
}

std::vector<int64_t> Ints(const at::Tensor& tensor) {
  const at::Tensor wide = tensor.detach().to(at::kLong).contiguous();
  EXPECT_TRUE(wide.to(at::kDouble).equal(tensor.detach().to(at::kDouble).contiguous())) << "not integers";
  return {wide.const_data_ptr<int64_t>(), wide.const_data_ptr<int64_t>() + wide.numel()};
}

// p of the document, by steps of the modulus instead of by a remainder.
int64_t Phase(int64_t x, int64_t bound, int64_t modulus) {
  int64_t p = x + bound;
  while (p < 0) p += modulus;
  while (p >= modulus) p -= modulus;
  return p;
}

int64_t FoldOf(int64_t x, int64_t bound) {
  const int64_t p = Phase(x, bound, 4 * bound);
  return p <= 2 * bound ? p - bound : 3 * bound - p;
}

int64_t SlopeOf(int64_t x, int64_t bound) { return Phase(x, bound, 4 * bound) < 2 * bound ? 1 : -1; }

TEST(Fold, IsTheTriangleOfTheDocument) {
  const at::Tensor x = FromInts({-7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7}, at::kFloat).requires_grad_(true);
  const at::Tensor y = Fold(x, 2);
  EXPECT_EQ(Ints(y), (std::vector<int64_t>{1, 2, 1, 0, -1, -2, -1, 0, 1, 2, 1, 0, -1, -2, -1}));
  // The kinks x = 2 and x = -6 (p = 2b) have slope -1, the kinks x = -2 and x = 6 (p = 0) slope +1.
  EXPECT_EQ(Ints(grad({y.sum()}, {x})[0]), (std::vector<int64_t>{1, -1, -1, -1, -1, 1, 1, 1, 1, -1, -1, -1, -1, 1, 1}));
}

TEST(Fold, MatchesTheRuleForEveryBoundAndTypeFromMinusToPlus256) {
  for (const at::ScalarType type : kStorageTypes) {
    for (const int64_t bound : {1, 2, 3, 4, 7}) {
      std::vector<int64_t> inputs, values, slopes;
      for (int64_t x = -256; x <= 256; ++x) {
        inputs.push_back(x);
        values.push_back(FoldOf(x, bound));
        slopes.push_back(SlopeOf(x, bound));
      }
      const at::Tensor x = FromInts(inputs, type).requires_grad_(true);
      const at::Tensor y = Fold(x, bound);
      EXPECT_EQ(y.scalar_type(), type);
      EXPECT_EQ(Ints(y), values) << "bound " << bound << ", type " << type;
      EXPECT_EQ(Ints(grad({y.sum()}, {x})[0]), slopes) << "bound " << bound << ", type " << type;
    }
  }
}

TEST(Fold, IsExactNearTheLimitOfFp32) {
  for (const int64_t x : {-16'777'211, 16'777'205, 16'777'211}) {
    const at::Tensor y = Fold(FromInts({x}, at::kFloat), 4);
    EXPECT_EQ(Ints(y)[0], FoldOf(x, 4)) << x;
  }
}

TEST(GradientFold, FoldsTheSumOverAllUsesAndLeavesTheValue) {
  const at::Tensor x = FromInts({-9, 0, 5}, at::kFloat).requires_grad_(true);
  const at::Tensor y = GradientFold(x, 4);
  EXPECT_EQ(Ints(y), (std::vector<int64_t>{-9, 0, 5}));
  // 3 + 3 + 1 = 7 folds to 1; folding each use first would give 3 + 3 + 1 = 7.
  EXPECT_EQ(Ints(grad({(y * 3 + y * 3 + y).sum()}, {x})[0]), (std::vector<int64_t>{1, 1, 1}));
}

TEST(Linear, KeepsWeightGradientsThatSixteenBitsCannotHold) {
  for (const at::ScalarType type : {at::kBFloat16, at::kHalf}) {
    const at::Tensor x = at::full({1, 1001, 2}, 3.0, type).requires_grad_(true);
    const at::Tensor weight = FromInts({1, -1}, at::kFloat).view({2, 1}).requires_grad_(true);
    const at::Tensor y = Linear(x, weight);
    EXPECT_EQ(y.scalar_type(), type);
    const std::vector<at::Tensor> gradients = grad({y.to(at::kDouble).sum() * 3}, {x, weight});
    EXPECT_EQ(gradients[0].scalar_type(), type);
    EXPECT_EQ(gradients[1].scalar_type(), at::kFloat);
    EXPECT_EQ(Ints(gradients[1]), (std::vector<int64_t>{9009, 9009})) << type;
  }
}

TEST(Linear, HasTheGradientsOfAMatrixProduct) {
  Values values(1);
  for (const at::ScalarType type : kStorageTypes) {
    const at::Tensor x = values.Tensor({3, 5, 7}, -2, 2).to(type).requires_grad_(true);
    const at::Tensor weight = ToWide(values.Tensor({7, 11}, -1, 1).to(type)).requires_grad_(true);
    const at::Tensor dy = values.Tensor({3, 5, 11}, -4, 4);
    const std::vector<at::Tensor> ours = grad({(Linear(x, weight) * dy.to(type)).sum()}, {x, weight});
    const at::Tensor dx = at::matmul(dy, weight.detach().to(at::kLong).t());
    const at::Tensor dweight = at::matmul(x.detach().to(at::kLong).view({15, 7}).t(), dy.view({15, 11}));
    EXPECT_EQ(Ints(ours[0]), Ints(dx)) << type;
    EXPECT_EQ(Ints(ours[1]), Ints(dweight)) << type;
  }
}

// --- the decoder ---

// A case of the test's own: parameters and one batch.
struct Example {
  contract::ExactSpec spec;
  std::vector<at::Tensor> parameters;  // int64
  at::Tensor tokens, labels, loss_weights;
  std::vector<at::Tensor> twice_masks;  // int64
};

Example MakeExample(int64_t heads, int64_t kv_heads, bool dropout, uint64_t seed) {
  Example e;
  e.spec = {.layers = 2, .width = 12, .heads = heads, .kv_heads = kv_heads, .positions = 5, .hidden = 7, .vocab = 11};
  e.spec.dropout = dropout;
  const int64_t d = 12, f = 7, kv = e.spec.kv_width(), v = 11, t = 5, b = 3;
  std::vector<std::pair<int64_t, int64_t>> shapes = {{v, d}, {t, d}};
  for (int64_t l = 0; l < 2; ++l) {
    shapes.insert(shapes.end(), {{d, d}, {d, kv}, {d, kv}, {d, d}, {d, f}, {f, d}});
  }
  Values values(seed);
  for (const auto& [rows, cols] : shapes) e.parameters.push_back(values.Tensor({rows, cols}, -1, 1));
  e.tokens = values.Tensor({b, t}, 0, v - 1);
  e.labels = values.Tensor({b, t}, 0, v - 1);
  e.loss_weights = FromInts({8, 0, 40, 0, 8, 40, 0, 8, 0, 0, 8, 0, 0, 8, 40}, at::kLong).view({b, t});  // N = 8
  for (int i = 0; dropout && i < 4; ++i) e.twice_masks.push_back(values.Tensor({b, t, d}, 0, 1) * 2);
  return e;
}

at::Tensor Loss(const Decoder& decoder, const Example& e, const std::vector<at::Tensor>& parameters) {
  return decoder.Loss(parameters, e.tokens, e.labels, e.loss_weights, e.twice_masks);
}

std::vector<at::Tensor> Leaves(const std::vector<at::Tensor>& values, at::ScalarType wide) {
  std::vector<at::Tensor> leaves;
  for (const at::Tensor& v : values) leaves.push_back(v.detach().to(wide, false, true).requires_grad_(true));
  return leaves;
}

TEST(Decoder, GradientsAreTheSameIntegersInEveryStorageType) {
  for (const auto& [heads, kv_heads, dropout] :
       {std::tuple(3, 3, false), std::tuple(6, 2, true), std::tuple(2, 1, false)}) {
    const Example e = MakeExample(heads, kv_heads, dropout, 7);
    std::vector<std::vector<int64_t>> expected;
    for (const auto& [storage, wide, loss_scale] :
         {std::tuple(DType::kF64, at::kDouble, 1), std::tuple(DType::kF32, at::kFloat, 1),
          std::tuple(DType::kBF16, at::kFloat, 1), std::tuple(DType::kF16, at::kFloat, 1),
          std::tuple(DType::kF16, at::kFloat, 64), std::tuple(DType::kF16, at::kFloat, 256)}) {
      const std::vector<at::Tensor> leaves = Leaves(e.parameters, wide);
      const at::Tensor loss = Loss(Decoder(e.spec, storage, loss_scale), e, leaves);
      std::vector<std::vector<int64_t>> got = {Ints(loss.view({1}))};
      for (const at::Tensor& gradient : grad({loss}, leaves, {at::full_like(loss, loss_scale)})) {
        EXPECT_EQ(gradient.scalar_type(), wide);
        EXPECT_GT(gradient.ne(0).sum().item<int64_t>(), 0);
        got.push_back(Ints(gradient / loss_scale));
      }
      if (expected.empty()) expected = got;
      EXPECT_EQ(got, expected) << Name(storage) << ", loss scale " << loss_scale;
    }
  }
}

// Without folds the decoder is differentiable almost everywhere: attention, heads, joins, tying, dropout and the loss
// are then judged by central differences at a random (not integer) point.
TEST(Decoder, GradientsWithoutFoldsAreFiniteDifferences) {
  constexpr double kStep = 1e-5;
  for (const auto& [heads, kv_heads, dropout] : {std::tuple(3, 3, false), std::tuple(6, 2, true)}) {
    const Example e = MakeExample(heads, kv_heads, dropout, 11);
    const Decoder decoder(e.spec, DType::kF64, /*loss_scale=*/1, /*folds=*/false);
    Values values(13);
    std::vector<at::Tensor> point;
    for (const at::Tensor& p : e.parameters)
      point.push_back(values.Tensor(p.sizes(), -1000, 1000).to(at::kDouble) / 3000);
    const std::vector<at::Tensor> leaves = Leaves(point, at::kDouble);
    const std::vector<at::Tensor> gradients = grad({Loss(decoder, e, leaves)}, leaves);
    for (size_t i = 0; i < point.size(); ++i) {
      double* elements = point[i].data_ptr<double>();
      for (int64_t j = 0; j < point[i].numel(); j += 5) {
        const double centre = elements[j];
        elements[j] = centre + kStep;
        const double above = Loss(decoder, e, point).item<double>();
        elements[j] = centre - kStep;
        const double below = Loss(decoder, e, point).item<double>();
        elements[j] = centre;
        const double expected = (above - below) / (2 * kStep);
        const double got = gradients[i].flatten()[j].item<double>();
        ASSERT_LE(std::abs(got - expected), 1e-6 * (1 + std::abs(expected))) << "parameter " << i << ", element " << j;
      }
    }
  }
}

TEST(Decoder, OfEqualLogitsTheSmallestIndexIsBest) {
  Example e = MakeExample(3, 3, false, 17);
  for (at::Tensor& p : e.parameters) p.zero_();
  e.parameters[1].fill_(1);  // P: h is 1 everywhere, while E = 0 makes all logits equal
  e.labels.fill_(4);
  const std::vector<at::Tensor> leaves = Leaves(e.parameters, at::kFloat);
  const at::Tensor dembed = grad({Loss(Decoder(e.spec, DType::kF32, /*loss_scale=*/1), e, leaves)}, leaves)[0];
  const std::vector<int64_t> column = Ints(dembed.select(1, 0));
  // Five weights of 1 and three of 5, divided by N = 8 and multiplied by it: 20 for best, -20 for the label.
  EXPECT_EQ(column, (std::vector<int64_t>{20, 0, 0, 0, -20, 0, 0, 0, 0, 0, 0}));
}

// Rows of `terms` elements, the first half `value`, the rest -value: their sum is small, and partial sums are neither
// small nor, in 16 bits, exact.
at::Tensor RisingAndFalling(int64_t rows, int64_t terms, int64_t value, at::ScalarType type) {
  const at::Tensor row = at::full({terms}, value, type);
  row.narrow(0, terms / 2, terms - terms / 2).neg_();
  return row.repeat({rows, 1});
}

TEST(Product, SumsInFp32WhatFp16CannotHoldOnTheWay) {
  constexpr int64_t kTerms = 4001;
  // 3: sums to 6000, where fp16 knows every fourth integer. 12288: sums beyond the largest number of fp16.
  for (const int64_t value : {3, 12288}) {
    for (const auto& [rows, cols] : {std::pair(1, 1), std::pair(1, 5), std::pair(7, 1), std::pair(65, 67)}) {
      const at::Tensor a = RisingAndFalling(rows, kTerms, value, at::kHalf).requires_grad_(true);
      const at::Tensor b = at::ones({cols, kTerms}, at::kHalf).t();
      const at::Tensor c = Product(a, b);
      EXPECT_EQ(c.scalar_type(), at::kHalf);
      EXPECT_EQ(Ints(c.flatten()), std::vector<int64_t>(rows * cols, -value)) << rows << " x " << cols;
      const at::Tensor stacked = Product(a.repeat({3, 2, 1, 1}), b.repeat({3, 2, 1, 1}));
      EXPECT_EQ(Ints(stacked.flatten()), std::vector<int64_t>(6 * rows * cols, -value)) << rows << " x " << cols;
    }
  }
}

TEST(Product, SumsInFp32InTheBackwardPassToo) {
  constexpr int64_t kTerms = 4001;
  const at::Tensor a = at::ones({5, 3}, at::kHalf).requires_grad_(true);
  const at::Tensor b = at::ones({3, kTerms}, at::kHalf).requires_grad_(true);
  const at::Tensor dy = RisingAndFalling(5, kTerms, 3, at::kHalf);
  const std::vector<at::Tensor> gradients = grad({Product(a, b)}, {a, b}, {dy});
  EXPECT_EQ(gradients[0].scalar_type(), at::kHalf);
  EXPECT_EQ(Ints(gradients[0].flatten()), std::vector<int64_t>(5 * 3, -3));
  EXPECT_TRUE(gradients[1].equal(5 * dy.narrow(0, 0, 3)));
}

TEST(BiasedProduct, SumsTheGradientOfABiasInFp32) {
  constexpr int64_t kTerms = 4001;
  const at::Tensor x = at::ones({kTerms, 3}, at::kHalf);
  const at::Tensor weight = at::ones({3, 5}, at::kHalf).requires_grad_(true);
  const at::Tensor bias = at::ones({5}, at::kHalf).requires_grad_(true);
  const at::Tensor dy = RisingAndFalling(5, kTerms, 12288, at::kHalf).t();
  const std::vector<at::Tensor> gradients = grad({BiasedProduct(x, weight, bias)}, {weight, bias}, {dy});
  EXPECT_EQ(gradients[1].scalar_type(), at::kHalf);
  EXPECT_EQ(Ints(gradients[0].flatten()), std::vector<int64_t>(3 * 5, -12288));
  EXPECT_EQ(Ints(gradients[1]), std::vector<int64_t>(5, -12288));
}

// 2049 + 1: fp16 knows every second integer there, and would make 2048 of 2049, and of 2048 + 1.
TEST(BiasedProduct, RoundsTheProductAndTheBiasTogether) {
  const at::Tensor x = at::ones({2, 3, 2049}, at::kHalf), weight = at::ones({2049, 4}, at::kHalf);
  const at::Tensor y = BiasedProduct(x, weight, at::ones({4}, at::kHalf));
  EXPECT_EQ(y.scalar_type(), at::kHalf);
  EXPECT_EQ(Ints(y.flatten()), std::vector<int64_t>(2 * 3 * 4, 2050));
  EXPECT_EQ(Ints(BiasedProduct(x, weight, at::zeros({4}, at::kHalf)).flatten()), std::vector<int64_t>(2 * 3 * 4, 2048));
}

}  // namespace
}  // namespace plumbline::conformance::torch_eager
