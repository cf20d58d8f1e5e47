// SPDX-License-Identifier: Apache-2.0
#include "reference/ops/relu.h"

#include <gtest/gtest.h>

#include "conformance/contract/error.h"

namespace plumbline::reference {
namespace {

TEST(Relu, PassesPositiveValuesAndTheirGradientsOnly) {
  const Matrix y(1, 5, {-2, -1, 0, 1, 2});
  EXPECT_EQ(ReluForward(y), Matrix(1, 5, {0, 0, 0, 1, 2}));
  EXPECT_EQ(ReluBackward(Matrix(1, 5, {7, -7, 7, -7, 7}), y), Matrix(1, 5, {0, 0, 0, -7, 7}));
}

TEST(Relu, RejectsUnequalShapes) { EXPECT_THROW(ReluBackward(Matrix(1, 2), Matrix(2, 1)), contract::Error); }

}  // namespace
}  // namespace plumbline::reference
