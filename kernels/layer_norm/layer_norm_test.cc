// SPDX-License-Identifier: Apache-2.0
// Forward and backward against the formulas in double within the declared errors, the oracle's derivative against
// finite differences, and that a row's result depends on the row alone.
#include "kernels/layer_norm/layer_norm.h"

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

constexpr double kEpsilon = 1e-5;
constexpr float kFloatEpsilon = 1e-5f;
constexpr double kUnit = 0x1p-24;
constexpr int64_t kWidths[] = {1, 2, 3, 7, 15, 16, 17, 31, 33, 64, 97, 211};
constexpr int64_t kRows[] = {0, 1, 2, 5};

struct Inputs {
  LayerNormSizes sizes;
  std::vector<double> x, weight, bias, dy;
};

template <typename T>
Inputs MakeInputs(int64_t rows, int64_t width, double centre, uint64_t stream) {
  Reals reals(stream);
  return {{rows, width},
          reals.Vector<T>(rows * width, centre - 1, centre + 1),
          reals.Vector<T>(width, 0.5, 1.5),
          reals.Vector<T>(width, -0.5, 0.5),
          reals.Vector<T>(rows * width, -1, 1)};
}

struct Statistics {
  double mean = 0, rstd = 0;
};

Statistics NaiveStatistics(const double* x, int64_t width) {
  double mean = 0, variance = 0;
  for (int64_t c = 0; c < width; ++c) mean += x[c] / static_cast<double>(width);
  for (int64_t c = 0; c < width; ++c) variance += (x[c] - mean) * (x[c] - mean) / static_cast<double>(width);
  return {mean, 1 / std::sqrt(variance + kEpsilon)};
}

std::vector<double> NaiveForward(const Inputs& in, const std::vector<double>& x) {
  std::vector<double> y;
  for (int64_t row = 0; row < in.sizes.rows; ++row) {
    const auto [mean, rstd] = NaiveStatistics(&x[row * in.sizes.width], in.sizes.width);
    for (int64_t c = 0; c < in.sizes.width; ++c) {
      y.push_back((x[row * in.sizes.width + c] - mean) * rstd * in.weight[c] + in.bias[c]);
    }
  }
  return y;
}

// From given statistics, as the operation is defined.
std::vector<double> NaiveBackward(const Inputs& in, const std::vector<double>& mean, const std::vector<double>& rstd) {
  const auto width = static_cast<double>(in.sizes.width);
  std::vector<double> dx;
  for (int64_t row = 0; row < in.sizes.rows; ++row) {
    const auto at = [&](int64_t c) { return row * in.sizes.width + c; };
    double average = 0, slope = 0;
    for (int64_t c = 0; c < in.sizes.width; ++c) {
      average += in.dy[at(c)] * in.weight[c] / width;
      slope += in.dy[at(c)] * in.weight[c] * (in.x[at(c)] - mean[row]) * rstd[row] / width;
    }
    for (int64_t c = 0; c < in.sizes.width; ++c) {
      const double n = (in.x[at(c)] - mean[row]) * rstd[row];
      dx.push_back(rstd[row] * (in.dy[at(c)] * in.weight[c] - average - n * slope));
    }
  }
  return dx;
}

template <typename T>
struct Results {
  Results(const Inputs& in, int64_t offset)
      : y(in.sizes.rows * in.sizes.width, offset), mean(in.sizes.rows, offset), rstd(in.sizes.rows, offset) {
    LayerNormForward<T>(in.sizes, Guarded<T>(in.x, offset).view(), Guarded<T>(in.weight, 3).view(),
                        Guarded<T>(in.bias, 1).view(), kFloatEpsilon, y.span(), mean.span(), rstd.span());
  }
  bool GuardsAreIntact() const { return y.GuardsAreIntact() && mean.GuardsAreIntact() && rstd.GuardsAreIntact(); }

  Guarded<T> y;
  Guarded<float> mean, rstd;
};

TEMPLATE_TEST_CASE("LayerNormForwardKeepsItsDeclaredError", "", float, BFloat16, Float16) {
  for (const double centre : {0.0, 3.0, -100.0}) {
    for (const int64_t width : kWidths) {
      for (const int64_t rows : kRows) {
        const Inputs in = MakeInputs<TestType>(rows, width, centre, static_cast<uint64_t>(width));
        const std::vector<double> expected = NaiveForward(in, in.x);
        const Results<TestType> results(in, rows);
        REQUIRE(results.GuardsAreIntact());
        const std::vector<double> y = results.y.Values();
        for (int64_t i = 0; i < rows * width; ++i) {
          const double* row = &in.x[i / width * width];
          const auto [mean, rstd] = NaiveStatistics(row, width);
          double largest = 0;
          for (int64_t c = 0; c < width; ++c) largest = std::max(largest, std::abs(row[c]));
          if (largest * rstd * (static_cast<double>(width) / 16 + 8) > 4096) continue;  // outside of the domain
          const double weight = std::abs(in.weight[i % width]), bias = std::abs(in.bias[i % width]);
          const double magnitude = weight * (largest * rstd + std::abs(in.x[i] - mean) * rstd) + bias;
          const double bound = LayerNormMaxUnits(width) * kUnit * magnitude + Rounding<TestType>(expected[i]) * 1.01;
          REQUIRE(Within(y[i], expected[i], bound));
        }
      }
    }
  }
}

