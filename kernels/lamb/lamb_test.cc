// SPDX-License-Identifier: Apache-2.0
// Both passes against docs/semantics.md in double, over sizes, offsets, options and update numbers; and sums that have
// the same bits however the tensor is cut.
#include "kernels/lamb/lamb.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>

#include "kernels/testing/reals.h"

namespace plumbline::kernels {
namespace {

using testing::Guarded;
using testing::Reals;
using testing::Within;

constexpr double kUnits = kLambMaxUnits * 0x1p-24;

struct State {
  std::vector<double> gradient, first_moment, second_moment, master;
};

State MakeState(int64_t size, double gradient_size) {
  Reals reals(1);
  State state{reals.Vector<float>(size, -gradient_size, gradient_size),
              reals.Vector<float>(size, -gradient_size, gradient_size), reals.Vector<float>(size, 0, 1),
              reals.Vector<float>(size, -1, 1)};
  for (double& v : state.second_moment) v = static_cast<float>(v * gradient_size * gradient_size);
  return state;
}

struct Results {
  std::vector<double> first_moment, second_moment, master, weight;
  SquareSum of_master, of_direction;
};

// Both passes on elements [begin, begin + size) of the state. The first counts as the beginning of a tensor.
template <typename T>
Results Run(const LambOptions& options, double ratio, const State& state, int64_t begin, int64_t size, int64_t offset) {
  const auto part = [&](const std::vector<double>& values) {
    return std::vector<double>(values.begin() + begin, values.begin() + begin + size);
  };
  const Guarded<float> gradient(part(state.gradient), offset);
  Guarded<float> m(part(state.first_moment), (offset + 1) % 17), v(part(state.second_moment), (offset + 2) % 17);
  Guarded<float> p(part(state.master), (offset + 3) % 17);
  Guarded<T> weight(size, (offset + 4) % 17);
  Results results;
  LambMoments(options, 0, gradient.view(), m.span(), v.span(), p.view(), results.of_master, results.of_direction);
  REQUIRE(p.Values() == part(state.master));
  LambStep<T>(options, ratio, m.view(), v.view(), p.span(), weight.span());
  REQUIRE((m.GuardsAreIntact() && v.GuardsAreIntact() && p.GuardsAreIntact() && weight.GuardsAreIntact()));
  results.first_moment = m.Values(), results.second_moment = v.Values();
  results.master = p.Values(), results.weight = weight.Values();
  return results;
}

// One element by the text of docs/semantics.md; adds its squares and what they may differ by.
struct Expected {
  long double of_master = 0, of_direction = 0;
  double bound = 0;  // of the latter

