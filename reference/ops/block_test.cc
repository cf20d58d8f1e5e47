// SPDX-License-Identifier: Apache-2.0
#include "reference/ops/block.h"

#include <gtest/gtest.h>

#include "conformance/contract/error.h"
#include "reference/testing/random_matrix.h"

namespace plumbline::reference {
namespace {

TEST(Block, TakesTheRectangleAtItsCorner) {
  const Matrix whole(3, 4, {0, 1, 2, 3, 10, 11, 12, 13, 20, 21, 22, 23});
  EXPECT_EQ(Take(whole, {1, 2, 2, 1}), Matrix(2, 1, {12, 22}));
  EXPECT_EQ(Take(whole, {0, 0, 3, 4}), whole);
  EXPECT_EQ(Take(whole, {3, 4, 0, 0}).numel(), 0);
}

TEST(Block, PutIsTheAdjointOfTake) {
  const Block block{1, 2, 2, 3};
  const Matrix whole = RandomIntegers(1, 4, 7, 9);
  const Matrix part = RandomIntegers(2, 2, 3, 9);
  Matrix spread(4, 7);
  Put(part, block, spread);
  EXPECT_EQ(Inner(Take(whole, block), part), Inner(whole, spread));
  EXPECT_EQ(Take(spread, block), part);
}

TEST(Block, RejectsRectanglesThatStickOut) {
  Matrix whole(3, 4);
  for (const Block& block : {Block{-1, 0, 1, 1}, Block{0, -1, 1, 1}, Block{2, 0, 2, 1}, Block{0, 3, 1, 2}}) {
    EXPECT_THROW(Take(whole, block), contract::Error);
    EXPECT_THROW(Put(Matrix(block.rows, block.cols), block, whole), contract::Error);
  }
  EXPECT_THROW(Put(Matrix(1, 2), Block{0, 0, 2, 1}, whole), contract::Error);
}

}  // namespace
}  // namespace plumbline::reference