TEMPLATE_TEST_CASE("LayerNormBackwardKeepsItsDeclaredErrorWithAndWithoutResidual", "", float, BFloat16, Float16) {
  for (const double centre : {0.0, 3.0}) {
    for (const int64_t width : kWidths) {
      for (const int64_t rows : kRows) {
        const Inputs in = MakeInputs<TestType>(rows, width, centre, static_cast<uint64_t>(width));
        const Results<TestType> forward(in, 2);
        const std::vector<double> mean = forward.mean.Values(), rstd = forward.rstd.Values();
        const std::vector<double> residual = Reals(77).Vector<TestType>(rows * width, -1, 1);
        const std::vector<double> gradient = NaiveBackward(in, mean, rstd);
        for (const bool has_residual : {false, true}) {
          Guarded<TestType> dx(has_residual ? residual : in.dy, 5);  // in place of one or of the other
          const Guarded<TestType> dy(in.dy, 4), x(in.x, 1), weight(in.weight, 2);
          LayerNormBackward<TestType>(in.sizes, has_residual ? dy.view() : dx.view(), x.view(), weight.view(),
                                      forward.mean.view(), forward.rstd.view(),
                                      has_residual ? dx.view() : std::span<const TestType>(), dx.span());
          REQUIRE(dx.GuardsAreIntact());
          const std::vector<double> values = dx.Values();
          for (int64_t i = 0; i < rows * width; ++i) {
            const int64_t row = i / width;
            double s = 0, g = 0;
            for (int64_t c = 0; c < width; ++c) {
              s = std::max(s, (std::abs(in.x[row * width + c]) + std::abs(mean[row])) * rstd[row]);
              g = std::max(g, std::abs(in.dy[row * width + c] * in.weight[c]));
            }
            const double around = has_residual ? residual[i] : 0;
            const double expected = gradient[i] + around;
            const double magnitude = rstd[row] * g * (1 + s) * (1 + s) + std::abs(around);
            const double bound = LayerNormMaxUnits(width) * kUnit * magnitude + Rounding<TestType>(expected) * 1.01;
            REQUIRE(Within(values[i], expected, bound));
          }
        }
      }
    }
  }
}

TEMPLATE_TEST_CASE("LayerNormWeightGradientsAreAddedWithinTheirDeclaredError", "", float, BFloat16, Float16) {
  for (const int64_t width : kWidths) {
    for (const int64_t rows : kRows) {
      const Inputs in = MakeInputs<TestType>(rows, width, 0.5, static_cast<uint64_t>(rows));
      const Results<TestType> forward(in, 2);
      const std::vector<double> mean = forward.mean.Values(), rstd = forward.rstd.Values();
      const std::vector<double> before = Reals(5).Vector<float>(width, -2, 2);
      Guarded<float> dweight(before, 6), dbias(before, 7), only_weight(before, 1), only_bias(before, 3);
      const Guarded<TestType> dy(in.dy, 4), x(in.x, 1);
      const auto run = [&](std::span<float> weight_sum, std::span<float> bias_sum) {
        LayerNormWeightBackward<TestType>(in.sizes, dy.view(), x.view(), forward.mean.view(), forward.rstd.view(),
                                          weight_sum, bias_sum);
      };
      run(dweight.span(), dbias.span());
      run(only_weight.span(), {});
      run({}, only_bias.span());
      REQUIRE((dweight.GuardsAreIntact() && dbias.GuardsAreIntact()));
      REQUIRE((only_weight.Values() == dweight.Values() && only_bias.Values() == dbias.Values()));
      for (int64_t c = 0; c < width; ++c) {
        double weight_sum = before[c], bias_sum = before[c];
        double weight_magnitude = std::abs(before[c]), bias_magnitude = weight_magnitude;
        for (int64_t row = 0; row < rows; ++row) {
          const double upstream = in.dy[row * width + c], value = in.x[row * width + c];
          weight_sum += upstream * (value - mean[row]) * rstd[row];
          weight_magnitude += std::abs(upstream) * (std::abs(value) + std::abs(mean[row])) * rstd[row];
          bias_sum += upstream;
          bias_magnitude += std::abs(upstream);
        }
        const double units = LayerNormWeightGradientMaxUnits(rows) * kUnit;
        REQUIRE(Within(dweight.Values()[c], weight_sum, units * weight_magnitude));
        REQUIRE(Within(dbias.Values()[c], bias_sum, units * bias_magnitude));
      }
    }
  }
}