  void CheckElement(const LambOptions& o, double ratio, const State& state, const Results& results, int64_t i) {
    const auto t = static_cast<double>(o.t);
    const double g = o.gradient_scale * state.gradient[i], p = state.master[i];
    const double m = o.beta1 * state.first_moment[i] + (1 - o.beta1) * g;
    const double v = o.beta2 * state.second_moment[i] + (1 - o.beta2) * g * g;
    const double denominator = std::sqrt(v / (1 - std::pow(o.beta2, t))) + o.epsilon;
    const double u = m / (1 - std::pow(o.beta1, t)) / denominator + o.weight_decay * p;
    const double m_magnitude = std::abs(o.beta1 * state.first_moment[i]) + std::abs((1 - o.beta1) * g);
    const double u_magnitude = m_magnitude / (1 - std::pow(o.beta1, t)) / denominator + std::abs(o.weight_decay * p);
    INFO("t " << o.t << ", g " << g << ", m " << state.first_moment[i] << ", v " << state.second_moment[i]);
    REQUIRE(Within(results.first_moment[i], m, kUnits * m_magnitude + 0x1p-148));
    REQUIRE(Within(results.second_moment[i], v, kUnits * v + 0x1p-148));
    REQUIRE(Within(results.master[i], p - o.lr * ratio * u, kUnits * (std::abs(p) + o.lr * ratio * u_magnitude)));
    of_master += static_cast<long double>(p) * p;
    of_direction += static_cast<long double>(u) * u;
    bound += kUnits * u_magnitude * (2 * std::abs(u) + kUnits * u_magnitude) + kSquareSumMaxUnits * 0x1p-53 * u * u;
  }
};

const LambOptions kOptions[] = {
    {},
    {.lr = 0.01, .beta1 = 0.8, .beta2 = 0.95, .epsilon = 1e-6, .weight_decay = 0.1, .t = 2, .gradient_scale = 0.37},
    {.lr = 1, .beta1 = 0, .beta2 = 0, .epsilon = 1e-3, .weight_decay = 0.5, .t = 1, .gradient_scale = 1},
    {.lr = 3e-4, .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-12, .weight_decay = 0.01, .t = 1000, .gradient_scale = 2},
    {.lr = 0, .weight_decay = 0.01, .t = 1000000000}};

TEMPLATE_TEST_CASE("LambKeepsItsDeclaredErrorAtEverySizeAndOffset", "", float, BFloat16, Float16) {
  for (const LambOptions& options : kOptions) {
    for (const double gradient_size : {1.0, 1e-6, 1e-25, 1e15}) {
      for (const double ratio : {0.01, 1.0, 10.0}) {
        const State whole = MakeState(300, gradient_size);
        const Results all = Run<TestType>(options, ratio, whole, 0, 300, 0);
        Expected expected;
        for (int64_t i = 0; i < 300; ++i) {
          expected.CheckElement(options, ratio, whole, all, i);
          REQUIRE(all.weight[i] == ToFloat(FromFloat<TestType>(static_cast<float>(all.master[i]))));
        }
        const auto of_master = static_cast<double>(expected.of_master);
        REQUIRE(Within(all.of_master.Total(), of_master, kSquareSumMaxUnits * 0x1p-53 * of_master));
        REQUIRE(Within(all.of_direction.Total(), static_cast<double>(expected.of_direction), expected.bound));
      }
    }
    const State whole = MakeState(300, 1);
    const auto independent = [&](std::vector<double> Results::*quantity) {
      return testing::ResultsAreIndependentOfPlacement([&](int64_t begin, int64_t size, int64_t offset) {
        return Run<TestType>(options, 0.7, whole, begin, size, offset).*quantity;
      });
    };
    REQUIRE(independent(&Results::first_moment));
    REQUIRE(independent(&Results::second_moment));
    REQUIRE(independent(&Results::master));
    REQUIRE(independent(&Results::weight));
  }
}

// m = 0.5 * 4 + 0.5 * 1.5 = 2.75 and v = 0.75 * 20 + 0.25 * 2.25 = 15.5625 as in AdamW's test; at t = 2 the corrections
// are 3/4 and 7/16, and the decay of 0.25 adds 0.5 to u.
TEST_CASE("LambAddsTheDecayToWhatTheMomentsGiveAndScalesBoth") {
  std::vector<float> gradient = {3}, m = {4}, v = {20}, p = {2}, w = {0};
  SquareSum of_master, of_direction;
  const LambOptions options{
      .lr = 0.5, .beta1 = 0.5, .beta2 = 0.75, .epsilon = 1, .weight_decay = 0.25, .t = 2, .gradient_scale = 0.5};
  LambMoments(options, 64, gradient, m, v, p, of_master, of_direction);
  REQUIRE((m[0] == 2.75f && v[0] == 15.5625f && p[0] == 2 && of_master.Total() == 4));
  const double u = (2.75 / 0.75) / (std::sqrt(15.5625 * 16 / 7) + 1) + 0.5;
  REQUIRE(Within(of_direction.Total(), u * u, 1e-6));
  LambStep<float>(options, 3, m, v, p, std::span(w));
  REQUIRE(Within(p[0], 2 - 0.5 * 3 * u, 1e-6));
  REQUIRE((w[0] == p[0] && m[0] == 2.75f && v[0] == 15.5625f));
}

TEST_CASE("LambSumsHaveTheSameBitsForEveryCutAlsoBeyondABlock") {
  constexpr int64_t kSize = 2500;
  const State state = MakeState(kSize, 1);
  const std::vector<float> gradient(state.gradient.begin(), state.gradient.end());
  const std::vector<float> master(state.master.begin(), state.master.end());
  const auto sums = [&](const std::vector<int64_t>& cuts) {
    std::vector<float> m(state.first_moment.begin(), state.first_moment.end());
    std::vector<float> v(state.second_moment.begin(), state.second_moment.end());
    SquareSum of_master, of_direction;
    for (size_t i = 0; i + 1 < cuts.size(); ++i) {
      const auto part = [&](auto& values) { return std::span(values).subspan(cuts[i], cuts[i + 1] - cuts[i]); };
      LambMoments({.weight_decay = 0.1, .t = 3}, cuts[i], part(gradient), part(m), part(v), part(master), of_master,
                  of_direction);
    }
    return std::pair(of_master.terms, of_direction.terms);
  };
  const auto whole = sums({0, kSize});
  REQUIRE(whole.second != SquareSum().terms);
  REQUIRE(sums({0, 32, 1056, 1088, kSize}) == whole);
  REQUIRE(sums({0, 1024, 2048, 2048, kSize}) == whole);
}

TEST_CASE("ZerosGiveLambADirectionOfZeroAndNanReachesTheSumAndItsElement") {
  std::vector<float> zero = {0, 0}, m = {0, 0}, v = {0, 0}, p = {0, 0};
  SquareSum of_master, of_direction;
  LambMoments({.weight_decay = 0.5}, 0, zero, m, v, p, of_master, of_direction);
  REQUIRE((of_master.Total() == 0 && of_direction.Total() == 0));
  std::vector<float> gradient = {1, NAN};
  std::vector<BFloat16> w(2);
  LambMoments({}, 0, gradient, m, v, p, of_master, of_direction);
  LambStep<BFloat16>({}, 1, m, v, p, std::span(w));
  REQUIRE((of_master.AllFinite() && std::isnan(of_direction.Total())));
  REQUIRE((std::isnan(p[1]) && std::isnan(ToFloat(w[1])) && p[0] < 0));
}

TEST_CASE("AWeightThatFp16CannotHoldIsInfiniteOrSubnormalAndItsMasterIsNot") {
  std::vector<float> m(3), v(3), p = {70000, -70000, 1e-6f};
  std::vector<Float16> w(3);
  LambStep<Float16>({.lr = 0}, 1, m, v, p, std::span(w));
  REQUIRE(p == std::vector<float>{70000, -70000, 1e-6f});
  REQUIRE((ToFloat(w[0]) == INFINITY && ToFloat(w[1]) == -INFINITY && ToFloat(w[2]) == 17 * 0x1p-24f));
}

TEST_CASE("LambRefusesSizesAndOptions") {
  std::vector<float> a(3), b(3), c(3), d(3), e(4);
  SquareSum s, u;
  REQUIRE_THROWS_WITH(LambMoments({}, 0, a, b, c, e, s, u), Catch::Contains("same size"));
  REQUIRE_THROWS_WITH(LambMoments({}, 8, a, b, c, d, s, u), Catch::Contains("multiple of 32"));
  REQUIRE_THROWS_WITH(LambMoments({.t = 0}, 0, a, b, c, d, s, u), Catch::Contains("at least 1"));
  REQUIRE_THROWS_WITH(LambMoments({.beta1 = 1}, 0, a, b, c, d, s, u), Catch::Contains("[0, 1)"));
  REQUIRE_THROWS_WITH(LambStep<float>({}, 1, a, b, c, std::span(e)), Catch::Contains("same size"));
  REQUIRE_THROWS_WITH(LambStep<float>({.beta2 = -1}, 1, a, b, c, std::span(d)), Catch::Contains("[0, 1)"));
  REQUIRE_THROWS_WITH(LambStep<float>({.epsilon = -1}, 1, a, b, c, std::span(d)), Catch::Contains("epsilon"));
}

}  // namespace
}  // namespace plumbline::kernels
