// SPDX-License-Identifier: Apache-2.0
// The update against docs/semantics.md in double, over sizes, offsets, options, update numbers and tiny moments.
#include "kernels/adamw/adamw.h"

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

constexpr double kUnits = kAdamWMaxUnits * 0x1p-24;

struct State {
  std::vector<double> gradient, first_moment, second_moment, master;
};

State MakeState(int64_t size, double gradient_size, uint64_t stream) {
  Reals reals(stream);
  State state{reals.Vector<float>(size, -gradient_size, gradient_size),
              reals.Vector<float>(size, -gradient_size, gradient_size), reals.Vector<float>(size, 0, 1),
              reals.Vector<float>(size, -1, 1)};
  for (double& v : state.second_moment) v = static_cast<float>(v * gradient_size * gradient_size);
  return state;
}

State Part(const State& state, int64_t begin, int64_t size) {
  const auto part = [&](const std::vector<double>& values) {
    return std::vector<double>(values.begin() + begin, values.begin() + begin + size);
  };
  return {part(state.gradient), part(state.first_moment), part(state.second_moment), part(state.master)};
}

struct Results {
  std::vector<double> first_moment, second_moment, master, weight;
};

template <typename T>
Results Run(const AdamWOptions& options, const State& state, int64_t offset) {
  const Guarded<float> gradient(state.gradient, offset);
  Guarded<float> m(state.first_moment, (offset + 1) % 17), v(state.second_moment, (offset + 2) % 17);
  Guarded<float> p(state.master, (offset + 3) % 17);
  Guarded<T> weight(static_cast<int64_t>(state.master.size()), (offset + 4) % 17);
  AdamWStep<T>(options, gradient.view(), m.span(), v.span(), p.span(), weight.span());
  REQUIRE((m.GuardsAreIntact() && v.GuardsAreIntact() && p.GuardsAreIntact() && weight.GuardsAreIntact()));
  return {m.Values(), v.Values(), p.Values(), weight.Values()};
}

// One element by the text of docs/semantics.md, and the magnitudes of the declared error.
void CheckElement(const AdamWOptions& o, const State& state, const Results& results, int64_t i) {
  const double added = o.decoupled ? 0 : o.weight_decay * state.master[i];
  const double g = o.gradient_scale * state.gradient[i] + added;
  const double g_magnitude = std::abs(o.gradient_scale * state.gradient[i]) + std::abs(added);
  const double decayed = o.decoupled ? state.master[i] * (1 - o.lr * o.weight_decay) : state.master[i];
  const double m = o.beta1 * state.first_moment[i] + (1 - o.beta1) * g;
  const double v = o.beta2 * state.second_moment[i] + (1 - o.beta2) * g * g;
  const double first_correction = 1 - std::pow(o.beta1, static_cast<double>(o.t));
  const double second_correction = 1 - std::pow(o.beta2, static_cast<double>(o.t));
  const double denominator = std::sqrt(v / second_correction) + o.epsilon;
  const double p = decayed - o.lr * (m / first_correction) / denominator;
  const double magnitude = std::abs(o.beta1 * state.first_moment[i]) + (1 - o.beta1) * g_magnitude;
  const double v_magnitude = o.beta2 * state.second_moment[i] + (1 - o.beta2) * g_magnitude * g_magnitude;
  INFO("t " << o.t << ", g " << g << ", m " << state.first_moment[i] << ", v " << state.second_moment[i]);
  REQUIRE(Within(results.first_moment[i], m, kUnits * magnitude + 0x1p-148));
  REQUIRE(Within(results.second_moment[i], v, kUnits * v_magnitude + 0x1p-148));
  const double cancelled = std::sqrt((1 - o.beta2) / second_correction) * g_magnitude / denominator;
  REQUIRE((o.decoupled || kUnits * cancelled <= 0.5));
  const double step_magnitude = o.lr * (magnitude / first_correction) / denominator * (o.decoupled ? 1 : 1 + cancelled);
  REQUIRE(Within(results.master[i], p, kUnits * (std::abs(state.master[i]) + step_magnitude) + 0x1p-100));
}

const AdamWOptions kOptions[] = {
    {},
    {.lr = 0.01, .beta1 = 0.8, .beta2 = 0.95, .epsilon = 1e-6, .weight_decay = 0.1, .t = 2, .gradient_scale = 0.37},
    {.lr = 1, .beta1 = 0, .beta2 = 0, .epsilon = 1e-3, .weight_decay = 0.5, .t = 1, .gradient_scale = 1},
    {.lr = 3e-4, .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-12, .weight_decay = 0.01, .t = 1000, .gradient_scale = 2},
    {.lr = 0, .weight_decay = 0.01, .t = 1000000000},
    {.lr = 0.01, .weight_decay = 0.1, .decoupled = false},
    {.lr = 0.02,
     .beta1 = 0.8,
     .beta2 = 0.95,
     .epsilon = 1e-6,
     .weight_decay = 0.5,
     .decoupled = false,
     .t = 3,
     .gradient_scale = 0.37}};

TEMPLATE_TEST_CASE("AdamWKeepsItsDeclaredErrorAtEverySizeAndOffset", "", float, BFloat16, Float16) {
  for (const AdamWOptions& options : kOptions) {
    for (const double gradient_size : {1.0, 1e-6, 1e-25, 1e15}) {
      const State whole = MakeState(300, gradient_size, 1);
      const Results all = Run<TestType>(options, whole, 0);
      for (int64_t i = 0; i < 300; ++i) {
        CheckElement(options, whole, all, i);
        REQUIRE(all.weight[i] == ToFloat(FromFloat<TestType>(static_cast<float>(all.master[i]))));
      }
    }
    const State whole = MakeState(300, 1, 2);
    const auto independent = [&](std::vector<double> Results::*quantity) {
      return testing::ResultsAreIndependentOfPlacement([&](int64_t begin, int64_t size, int64_t offset) {
        return Run<TestType>(options, Part(whole, begin, size), offset).*quantity;
      });
    };
    REQUIRE(independent(&Results::first_moment));
    REQUIRE(independent(&Results::second_moment));
    REQUIRE(independent(&Results::master));
    REQUIRE(independent(&Results::weight));
  }
}

