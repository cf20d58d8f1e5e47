// SPDX-License-Identifier: Apache-2.0
// What each event raises, on sums that are worked by hand.
#include "reference/certificate/recorder.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "reference/ops/matmul.h"

namespace plumbline::reference {
namespace {

// The largest values by name, without those that are 0.
std::map<std::string, double> Raised(const Recorder& recorder) {
  std::map<std::string, double> raised;
  for (const auto& [name, quantity] : recorder.quantities())
    if (quantity.max != 0) raised[name] = quantity.max;
  return raised;
}

using Maxima = std::map<std::string, double>;

TEST(Recorder, HasAllSixQuantitiesFromTheStart) {
  const Recorder recorder;
  EXPECT_EQ(recorder.quantities().size(), 6u);
  for (const char* name : {"activation_sum", "gradient_sum", "stored", "fold_input", "gradient", "state"})
    EXPECT_EQ(recorder.quantities().count(name), 1u) << name;
}

TEST(Recorder, AnActivationSumCountsItsTermsAndItsValue) {
  Recorder recorder;
  recorder.BeginStep(3);
  // [1 −2; 3 4] · [5; −6] = [17; −9] with terms 5 + 12 and 15 + 24.
  recorder.ActivationSum(MatMul(Matrix(2, 2, {1, -2, 3, 4}), Matrix(2, 1, {5, -6})), {0, "attn.q"});
  EXPECT_EQ(Raised(recorder), (Maxima{{"activation_sum", 39}, {"stored", 17}}));
  EXPECT_EQ(recorder.quantities().at("activation_sum").where, "layers.0.attn.q, step 3");
}

TEST(Recorder, AWeightGradientCountsItsTermsOnly) {
  Recorder recorder;
  recorder.GradientSum(MatMul(Matrix(1, 2, {1, -2}), Matrix(2, 1, {5, 6})), {.name = "embed.weight"});
  EXPECT_EQ(Raised(recorder), (Maxima{{"gradient_sum", 17}}));
  EXPECT_EQ(recorder.quantities().at("gradient_sum").where, "embed.weight, step 0");
  recorder.Gradient(Matrix(1, 2, {-7, 3}), {.name = "embed.weight"});
  EXPECT_EQ(Raised(recorder), (Maxima{{"gradient_sum", 17}, {"gradient", 7}}));
}

TEST(Recorder, AFoldCountsItsArgumentAndItsBoundUnlessItIsTheIdentity) {
  Recorder recorder;
  recorder.FoldInput(Matrix(1, 2, {3, -20}), Fold::Identity(), {});
  EXPECT_EQ(Raised(recorder), Maxima{});
  recorder.FoldInput(Matrix(1, 2, {3, -20}), Fold::Triangle(4), {});
  EXPECT_EQ(Raised(recorder), (Maxima{{"fold_input", 24}}));
}

TEST(Recorder, StoredAndStateCountAbsoluteValues) {
  Recorder recorder;
  recorder.Stored(Matrix(1, 2, {1, -5}), {});
  recorder.State(Matrix(1, 2, {-14, 9}), {});
  EXPECT_EQ(Raised(recorder), (Maxima{{"stored", 5}, {"state", 14}}));
}

TEST(Recorder, KeepsTheFirstPlaceOfTheLargestValue) {
  Recorder recorder;
  recorder.BeginStep(1);
  recorder.Stored(Matrix(1, 1, {5}), {1, "mlp.up"});
  recorder.BeginStep(2);
  recorder.Stored(Matrix(1, 1, {-5}), {0, "mlp.up"});
  recorder.Stored(Matrix(1, 1, {4}), {0, "mlp.up"});
  EXPECT_EQ(recorder.quantities().at("stored").where, "layers.1.mlp.up, step 1");
}

}  // namespace
}  // namespace plumbline::reference
