// SPDX-License-Identifier: Apache-2.0
// The update against docs/semantics.md in double, over sizes, offsets and options; the sign next to 0 and at it.
#include "kernels/lion/lion.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>

#include "kernels/testing/reals.h"

namespace plumbline::kernels {
namespace {

using testing::Guarded;
using testing::Reals;
using testing::Within;

constexpr double kUnits = kLionMaxUnits * 0x1p-24;

struct State {
  std::vector<double> gradient, moment, master;
};

struct Results {
  std::vector<double> moment, master, weight;
};

template <typename T>
Results Run(const LionOptions& options, const State& state, int64_t begin, int64_t size, int64_t offset) {
  const auto part = [&](const std::vector<double>& values) {
    return std::vector<double>(values.begin() + begin, values.begin() + begin + size);
  };
  const Guarded<float> gradient(part(state.gradient), offset);
  Guarded<float> m(part(state.moment), (offset + 1) % 17), p(part(state.master), (offset + 2) % 17);
  Guarded<T> weight(size, (offset + 3) % 17);
  LionStep<T>(options, gradient.view(), m.span(), p.span(), weight.span());
  REQUIRE((m.GuardsAreIntact() && p.GuardsAreIntact() && weight.GuardsAreIntact()));
  return {m.Values(), p.Values(), weight.Values()};
}

double Sign(double value) { return value > 0 ? 1 : value < 0 ? -1 : 0; }

// One element by the text of docs/semantics.md. No input here has an argument of the sign that is nearly 0.
void CheckElement(const LionOptions& o, const State& state, const Results& results, int64_t i) {
  const double g = o.gradient_scale * state.gradient[i];
  const double m = state.moment[i];
  const double c = o.beta1 * m + (1 - o.beta1) * g;
  INFO("g " << g << ", m " << m << ", c " << c);
  REQUIRE(std::abs(c) > kLionSignUnits * 0x1p-53 * (std::abs(o.beta1 * m) + std::abs((1 - o.beta1) * g)));
  const double p = state.master[i] * (1 - o.lr * o.weight_decay) - o.lr * Sign(c);
  REQUIRE(Within(results.master[i], p, kUnits * (std::abs(state.master[i]) + o.lr)));
  const double magnitude = std::abs(o.beta2 * m) + std::abs((1 - o.beta2) * g);
  REQUIRE(Within(results.moment[i], o.beta2 * m + (1 - o.beta2) * g, kUnits * magnitude + 0x1p-148));
}

const LionOptions kOptions[] = {{},
                                {.lr = 0.25, .beta1 = 0.5, .beta2 = 0.75, .weight_decay = 0.5, .gradient_scale = 0.3},
                                {.lr = 1e-4, .beta1 = 0.95, .beta2 = 0.98, .weight_decay = 1, .gradient_scale = 2},
                                {.lr = 1, .beta1 = 0, .beta2 = 0},
                                {.lr = 0, .weight_decay = 0.1}};

TEMPLATE_TEST_CASE("LionKeepsItsDeclaredErrorAtEverySizeAndOffset", "", float, BFloat16, Float16) {
  for (const LionOptions& options : kOptions) {
    for (const double gradient_size : {1.0, 1e-6, 1e-38, 1e30}) {
      Reals reals(1);
      const State state{reals.Vector<float>(300, -gradient_size, gradient_size),
                        reals.Vector<float>(300, -gradient_size, gradient_size), reals.Vector<float>(300, -1, 1)};
      const Results all = Run<TestType>(options, state, 0, 300, 0);
      for (int64_t i = 0; i < 300; ++i) {
        CheckElement(options, state, all, i);
        REQUIRE(all.weight[i] == ToFloat(FromFloat<TestType>(static_cast<float>(all.master[i]))));
      }
      const auto independent = [&](std::vector<double> Results::*quantity) {
        return testing::ResultsAreIndependentOfPlacement([&](int64_t begin, int64_t size, int64_t offset) {
          return Run<TestType>(options, state, begin, size, offset).*quantity;
        });
      };
      REQUIRE((independent(&Results::moment) && independent(&Results::master) && independent(&Results::weight)));
    }
  }
}

// c = 0.5 * 4 + 0.5 * 0.5 * g = 2 + 0.25 g: -1, 0, 1 for g = -12, -8, -4. p = 2 * (1 - 0.25 * 0.5) - 0.25 * sign(c),
// and m = 0.75 * 4 + 0.25 * 0.5 * g: made of the old moment, and not what the sign is taken of.
TEST_CASE("LionMovesAgainstTheSignOfTheFirstMixAndKeepsTheSecond") {
  std::vector<float> gradient = {-12, -8, -4}, m = {4, 4, 4}, p = {2, 2, 2}, w(3);
  const LionOptions options{.lr = 0.25, .beta1 = 0.5, .beta2 = 0.75, .weight_decay = 0.5, .gradient_scale = 0.5};
  LionStep<float>(options, gradient, m, p, std::span(w));
  REQUIRE(p == std::vector<float>{2, 1.75f, 1.5f});
  REQUIRE(m == std::vector<float>{1.5f, 2, 2.5f});
  REQUIRE(w == p);
}

TEST_CASE("AZeroOfEitherSignMovesNothingAndTheSmallestNumberMovesByTheRate") {
  const float tiny = 0x1p-149f;
  std::vector<float> gradient = {0, -0.0f, -0.0f, tiny, -tiny, 0}, m = {0, 0, -0.0f, 0, 0, -tiny};
  std::vector<float> p(6, 3), w(6);
  LionStep<float>({.lr = 0.5}, gradient, m, p, std::span(w));
  REQUIRE(p == std::vector<float>{3, 3, 3, 2.5f, 3.5f, 3.5f});
}

// 0.1f is above 0.1 and -0.9f above -0.9, both by 2^-24 at most: c is some 1e-9, far below what float would keep of it.
TEST_CASE("TheSignIsRightWhereFloatWouldLoseIt") {
  const float m = 0.1f, g = -0.9f;
  const double c = 0.9 * static_cast<double>(m) + (1 - 0.9) * static_cast<double>(g);
  REQUIRE((std::abs(c) < 1e-8 && c != 0));
  std::vector<float> gradient = {g, -g}, moment = {m, -m}, p = {0, 0}, w(2);
  LionStep<float>({.lr = 1}, gradient, moment, p, std::span(w));
  REQUIRE((p[0] == -Sign(c) && p[1] == Sign(c)));
}

TEST_CASE("ANumberThatIsNoneReachesTheWeightsAndNoOtherElement") {
  std::vector<float> gradient = {1, NAN, 1, 1}, m = {0, 0, NAN, 0}, p = {0, 0, 0, 0};
  std::vector<BFloat16> w(4);
  LionStep<BFloat16>({}, gradient, m, p, std::span(w));
  for (const int i : {1, 2}) REQUIRE((std::isnan(m[i]) && std::isnan(p[i]) && std::isnan(ToFloat(w[i]))));
  REQUIRE((p[0] == p[3] && p[0] < 0));
}

TEST_CASE("LionWritesTheWeightOverTheMasterWhereTheyAreTheSame") {
  std::vector<float> gradient = {1, -2}, m = {0, 0}, p = {1, 1};
  LionStep<float>({.lr = 0.5}, gradient, m, p, std::span(p));
  REQUIRE(p == std::vector<float>{0.5f, 1.5f});
}

TEST_CASE("AWeightThatFp16CannotHoldIsInfiniteOrSubnormalAndItsMasterIsNot") {
  std::vector<float> gradient(3), m(3), p = {70000, -70000, 1e-6f};
  std::vector<Float16> w(3);
  LionStep<Float16>({.lr = 0}, gradient, m, p, std::span(w));
  REQUIRE(p == std::vector<float>{70000, -70000, 1e-6f});
  REQUIRE((ToFloat(w[0]) == INFINITY && ToFloat(w[1]) == -INFINITY && ToFloat(w[2]) == 17 * 0x1p-24f));
}

TEST_CASE("LionRefusesSizesAndOptions") {
  std::vector<float> a(3), b(3), c(3), d(4);
  REQUIRE_THROWS_WITH(LionStep<float>({}, a, b, c, std::span(d)), Catch::Contains("same size"));
  REQUIRE_THROWS_WITH(LionStep<float>({}, a, d, b, std::span(c)), Catch::Contains("same size"));
  REQUIRE_THROWS_WITH(LionStep<float>({}, a, b, d, std::span(c)), Catch::Contains("same size"));
  REQUIRE_THROWS_WITH(LionStep<float>({.beta1 = 1}, a, b, c, std::span(c)), Catch::Contains("[0, 1)"));
  REQUIRE_THROWS_WITH(LionStep<float>({.beta2 = -1}, a, b, c, std::span(c)), Catch::Contains("[0, 1)"));
}

}  // namespace
}  // namespace plumbline::kernels