TEST_CASE("AdamWFromZeroMomentsMovesByTheLearningRate") {
  // In the first update m / (1 - beta1) = g and v / (1 - beta2) = g^2: the step is lr * sign(g).
  for (const float g : {1e-3f, -1e-3f, 1e3f}) {
    std::vector<float> gradient = {g}, m = {0}, v = {0}, p = {0}, w = {0};
    AdamWStep<float>({.lr = 0.5, .weight_decay = 0}, gradient, m, v, p, std::span(w));
    REQUIRE(Within(p[0], g > 0 ? -0.5 : 0.5, 0.5 * 1.1e-5));
  }
  std::vector<float> zero = {0}, m = {0}, v = {0}, p = {3}, w = {0};
  AdamWStep<float>({.lr = 0.5, .weight_decay = 0.5}, zero, m, v, p, std::span(w));
  REQUIRE((p[0] == 2.25f && w[0] == 2.25f && m[0] == 0 && v[0] == 0));  // an unused parameter decays
}

// g = 0.5 * 3 + 0.25 * 2 = 2, m = 0.5 * 4 + 0.5 * 2 = 3, v = 0.75 * 20 + 0.25 * 4 = 16. At t = 2 the corrections are
// 3/4 and 7/16: the step is 0.5 * 4 / (sqrt(256 / 7) + 1). With decoupled decay g = 1.5, and p * (1 - 0.5 * 0.25) comes
// first.
TEST_CASE("AdamTakesTheDecayThroughBothMoments") {
  std::vector<float> gradient = {3}, m = {4}, v = {20}, p = {2}, w = {0};
  AdamWOptions options{.lr = 0.5,
                       .beta1 = 0.5,
                       .beta2 = 0.75,
                       .epsilon = 1,
                       .weight_decay = 0.25,
                       .decoupled = false,
                       .t = 2,
                       .gradient_scale = 0.5};
  AdamWStep<float>(options, gradient, m, v, p, std::span(w));
  REQUIRE((m[0] == 3 && v[0] == 16 && w[0] == p[0]));
  REQUIRE(Within(p[0], 2 - 2 / (16 / std::sqrt(7.0) + 1), 1e-6));
  m = {4}, v = {20}, p = {2}, options.decoupled = true;
  AdamWStep<float>(options, gradient, m, v, p, std::span(w));
  REQUIRE((m[0] == 2.75f && v[0] == 15.5625f));
  REQUIRE(Within(p[0], 1.75 - 0.5 * (2.75 / 0.75) / (std::sqrt(15.5625 * 16 / 7) + 1), 1e-6));
}

TEST_CASE("AdamWWritesTheWeightOverTheMasterWhereTheyAreTheSame") {
  std::vector<float> gradient = {1, -2}, m = {0, 0}, v = {0, 0}, p = {1, 1}, m2 = m, v2 = v, p2 = p, w = {0, 0};
  AdamWStep<float>({}, gradient, m, v, p, std::span(p));
  AdamWStep<float>({}, gradient, m2, v2, p2, std::span(w));
  REQUIRE((p == w && p == p2));
}

TEST_CASE("AGradientThatIsNotANumberReachesTheWeightsAndNoOtherElement") {
  std::vector<float> gradient = {1, NAN, 1}, m = {0, 0, 0}, v = {0, 0, 0}, p = {0, 0, 0};
  std::vector<BFloat16> w(3);
  AdamWStep<BFloat16>({}, gradient, m, v, p, std::span(w));
  REQUIRE((std::isnan(m[1]) && std::isnan(v[1]) && std::isnan(p[1]) && std::isnan(ToFloat(w[1]))));
  REQUIRE((p[0] == p[2] && p[0] < 0));
}

TEST_CASE("AWeightThatFp16CannotHoldIsInfiniteOrSubnormalAndItsMasterIsNot") {
  std::vector<float> gradient(3), m(3), v(3), p = {70000, -70000, 1e-6f};
  std::vector<Float16> w(3);
  AdamWStep<Float16>({.lr = 0}, gradient, m, v, p, std::span(w));
  REQUIRE(p == std::vector<float>{70000, -70000, 1e-6f});
  REQUIRE((ToFloat(w[0]) == INFINITY && ToFloat(w[1]) == -INFINITY && ToFloat(w[2]) == 17 * 0x1p-24f));
}

TEST_CASE("AdamWRefusesSizesAndOptions") {
  std::vector<float> a(3), b(3), c(3), d(3), e(4);
  REQUIRE_THROWS_WITH(AdamWStep<float>({}, a, b, c, d, std::span(e)), Catch::Contains("same size"));
  REQUIRE_THROWS_WITH(AdamWStep<float>({.t = 0}, a, b, c, d, std::span(d)), Catch::Contains("at least 1"));
  REQUIRE_THROWS_WITH(AdamWStep<float>({.beta1 = 1}, a, b, c, d, std::span(d)), Catch::Contains("[0, 1)"));
  REQUIRE_THROWS_WITH(AdamWStep<float>({.beta2 = -1}, a, b, c, d, std::span(d)), Catch::Contains("[0, 1)"));
  REQUIRE_THROWS_WITH(AdamWStep<float>({.epsilon = -1}, a, b, c, d, std::span(d)), Catch::Contains("epsilon"));
}

}  // namespace
}  // namespace plumbline::kernels