TEST_CASE("TheOraclesBackwardIsTheDerivativeOfItsForward") {
  for (const int64_t width : {1, 2, 5, 17}) {
    const Inputs in = MakeInputs<float>(2, width, 1, static_cast<uint64_t>(width));
    std::vector<double> mean, rstd;
    for (int64_t row = 0; row < 2; ++row) {
      const Statistics statistics = NaiveStatistics(&in.x[row * width], width);
      mean.push_back(statistics.mean);
      rstd.push_back(statistics.rstd);
    }
    const std::vector<double> dx = NaiveBackward(in, mean, rstd);
    const auto objective = [&](int64_t i, double change) {
      std::vector<double> x = in.x;
      x[i] += change;
      const std::vector<double> y = NaiveForward(in, x);
      double sum = 0;
      for (size_t k = 0; k < y.size(); ++k) sum += in.dy[k] * y[k];
      return sum;
    };
    for (int64_t i = 0; i < 2 * width; ++i) {
      REQUIRE(Within(dx[i], (objective(i, 1e-5) - objective(i, -1e-5)) / 2e-5, 1e-7));
    }
  }
}

TEMPLATE_TEST_CASE("ARowsResultDependsNeitherOnItsPlaceNorOnOtherRows", "", float, BFloat16, Float16) {
  for (const int64_t width : {1, 5, 16, 33}) {
    const Inputs in = MakeInputs<TestType>(7, width, 0, 1);
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

TEST_CASE("LayerNormPassesNanOnWithinItsRowAndTakesConstantAndTinyRows") {
  for (const double bad : {static_cast<double>(NAN), static_cast<double>(INFINITY)}) {
    Inputs in = MakeInputs<float>(3, 33, 0, 1);
    in.x[33 + 20] = bad;
    const std::vector<double> y = Results<float>(in, 0).y.Values();
    for (int64_t i = 0; i < 99; ++i) REQUIRE(std::isnan(y[i]) == (i / 33 == 1));
  }
  Inputs constant = MakeInputs<float>(1, 16, 0, 1);
  constant.x.assign(16, 2.0);
  REQUIRE(Results<float>(constant, 0).y.Values() == constant.bias);
  constant.x.assign(16, 1e-40);
  const std::vector<double> tiny = Results<float>(constant, 0).y.Values();
  for (int64_t c = 0; c < 16; ++c) REQUIRE(Within(tiny[c], constant.bias[c], 1e-30));
}

TEST_CASE("InFp16LayerNormKeepsSubnormalNumbersAndOverflowsToInfinity") {
  constexpr int64_t kRowsHere = 5, kWidth = 33;
  testing::Float16Extremes forward, backward;
  for (const double size : {1e-6, 60000.0}) {
    Inputs in = MakeInputs<Float16>(kRowsHere, kWidth, 0, 1);
    in.weight = Reals(2).Vector<Float16>(kWidth, -size, size);
    in.bias = Reals(3).Vector<Float16>(kWidth, -size, size);
    const Results<Float16> results(in, 0);
    const std::vector<double> expected = NaiveForward(in, in.x), y = results.y.Values();
    const std::vector<double> mean = results.mean.Values(), rstd = results.rstd.Values();
    Guarded<Float16> dx(kRowsHere * kWidth, 0);
    LayerNormBackward<Float16>(in.sizes, Guarded<Float16>(in.dy, 0).view(), Guarded<Float16>(in.x, 0).view(),
                               Guarded<Float16>(in.weight, 0).view(), results.mean.view(), results.rstd.view(), {},
                               dx.span());
    const std::vector<double> gradient = NaiveBackward(in, mean, rstd), values = dx.Values();
    for (size_t i = 0; i < y.size(); ++i) {
      const double s = 2 * rstd[i / kWidth];  // |x| <= 1
      REQUIRE(forward.Takes(y[i], expected[i], LayerNormMaxUnits(kWidth) * kUnit * size * (1 + 2 * s)));
      REQUIRE(backward.Takes(values[i], gradient[i],
                             LayerNormMaxUnits(kWidth) * kUnit * rstd[i / kWidth] * size * (1 + s) * (1 + s)));
    }
  }
  REQUIRE((forward.SawBoth() && backward.SawBoth()));
}

TEST_CASE("LayerNormRefusesWrongSizesAndEpsilon") {
  std::vector<float> a(6), w(3), b(3), y(6), mean(2), rstd(2), bad(5);
  REQUIRE_THROWS_WITH((LayerNormForward<float>({2, 3}, bad, w, b, 1e-5f, y, mean, rstd)), Catch::Contains("shape"));
  REQUIRE_THROWS_WITH((LayerNormForward<float>({2, 3}, a, w, b, 0, y, mean, rstd)), Catch::Contains("epsilon"));
  REQUIRE_THROWS_WITH((LayerNormForward<float>({2, 0}, a, w, b, 1, y, mean, rstd)), Catch::Contains("width"));
  REQUIRE_THROWS_WITH((LayerNormBackward<float>({2, 3}, a, a, w, mean, rstd, bad, y)), Catch::Contains("shape"));
  REQUIRE_THROWS_WITH((LayerNormWeightBackward<float>({2, 3}, a, a, mean, rstd, bad, {})), Catch::Contains("shape"));
}

}  // namespace
}  // namespace plumbline::kernels
