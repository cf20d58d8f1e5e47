// SPDX-License-Identifier: Apache-2.0
// Where products round, on sums whose partial sums fp16 cannot hold: forward, backward, and the gradient of a bias.
#include "conformance/engines/torch_eager/product.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/variable.h>

#include <cstdint>
#include <utility>
#include <vector>

namespace plumbline::conformance::torch_eager {
namespace {

using torch::autograd::grad;

// As the engine runs. On a loaded machine a second thread makes products of this size wait, not faster.
class OneThread : public testing::Environment {
  void SetUp() override { at::set_num_threads(1); }
};
const testing::Environment* const kOneThread = testing::AddGlobalTestEnvironment(new OneThread);

std::vector<int64_t> Ints(const at::Tensor& x) {
  const at::Tensor values = x.detach().to(at::kLong).contiguous();
  return {values.const_data_ptr<int64_t>(), values.const_data_ptr<int64_t>() + values.numel()};
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
