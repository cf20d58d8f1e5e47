// SPDX-License-Identifier: Apache-2.0
// Where a unit goes in, element by element.
#include "reference/engine/perturbation.h"

#include <gtest/gtest.h>

#include "conformance/contract/error.h"
#include "reference/testing/small_case.h"

namespace plumbline::reference {
namespace {

using contract::Perturbation;

constexpr int64_t kStep = 4;
const std::string kTensor = "pos.weight";

Perturber Make(Perturbation::Kind kind, int64_t index, int64_t delta) {
  return Perturber(Perturbation{kind, kTensor, index, kStep, delta}, kDense);
}

TEST(Perturber, AddsToTheNamedElementOfTheNamedTensorInTheNamedStepOnly) {
  const Matrix values(1, 3, {7, 8, 9});
  const Perturber perturber = Make(Perturbation::Kind::kGradient, 1, -2);
  EXPECT_EQ(perturber.Gradient(kStep, kTensor, values), Matrix(1, 3, {7, 6, 9}));
  EXPECT_EQ(perturber.Gradient(kStep - 1, kTensor, values), values);
  EXPECT_EQ(perturber.Gradient(kStep + 1, kTensor, values), values);
  EXPECT_EQ(perturber.Gradient(kStep, "embed.weight", values), values);
  EXPECT_EQ(perturber.Moment(kStep, kTensor, values), values);
  EXPECT_EQ(perturber.Master(kStep, kTensor, values), values);
  EXPECT_EQ(perturber.Weight(kStep, kTensor, values), values);
  EXPECT_EQ(perturber.CounterOffset(kStep), 0);
}

TEST(Perturber, AddsToTheMoment) {
  EXPECT_EQ(Make(Perturbation::Kind::kMoment, 0, 1).Moment(kStep, kTensor, Matrix(1, 2, {14, 3})),
            Matrix(1, 2, {15, 3}));
}

TEST(Perturber, AddsToTheMasterModuloM) {
  const Matrix master(1, 2, {23, 0});
  EXPECT_EQ(Make(Perturbation::Kind::kMaster, 0, 1).Master(kStep, kTensor, master), Matrix(1, 2, {0, 0}));
  EXPECT_EQ(Make(Perturbation::Kind::kMaster, 1, -1).Master(kStep, kTensor, master), Matrix(1, 2, {23, 23}));
}

TEST(Perturber, AddsToTheWeightOrTakesAwayWhereThatWouldLeaveTheBound) {
  const Matrix weight(1, 3, {-1, 0, 1});
  EXPECT_EQ(Make(Perturbation::Kind::kWeight, 0, 1).Weight(kStep, kTensor, weight), Matrix(1, 3, {0, 0, 1}));
  EXPECT_EQ(Make(Perturbation::Kind::kWeight, 2, 1).Weight(kStep, kTensor, weight), Matrix(1, 3, {-1, 0, 0}));
  EXPECT_EQ(Make(Perturbation::Kind::kWeight, 0, -1).Weight(kStep, kTensor, weight), Matrix(1, 3, {0, 0, 1}));
  EXPECT_THROW(Make(Perturbation::Kind::kWeight, 1, 2).Weight(kStep, kTensor, weight), contract::Error);
}

TEST(Perturber, RaisesTheCounterFromItsStepOn) {
  const Perturber perturber(Perturbation{Perturbation::Kind::kCounter, "", 0, kStep, 3}, kDense);
  EXPECT_EQ(perturber.CounterOffset(kStep - 1), 0);
  EXPECT_EQ(perturber.CounterOffset(kStep), 3);
  EXPECT_EQ(perturber.CounterOffset(kStep + 10), 3);
}

TEST(Perturber, WithoutAPerturbationChangesNothing) {
  const Perturber perturber(std::nullopt, kDense);
  const Matrix values(1, 2, {1, 0});
  EXPECT_EQ(perturber.Gradient(0, kTensor, values), values);
  EXPECT_EQ(perturber.Moment(0, kTensor, values), values);
  EXPECT_EQ(perturber.Master(0, kTensor, values), values);
  EXPECT_EQ(perturber.Weight(0, kTensor, values), values);
  EXPECT_EQ(perturber.CounterOffset(0), 0);
}

TEST(Perturber, RejectsAnIndexOutsideTheTensor) {
  EXPECT_THROW(Make(Perturbation::Kind::kGradient, 2, 1).Gradient(kStep, kTensor, Matrix(1, 2)), contract::Error);
  EXPECT_THROW(Make(Perturbation::Kind::kGradient, -1, 1).Gradient(kStep, kTensor, Matrix(1, 2)), contract::Error);
}

}  // namespace
}  // namespace plumbline::reference
