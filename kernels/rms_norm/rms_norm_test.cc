// SPDX-License-Identifier: Apache-2.0
// Forward and backward against the formulas in double within the declared errors, the oracle's derivative against
// finite differences, and that a row's result depends on the row alone.
#include "kernels/rms_norm/rms_norm.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "kernels/testing/reals.h"

namespace plumbline::kernels {
namespace {

using testing::Guarded;
using testing::Reals;
using testing::Rounding;
using testing::Within;

constexpr float kFloatEpsilon = 1e-3f;  // large enough to be seen: x is of order 1 and below
constexpr double kEpsilon = kFloatEpsilon;
constexpr double kUnit = 0x1p-24;
constexpr int64_t kWidths[] = {1, 2, 3, 7, 15, 16, 17, 31, 33, 64, 97, 211};
constexpr int64_t kRows[] = {0, 1, 2, 5};

struct Inputs {
  RmsNormSizes sizes;
  std::vector<double> x, weight, dy;
};

template <typename T>
Inputs MakeInputs(int64_t rows, int64_t width, double size, uint64_t stream) {
  Reals reals(stream);
  return {{rows, width},
          reals.Vector<T>(rows * width, -size, size),
          reals.Vector<T>(width, 0.5, 1.5),
          reals.Vector<T>(rows * width, -1, 1)};
}

double NaiveRstd(const double* x, int64_t width) {
  double square = 0;
  for (int64_t c = 0; c < width; ++c) square += x[c] * x[c] / static_cast<double>(width);
  return 1 / std::sqrt(square + kEpsilon);
}

std::vector<double> NaiveForward(const Inputs& in, const std::vector<double>& x) {
  std::vector<double> y;
  for (int64_t i = 0; i < in.sizes.rows * in.sizes.width; ++i) {
    const int64_t width = in.sizes.width;
    y.push_back(x[i] * NaiveRstd(&x[i / width * width], width) * in.weight[i % width]);
  }
  return y;
}

// From given statistics, as the operation is defined.
std::vector<double> NaiveBackward(const Inputs& in, const std::vector<double>& rstd) {
  std::vector<double> dx;
  for (int64_t row = 0; row < in.sizes.rows; ++row) {
    const auto at = [&](int64_t c) { return row * in.sizes.width + c; };
    double slope = 0;
    for (int64_t c = 0; c < in.sizes.width; ++c) {
      slope += in.dy[at(c)] * in.weight[c] * in.x[at(c)] * rstd[row] / static_cast<double>(in.sizes.width);
    }
    for (int64_t c = 0; c < in.sizes.width; ++c) {
      dx.push_back(rstd[row] * (in.dy[at(c)] * in.weight[c] - in.x[at(c)] * rstd[row] * slope));
    }
  }
  return dx;
}

template <typename T>
struct Results {
  Results(const Inputs& in, int64_t offset) : y(in.sizes.rows * in.sizes.width, offset), rstd(in.sizes.rows, offset) {
    RmsNormForward<T>(in.sizes, Guarded<T>(in.x, offset).view(), Guarded<T>(in.weight, 3).view(), kFloatEpsilon,
                      y.span(), rstd.span());
  }
  bool GuardsAreIntact() const { return y.GuardsAreIntact() && rstd.GuardsAreIntact(); }

