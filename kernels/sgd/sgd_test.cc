// SPDX-License-Identifier: Apache-2.0
// The update against docs/semantics.md in double, over sizes, offsets, options and update numbers.
#include "kernels/sgd/sgd.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>

#include "kernels/testing/reals.h"

namespace plumbline::kernels {
namespace {

using testing::Guarded;
using testing::Reals;
using testing::Within;

constexpr double kUnits = kSgdMaxUnits * 0x1p-24;

struct State {
  std::vector<double> gradient, buffer, master;
};

struct Results {
  std::vector<double> buffer, master, weight;
};

template <typename T>
Results Run(const SgdOptions& options, const State& state, int64_t begin, int64_t size, int64_t offset) {
  const auto part = [&](const std::vector<double>& values) {
    return std::vector<double>(values.begin() + begin, values.begin() + begin + size);
  };
  const Guarded<float> gradient(part(state.gradient), offset);
  Guarded<float> b(options.momentum > 0 ? part(state.buffer) : std::vector<double>(), (offset + 1) % 17);
  Guarded<float> p(part(state.master), (offset + 2) % 17);
  Guarded<T> weight(size, (offset + 3) % 17);
  SgdStep<T>(options, gradient.view(), b.span(), p.span(), weight.span());
  REQUIRE((b.GuardsAreIntact() && p.GuardsAreIntact() && weight.GuardsAreIntact()));
  return {b.Values(), p.Values(), weight.Values()};
}

const SgdOptions kOptions[] = {
    {},
    {.lr = 0.1, .weight_decay = 0.01, .t = 5, .gradient_scale = 0.3},
    {.lr = 0.1, .momentum = 0.9, .t = 1},
    {.lr = 0.5, .momentum = 0.9, .weight_decay = 0.1, .t = 1, .gradient_scale = 0.7},
    {.lr = 0.5, .momentum = 0.5, .weight_decay = 0.1, .t = 2, .gradient_scale = 0.7},
    {.lr = 0.5, .momentum = 0.6, .nesterov = true, .weight_decay = 0.1, .t = 1},
    {.lr = 0.1, .momentum = 0.9, .nesterov = true, .weight_decay = 0.3, .t = 7, .gradient_scale = 0.7}};

TEMPLATE_TEST_CASE("SgdKeepsItsDeclaredErrorAtEverySizeAndOffset", "", float, BFloat16, Float16) {
  for (const SgdOptions& o : kOptions) {
    Reals reals(1);
    const bool reads_buffer = o.momentum > 0 && o.t > 1;
    const State state{reals.Vector<float>(300, -2, 2),
                      reads_buffer ? reals.Vector<float>(300, -2, 2) : std::vector<double>(300, NAN),
                      reals.Vector<float>(300, -1, 1)};
    const Results all = Run<TestType>(o, state, 0, 300, 0);
    for (int64_t i = 0; i < 300; ++i) {
      const double g = o.gradient_scale * state.gradient[i] + o.weight_decay * state.master[i];
      const double b = reads_buffer ? o.momentum * state.buffer[i] + g : g;
      const double direction = o.nesterov ? g + o.momentum * b : o.momentum > 0 ? b : g;
      const double p = state.master[i] - o.lr * direction;
      const double magnitude = std::abs(o.gradient_scale * state.gradient[i]) +
                               std::abs(o.weight_decay * state.master[i]) +
                               (reads_buffer ? std::abs(o.momentum * state.buffer[i]) : 0);
      if (o.momentum > 0) REQUIRE(Within(all.buffer[i], b, kUnits * magnitude));
      REQUIRE(Within(all.master[i], p,
                     kUnits * (std::abs(state.master[i]) + o.lr * (o.nesterov ? 1 + o.momentum : 1) * magnitude)));
      REQUIRE(all.weight[i] == ToFloat(FromFloat<TestType>(static_cast<float>(all.master[i]))));
    }
    const auto independent = [&](std::vector<double> Results::*quantity) {
      return testing::ResultsAreIndependentOfPlacement([&](int64_t begin, int64_t size, int64_t offset) {
        return Run<TestType>(o, state, begin, size, offset).*quantity;
      });
    };
    REQUIRE((independent(&Results::master) && independent(&Results::weight)));
    if (o.momentum > 0) REQUIRE(independent(&Results::buffer));
  }
}

// g = 3 + 0.5 * 2 = 4. t = 1: b = 4, the step 0.25 * (4 + 0.5 * 4). t = 2: b = 0.5 * 8 + 4 = 8, 0.25 * (4 + 0.5 * 8).
TEST_CASE("NesterovStepsAlongTheGradientAndTheNewMomentum") {
  for (const auto& [t, b_after, p_after] : {std::tuple{1, 4.0f, 0.5f}, std::tuple{2, 8.0f, 0.0f}}) {
    std::vector<float> gradient = {3}, b = {8}, p = {2}, w = {0};
    SgdStep<float>({.lr = 0.25, .momentum = 0.5, .nesterov = true, .weight_decay = 0.5, .t = t}, gradient, b, p,
                   std::span(w));
    REQUIRE((b[0] == b_after && p[0] == p_after && w[0] == p_after));
  }
}

TEST_CASE("SgdPassesNanOnAndMayWriteTheWeightOverTheMaster") {
  std::vector<float> gradient = {1, NAN}, p = {1, 1};
  SgdStep<float>({.lr = 0.5}, gradient, {}, p, std::span(p));
  REQUIRE((p[0] == 0.5f && std::isnan(p[1])));
}

TEST_CASE("AWeightThatFp16CannotHoldIsInfiniteOrSubnormalAndItsMasterIsNot") {
  std::vector<float> gradient(3), p = {70000, -70000, 1e-6f};
  std::vector<Float16> w(3);
  SgdStep<Float16>({.lr = 0}, gradient, {}, p, std::span(w));
  REQUIRE(p == std::vector<float>{70000, -70000, 1e-6f});
  REQUIRE((ToFloat(w[0]) == INFINITY && ToFloat(w[1]) == -INFINITY && ToFloat(w[2]) == 17 * 0x1p-24f));
}

TEST_CASE("SgdRefusesSizesAndOptions") {
  std::vector<float> a(3), b(3), c(3), d(4);
  REQUIRE_THROWS_WITH(SgdStep<float>({}, a, {}, c, std::span(d)), Catch::Contains("same size"));
  REQUIRE_THROWS_WITH(SgdStep<float>({}, a, b, c, std::span(c)), Catch::Contains("empty without momentum"));
  REQUIRE_THROWS_WITH(SgdStep<float>({.momentum = 0.5}, a, {}, c, std::span(c)), Catch::Contains("same size"));
  REQUIRE_THROWS_WITH(SgdStep<float>({.momentum = -1}, a, {}, c, std::span(c)), Catch::Contains("negative"));
  REQUIRE_THROWS_WITH(SgdStep<float>({.nesterov = true}, a, {}, c, std::span(c)), Catch::Contains("needs a momentum"));
  REQUIRE_THROWS_WITH(SgdStep<float>({.t = 0}, a, {}, c, std::span(c)), Catch::Contains("at least 1"));
}

}  // namespace
}  // namespace plumbline::kernels
