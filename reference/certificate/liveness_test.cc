// SPDX-License-Identifier: Apache-2.0
#include "reference/certificate/liveness.h"

#include <gtest/gtest.h>

#include "conformance/contract/error.h"

namespace plumbline::reference {
namespace {

TEST(Liveness, IsTheMeanOfTheSharesOfTheSteps) {
  Liveness liveness({"a", "b"});
  const Matrix zeros(1, 4);
  liveness.Note(0, Matrix(1, 4, {1, 0, -2, 3}), zeros, Matrix(1, 4, {0, 0, 1, 0}));
  liveness.Note(0, Matrix(1, 4, {0, 0, 0, 3}), zeros, Matrix(1, 4, {-1, 1, 1, 0}));
  liveness.Note(1, zeros, zeros, zeros);
  const std::vector<contract::Certificate::Liveness> means = liveness.Means();
  ASSERT_EQ(means.size(), 2u);
  EXPECT_EQ(means[0].tensor, "a");
  EXPECT_EQ(means[0].nonzero_gradient_share, 0.5);
  EXPECT_EQ(means[0].moving_weight_share, 0.5);
  EXPECT_EQ(means[1].tensor, "b");
  EXPECT_EQ(means[1].nonzero_gradient_share, 0);
  EXPECT_EQ(means[1].moving_weight_share, 0);
}

TEST(Liveness, IsZeroWithoutSteps) {
  EXPECT_EQ(Liveness({"a"}).Means().at(0).nonzero_gradient_share, 0);
  EXPECT_EQ(Liveness({"a"}).Means().at(0).moving_weight_share, 0);
}

TEST(Liveness, RejectsUnequalShapes) {
  Liveness liveness({"a"});
  EXPECT_THROW(liveness.Note(0, Matrix(1, 2), Matrix(2, 1), Matrix(1, 2)), contract::Error);
}

}  // namespace
}  // namespace plumbline::reference