  Guarded<T> y;
  Guarded<float> rstd;
};

TEMPLATE_TEST_CASE("RmsNormForwardKeepsItsDeclaredError", "", float, BFloat16, Float16) {
  for (const double size : {1.0, 0.03, 6e4}) {
    for (const int64_t width : kWidths) {
      for (const int64_t rows : kRows) {
        const Inputs in = MakeInputs<TestType>(rows, width, size, static_cast<uint64_t>(width));
        const std::vector<double> expected = NaiveForward(in, in.x);
        const Results<TestType> results(in, rows);
        REQUIRE(results.GuardsAreIntact());
        const std::vector<double> y = results.y.Values(), rstd = results.rstd.Values();
        for (int64_t i = 0; i < rows * width; ++i) {
          const double units = RmsNormMaxUnits(width) * kUnit;
          REQUIRE(Within(y[i], expected[i], units * std::abs(expected[i]) + Rounding<TestType>(expected[i]) * 1.01));
          const double deviation = NaiveRstd(&in.x[i / width * width], width);
          REQUIRE(Within(rstd[i / width], deviation, units * deviation));
        }
      }
    }
  }
}

TEMPLATE_TEST_CASE("RmsNormWorksInPlace", "", float, BFloat16, Float16) {
  const Inputs in = MakeInputs<TestType>(3, 17, 1, 2);
  Guarded<TestType> x(in.x, 1);
  const Guarded<TestType> weight(in.weight, 2);
  Guarded<float> rstd(3, 0);
  RmsNormForward<TestType>(in.sizes, x.view(), weight.view(), kFloatEpsilon, x.span(), rstd.span());
  REQUIRE(x.Values() == Results<TestType>(in, 0).y.Values());
}

// dy of type From: beside T also float, in which a sum of several products arrives.
template <typename From, typename T>
void CheckBackward(int64_t rows, int64_t width, double size, bool has_residual) {
  Inputs in = MakeInputs<T>(rows, width, size, static_cast<uint64_t>(width));
  in.dy = Reals(9).Vector<From>(rows * width, -1, 1);
  const Results<T> forward(in, 2);
  const std::vector<double> rstd = forward.rstd.Values();
  const std::vector<double> residual = Reals(77).Vector<T>(rows * width, -1, 1);
  const std::vector<double> gradient = NaiveBackward(in, rstd);
  Guarded<T> dx(residual, 5);  // in place of the residual, or of dy where that can be
  const Guarded<From> dy(in.dy, 4);
  const Guarded<T> x(in.x, 1), weight(in.weight, 2);
  std::span<const From> upstream = dy.view();
  if constexpr (std::is_same_v<From, T>) {
    if (!has_residual) {
      std::ranges::copy(dy.view(), dx.span().begin());
      upstream = dx.view();
    }
  }
  RmsNormBackward<From, T>(in.sizes, upstream, x.view(), weight.view(), forward.rstd.view(),
                           has_residual ? dx.view() : std::span<const T>(), dx.span());
  REQUIRE(dx.GuardsAreIntact());
  const std::vector<double> values = dx.Values();
  for (int64_t i = 0; i < rows * width; ++i) {
    const int64_t row = i / width;
    double n = 0, g = 0;
    for (int64_t c = 0; c < width; ++c) {
      n = std::max(n, std::abs(in.x[row * width + c]) * rstd[row]);
      g = std::max(g, std::abs(in.dy[row * width + c] * in.weight[c]));
    }
    const double around = has_residual ? residual[i] : 0;
    const double expected = gradient[i] + around;
    const double magnitude = rstd[row] * g * (1 + n * n) + std::abs(around);
    const double bound = RmsNormBackwardMaxUnits(width) * kUnit * magnitude + Rounding<T>(expected) * 1.01;
    REQUIRE(Within(values[i], expected, bound));
  }
}

TEST_CASE("RmsNormBackwardKeepsItsDeclaredErrorWithAndWithoutResidual") {
  for (const double size : {1.0, 0.03}) {
    for (const int64_t width : kWidths) {
      for (const int64_t rows : kRows) {
        for (const bool has_residual : {false, true}) {
          CheckBackward<float, float>(rows, width, size, has_residual);
          CheckBackward<float, BFloat16>(rows, width, size, has_residual);
          CheckBackward<float, Float16>(rows, width, size, has_residual);
          CheckBackward<BFloat16, BFloat16>(rows, width, size, has_residual);
          CheckBackward<Float16, Float16>(rows, width, size, has_residual);
        }
      }
    }
  }
}

template <typename From, typename T>
void CheckWeightGradient(int64_t rows, int64_t width) {
  Inputs in = MakeInputs<T>(rows, width, 1, static_cast<uint64_t>(rows));
  in.dy = Reals(9).Vector<From>(rows * width, -1, 1);
  const Results<T> forward(in, 2);
  const std::vector<double> rstd = forward.rstd.Values();
  const std::vector<double> before = Reals(5).Vector<float>(width, -2, 2);
  Guarded<float> dweight(before, 6);
  const Guarded<From> dy(in.dy, 4);
  const Guarded<T> x(in.x, 1);
  RmsNormWeightBackward<From, T>(in.sizes, dy.view(), x.view(), forward.rstd.view(), dweight.span());
  REQUIRE(dweight.GuardsAreIntact());
  for (int64_t c = 0; c < width; ++c) {
    double sum = before[c], magnitude = std::abs(before[c]);
    for (int64_t row = 0; row < rows; ++row) {
      const double term = in.dy[row * width + c] * in.x[row * width + c] * rstd[row];
      sum += term;
      magnitude += std::abs(term);
    }
    REQUIRE(Within(dweight.Values()[c], sum, RmsNormWeightGradientMaxUnits(rows) * kUnit * magnitude));
  }
}

TEST_CASE("RmsNormWeightGradientsAreAddedWithinTheirDeclaredError") {
  for (const int64_t width : kWidths) {
    for (const int64_t rows : kRows) {
      CheckWeightGradient<float, float>(rows, width);
      CheckWeightGradient<float, BFloat16>(rows, width);
      CheckWeightGradient<float, Float16>(rows, width);
      CheckWeightGradient<BFloat16, BFloat16>(rows, width);
      CheckWeightGradient<Float16, Float16>(rows, width);
    }
  }
}

TEST_CASE("TheOraclesBackwardIsTheDerivativeOfItsForward") {
  for (const int64_t width : {1, 2, 5, 17}) {
    const Inputs in = MakeInputs<float>(2, width, 0.3, static_cast<uint64_t>(width));
    const std::vector<double> dx =
        NaiveBackward(in, {NaiveRstd(in.x.data(), width), NaiveRstd(in.x.data() + width, width)});
    const auto objective = [&](int64_t i, double change) {
      std::vector<double> x = in.x;
      x[i] += change;
      const std::vector<double> y = NaiveForward(in, x);
      double sum = 0;
      for (size_t k = 0; k < y.size(); ++k) sum += in.dy[k] * y[k];
      return sum;
    };
    for (int64_t i = 0; i < 2 * width; ++i) {
      REQUIRE(Within(dx[i], (objective(i, 1e-5) - objective(i, -1e-5)) / 2e-5, 1e-6));
    }
  }
}

TEMPLATE_TEST_CASE("ARowsResultDependsNeitherOnItsPlaceNorOnOtherRows", "", float, BFloat16, Float16) {
  for (const int64_t width : {1, 5, 16, 33}) {
    const Inputs in = MakeInputs<TestType>(7, width, 1, 1);
    const std::vector<double> whole = Results<TestType>(in, 0).y.Values();
    for (int64_t row = 0; row < 7; ++row) {
      for (int64_t offset = 0; offset < testing::kNumOffsets; ++offset) {
        Inputs one = in;
        one.sizes.rows = 1;
        one.x.assign(&in.x[row * width], &in.x[row * width] + width);
        const std::vector<double> expected(&whole[row * width], &whole[row * width] + width);
        REQUIRE(Results<TestType>(one, offset).y.Values() == expected);
      }
    }
  }
}

TEST_CASE("RmsNormMakesARowNanWhereItCannotBeNormalisedAndTakesZeroAndTinyRows") {
  for (const double bad : {static_cast<double>(NAN), static_cast<double>(INFINITY), 3e38}) {
    Inputs in = MakeInputs<float>(3, 33, 1, 1);
    in.x[33 + 20] = bad;
    const std::vector<double> y = Results<float>(in, 0).y.Values();
    for (int64_t i = 0; i < 99; ++i) REQUIRE(std::isnan(y[i]) == (i / 33 == 1));
  }
  Inputs constant = MakeInputs<float>(1, 16, 1, 1);
  for (const double value : {0.0, 1e-40, 1e-25}) {
    constant.x.assign(16, value);
    const std::vector<double> y = Results<float>(constant, 0).y.Values();
    for (int64_t c = 0; c < 16; ++c) {
      const double expected = value / std::sqrt(kEpsilon) * constant.weight[c];
      REQUIRE(Within(y[c], expected, 1e-6 * expected + 1e-43));
    }
  }
}

TEST_CASE("InFp16RmsNormKeepsSubnormalNumbersAndOverflowsToInfinity") {
  constexpr int64_t kWidth = 33;
  testing::Float16Extremes forward, backward;
  for (const double size : {1e-6, 60000.0}) {
    Inputs in = MakeInputs<Float16>(5, kWidth, 1, 1);
    in.weight = Reals(2).Vector<Float16>(kWidth, -size, size);
    const Results<Float16> results(in, 0);
    const std::vector<double> expected = NaiveForward(in, in.x), y = results.y.Values();
    const std::vector<double> rstd = results.rstd.Values(), gradient = NaiveBackward(in, rstd);
    Guarded<Float16> dx(5 * kWidth, 0);
    RmsNormBackward<Float16, Float16>(in.sizes, Guarded<Float16>(in.dy, 0).view(), Guarded<Float16>(in.x, 0).view(),
                                      Guarded<Float16>(in.weight, 0).view(), results.rstd.view(), {}, dx.span());
    const std::vector<double> values = dx.Values();
    for (size_t i = 0; i < y.size(); ++i) {
      const double n = rstd[i / kWidth];  // |x| <= 1
      REQUIRE(forward.Takes(y[i], expected[i], RmsNormMaxUnits(kWidth) * kUnit * std::abs(expected[i])));
      REQUIRE(backward.Takes(values[i], gradient[i], RmsNormBackwardMaxUnits(kWidth) * kUnit * n * size * (1 + n * n)));
    }
  }
  REQUIRE((forward.SawBoth() && backward.SawBoth()));
}

TEST_CASE("RmsNormRefusesWrongSizesAndEpsilon") {
  std::vector<float> a(6), w(3), y(6), rstd(2), bad(5);
  REQUIRE_THROWS_WITH((RmsNormForward<float>({2, 3}, bad, w, 1e-5f, y, rstd)), Catch::Contains("shape"));
  REQUIRE_THROWS_WITH((RmsNormForward<float>({2, 3}, a, w, 1e-5f, y, w)), Catch::Contains("shape"));
  REQUIRE_THROWS_WITH((RmsNormForward<float>({2, 3}, a, w, 0, y, rstd)), Catch::Contains("epsilon"));
  REQUIRE_THROWS_WITH((RmsNormForward<float>({2, 0}, a, w, 1, y, rstd)), Catch::Contains("width"));
  REQUIRE_THROWS_WITH((RmsNormBackward<float, float>({2, 3}, a, a, w, rstd, bad, y)), Catch::Contains("shape"));
  REQUIRE_THROWS_WITH((RmsNormWeightBackward<float, float>({2, 3}, a, a, rstd, bad)), Catch::Contains("shape"));
}

}  // namespace
}  // namespace plumbline::kernels
