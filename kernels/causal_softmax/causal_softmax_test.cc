// SPDX-License-Identifier: Apache-2.0
// Probabilities and their gradient against sums of exponentials in double; the oracle's derivative against finite
// differences; what a query must not see holds NaN.
#include "kernels/causal_softmax/causal_softmax.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>

#include "kernels/testing/reals.h"

namespace plumbline::kernels {
namespace {

using testing::Guarded;
using testing::Reals;
using testing::Rounding;
using testing::Within;

constexpr double kUnit = 0x1p-24;
constexpr int64_t kPositions[] = {1, 2, 3, 7, 15, 16, 17, 31, 33, 65};
constexpr int64_t kMatrices[] = {0, 1, 3};

bool IsSeen(int64_t i, int64_t positions) { return i % positions <= i / positions % positions; }

std::vector<double> MakeScores(int64_t matrices, int64_t positions, double size) {
  std::vector<double> scores =
      Reals(static_cast<uint64_t>(positions)).Vector<float>(matrices * positions * positions, -size, size);
  for (size_t i = 0; i < scores.size(); ++i) {
    if (!IsSeen(static_cast<int64_t>(i), positions)) scores[i] = NAN;
  }
  return scores;
}

std::vector<double> NaiveForward(int64_t positions, double scale, const std::vector<double>& scores) {
  std::vector<double> p(scores.size(), 0);
  for (int64_t row = 0; row < static_cast<int64_t>(scores.size()) / positions; ++row) {
    double sum = 0;
    for (int64_t b = 0; b <= row % positions; ++b) sum += std::exp(scale * scores[row * positions + b]);
    for (int64_t b = 0; b <= row % positions; ++b) {
      p[row * positions + b] = std::exp(scale * scores[row * positions + b]) / sum;
    }
  }
  return p;
}

std::vector<double> NaiveBackward(int64_t positions, double scale, const std::vector<double>& p,
                                  const std::vector<double>& dp) {
  std::vector<double> ds(p.size(), 0);
  for (int64_t row = 0; row < static_cast<int64_t>(p.size()) / positions; ++row) {
    for (int64_t b = 0; b <= row % positions; ++b) {
      for (int64_t c = 0; c <= row % positions; ++c) {
        const double jacobian = p[row * positions + c] * ((b == c ? 1 : 0) - p[row * positions + b]);
        ds[row * positions + b] += scale * jacobian * dp[row * positions + c];
      }
    }
  }
  return ds;
}

template <typename T>
std::vector<double> Forward(int64_t positions, float scale, const std::vector<double>& scores, int64_t offset) {
  Guarded<float> memory(scores, offset);
  Guarded<T> p(static_cast<int64_t>(scores.size()), (offset + 3) % testing::kNumOffsets);
  CausalSoftmaxForward<T>(positions, scale, memory.span(), p.span());
  REQUIRE((memory.GuardsAreIntact() && p.GuardsAreIntact()));
  return p.Values();
}

TEMPLATE_TEST_CASE("CausalSoftmaxKeepsItsDeclaredErrorAndSeesNoLaterKey", "", float, BFloat16, Float16) {
  for (const double size : {1.0, 20.0, 200.0}) {
    for (const int64_t positions : kPositions) {
      for (const int64_t matrices : kMatrices) {
        const float scale = 0.37f;
        const std::vector<double> scores = MakeScores(matrices, positions, size);
        const std::vector<double> expected = NaiveForward(positions, scale, scores);
        const std::vector<double> p = Forward<TestType>(positions, scale, scores, 0);
        for (size_t i = 0; i < p.size(); ++i) {
          const double bound = CausalSoftmaxMaxUnits(positions, scale * size) * kUnit * expected[i] + 0x1p-125;
          REQUIRE(Within(p[i], expected[i], bound + 1.01 * Rounding<TestType>(expected[i])));
          if (!IsSeen(static_cast<int64_t>(i), positions)) REQUIRE(p[i] == 0);
        }
        for (int64_t offset = 1; offset < testing::kNumOffsets; ++offset) {
          REQUIRE(Forward<TestType>(positions, scale, scores, offset) == p);
        }
      }
    }
  }
}

TEMPLATE_TEST_CASE("CausalSoftmaxBackwardKeepsItsDeclaredError", "", float, BFloat16, Float16) {
  for (const int64_t positions : kPositions) {
    for (const int64_t matrices : kMatrices) {
      const float scale = 0.61f;
      const std::vector<double> p = Forward<TestType>(positions, scale, MakeScores(matrices, positions, 5), 0);
      std::vector<double> dp = Reals(9).Vector<float>(static_cast<int64_t>(p.size()), -2, 2);
      for (size_t i = 0; i < dp.size(); ++i) dp[i] = IsSeen(static_cast<int64_t>(i), positions) ? dp[i] : NAN;
      std::vector<double> first;
      for (int64_t offset = 0; offset < testing::kNumOffsets; ++offset) {
        Guarded<TestType> ds(static_cast<int64_t>(p.size()), (offset + 1) % 13);
        CausalSoftmaxBackward<TestType>(positions, scale, Guarded<TestType>(p, offset).view(),
                                        Guarded<float>(dp, (offset + 2) % 5).view(), ds.span());
        REQUIRE(ds.GuardsAreIntact());
        if (offset == 0) first = ds.Values();
        REQUIRE(ds.Values() == first);
      }
      for (size_t i = 0; i < p.size(); ++i) {
        if (!IsSeen(static_cast<int64_t>(i), positions)) {
          REQUIRE(first[i] == 0);
          continue;
        }
        const size_t row = i / positions * positions;
        double sum = 0, average = 0, magnitude = std::abs(dp[i]);
        for (size_t k = row; k <= row + i / positions % positions; ++k) {
          sum += p[k];
          average += p[k] * dp[k];
          magnitude += p[k] * std::abs(dp[k]);
        }
        average /= sum;
        const double expected = scale * p[i] * (dp[i] - average);
        const double bound = CausalSoftmaxBackwardMaxUnits(positions) * kUnit * scale * p[i] * magnitude;
        REQUIRE(Within(first[i], expected, bound + 1.01 * Rounding<TestType>(expected)));
      }
    }
  }
}

TEST_CASE("CausalSoftmaxBackwardForgetsWhatAllOfARowShare") {
  constexpr int64_t kSize = 33;
  const std::vector<double> p = Forward<BFloat16>(kSize, 1, MakeScores(1, kSize, 2), 0);
  const std::vector<double> shared(kSize * kSize, 1000);
  Guarded<BFloat16> ds(kSize * kSize, 0);
  CausalSoftmaxBackward<BFloat16>(kSize, 1, Guarded<BFloat16>(p, 0).view(), Guarded<float>(shared, 0).view(),
                                  ds.span());
  const std::vector<double> seen = ds.Values();
  for (size_t i = 0; i < p.size(); ++i) {
    REQUIRE(Within(seen[i], 0, CausalSoftmaxBackwardMaxUnits(kSize) * kUnit * p[i] * 2000));
  }
}

TEST_CASE("CausalSoftmaxWorksInPlace") {
  const std::vector<double> scores = MakeScores(2, 17, 3);
  Guarded<float> memory(scores, 1);
  CausalSoftmaxForward<float>(17, 0.5f, memory.span(), memory.span());
  REQUIRE(memory.Values() == Forward<float>(17, 0.5f, scores, 0));
  const std::vector<double> p = memory.Values();
  Guarded<float> gradient(Reals(4).Vector<float>(2 * 17 * 17, -1, 1), 3), other(2 * 17 * 17, 0);
  CausalSoftmaxBackward<float>(17, 0.5f, memory.view(), gradient.view(), other.span());
  CausalSoftmaxBackward<float>(17, 0.5f, memory.view(), gradient.view(), gradient.span());
  REQUIRE(gradient.Values() == other.Values());
}

TEST_CASE("TheOraclesBackwardIsTheDerivativeOfItsForward") {
  for (const int64_t positions : {1, 2, 5}) {
    const int64_t size = positions * positions;
    std::vector<double> scores = Reals(1).Vector<float>(size, -2, 2);
    const std::vector<double> dp = Reals(2).Vector<float>(size, -2, 2);
    const std::vector<double> ds = NaiveBackward(positions, 0.7, NaiveForward(positions, 0.7, scores), dp);
    const auto objective = [&](int64_t i, double change) {
      std::vector<double> changed = scores;
      changed[i] += change;
      const std::vector<double> p = NaiveForward(positions, 0.7, changed);
      double sum = 0;
      for (int64_t k = 0; k < size; ++k) sum += dp[k] * p[k];
      return sum;
    };
    for (int64_t i = 0; i < size; ++i) {
      REQUIRE(Within(ds[i], (objective(i, 1e-5) - objective(i, -1e-5)) / 2e-5, 1e-8));
    }
    // The one-sum form that the test of the operation uses is the same.
    std::vector<float> p32, dp32(dp.begin(), dp.end()), ds32(size);
    for (const double p : NaiveForward(positions, 0.7, scores)) p32.push_back(static_cast<float>(p));
    CausalSoftmaxBackward<float>(positions, 0.7f, p32, dp32, ds32);
    for (int64_t i = 0; i < size; ++i) REQUIRE(Within(ds32[i], ds[i], 1e-6));
  }
}

TEST_CASE("CausalSoftmaxOfSpecialScores") {
  const float inf = INFINITY;
  std::vector<float> scores = {0, 0, 0, -inf, 1, 0, NAN, 0, 0}, p(9);
  CausalSoftmaxForward<float>(3, 1, scores, p);
  REQUIRE((p[0] == 1 && p[3] == 0 && p[4] == 1));
  REQUIRE((std::isnan(p[6]) && std::isnan(p[7]) && std::isnan(p[8])));
  for (const float bad : {inf, NAN}) {
    for (int64_t place = 0; place < 40; ++place) {
      std::vector<float> row(40 * 40), out(40 * 40);
      row[39 * 40 + place] = bad;
      CausalSoftmaxForward<float>(40, 1, row, out);
      for (int64_t i = 0; i < 1600; ++i) REQUIRE(std::isnan(out[i]) == (i >= 39 * 40));
    }
  }
  std::vector<float> nothing = {-inf}, one(1);
  CausalSoftmaxForward<float>(1, 1, nothing, one);
  REQUIRE(std::isnan(one[0]));
  std::vector<float> large = {0, 0, 3e38f, 3.1e38f}, two(4);
  CausalSoftmaxForward<float>(2, 1, large, two);
  REQUIRE((two[2] == 0 && two[3] == 1));
}

TEST_CASE("InFp16ProbabilitiesMayBeSubnormalAndTheirGradientsOverflowToInfinity") {
  constexpr int64_t kSize = 33;
  const std::vector<double> scores = MakeScores(2, kSize, 9), expected = NaiveForward(kSize, 1, scores);
  const std::vector<double> p = Forward<Float16>(kSize, 1, scores, 0);
  testing::Float16Extremes forward, backward;
  for (size_t i = 0; i < p.size(); ++i) {
    REQUIRE(forward.Takes(p[i], expected[i], CausalSoftmaxMaxUnits(kSize, 9) * kUnit * expected[i] + 0x1p-125));
  }
  REQUIRE(forward.SawSubnormal());
  const double size = 1e6;
  const std::vector<double> dp = Reals(9).Vector<float>(static_cast<int64_t>(p.size()), -size, size);
  Guarded<Float16> ds(static_cast<int64_t>(p.size()), 0);
  CausalSoftmaxBackward<Float16>(kSize, 1, Guarded<Float16>(p, 0).view(), Guarded<float>(dp, 0).view(), ds.span());
  const std::vector<double> values = ds.Values();
  for (size_t i = 0; i < p.size(); ++i) {
    if (!IsSeen(static_cast<int64_t>(i), kSize)) continue;
    const size_t row = i / kSize * kSize;
    double sum = 0, average = 0;
    for (size_t k = row; k <= row + i / kSize % kSize; ++k) {
      sum += p[k];
      average += p[k] * dp[k];
    }
    REQUIRE(backward.Takes(values[i], p[i] * (dp[i] - average / sum),
                           CausalSoftmaxBackwardMaxUnits(kSize) * kUnit * p[i] * 2 * size));
  }
  REQUIRE(backward.SawInfinity());
}

TEST_CASE("CausalSoftmaxRefusesWrongSizes") {
  std::vector<float> four(4), nine(9), five(5);
  REQUIRE_THROWS_WITH((CausalSoftmaxForward<float>(2, 1, five, five)), Catch::Contains("multiple"));
  REQUIRE_THROWS_WITH((CausalSoftmaxForward<float>(2, 1, four, nine)), Catch::Contains("same size"));
  REQUIRE_THROWS_WITH((CausalSoftmaxForward<float>(0, 1, four, four)), Catch::Contains("at least 1"));
  REQUIRE_THROWS_WITH((CausalSoftmaxBackward<float>(2, 1, nine, four, four)), Catch::Contains("same size"));
}

}  // namespace
}  // namespace plumbline::kernels
