// SPDX-License-Identifier: Apache-2.0
// Loss and gradient against log sum exp in double; the oracle's derivative against finite differences; tokens without
// weight.
#include "kernels/cross_entropy/cross_entropy.h"

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
constexpr int64_t kVocabs[] = {1, 2, 3, 7, 15, 16, 17, 33, 97, 211};
constexpr int64_t kTokens[] = {0, 1, 2, 7};

struct Inputs {
  int64_t vocab = 0;
  std::vector<double> logits;
  std::vector<int32_t> label, weight;
  float inverse_tokens = 0;
  float loss_scale = 1;
};

Inputs MakeInputs(int64_t tokens, int64_t vocab, double size) {
  testing::Integers integers(static_cast<uint64_t>(vocab));
  Inputs in{vocab, Reals(static_cast<uint64_t>(tokens)).Vector<float>(tokens * vocab, -size, size), {}, {}};
  for (int64_t i = 0; i < tokens; ++i) {
    in.label.push_back(static_cast<int32_t>(integers.In(0, vocab - 1)));
    in.weight.push_back(static_cast<int32_t>(i % 3 == 1 ? 0 : 1 + i % 2));
  }
  in.inverse_tokens = 1.0f / static_cast<float>(std::max<int64_t>(1, tokens + 3));
  return in;
}

double LogSumExp(const Inputs& in, const std::vector<double>& logits, size_t token) {
  double sum = 0;
  for (int64_t v = 0; v < in.vocab; ++v) sum += std::exp(logits[token * in.vocab + v]);
  return std::log(sum);
}

double Scale(const Inputs& in, size_t token) { return in.weight[token] * static_cast<double>(in.inverse_tokens); }

double NaiveLoss(const Inputs& in, const std::vector<double>& logits) {
  double loss = 0;
  for (size_t i = 0; i < in.label.size(); ++i) {
    loss += Scale(in, i) * (LogSumExp(in, logits, i) - logits[i * in.vocab + in.label[i]]);
  }
  return loss;
}

double NaiveGradient(const Inputs& in, int64_t index) {
  const auto token = static_cast<size_t>(index / in.vocab);
  const double p = std::exp(in.logits[index] - LogSumExp(in, in.logits, token));
  return Scale(in, token) * (p - (index % in.vocab == in.label[token] ? 1 : 0));
}

template <typename T>
std::pair<double, std::vector<double>> Run(const Inputs& in, int64_t offset) {
  Guarded<float> logits(in.logits, offset);
  Guarded<T> dlogits(static_cast<int64_t>(in.logits.size()), (offset + 3) % 7);
  const double loss =
      CrossEntropy<T>(in.vocab, logits.span(), in.label, in.weight, in.inverse_tokens, in.loss_scale, dlogits.span());
  REQUIRE((logits.GuardsAreIntact() && dlogits.GuardsAreIntact()));
  return {loss, dlogits.Values()};
}

TEMPLATE_TEST_CASE("CrossEntropyKeepsItsDeclaredErrorAtEverySizeAndOffset", "", float, BFloat16, Float16) {
  for (const double size : {1.0, 30.0}) {
    for (const int64_t vocab : kVocabs) {
      for (const int64_t tokens : kTokens) {
        const Inputs in = MakeInputs(tokens, vocab, size);
        const auto [loss, dlogits] = Run<TestType>(in, 0);
        double loss_bound = 1e-15;
        for (int64_t i = 0; i < tokens * vocab; ++i) {
          const auto token = static_cast<size_t>(i / vocab);
          const auto [low, high] = std::minmax_element(&in.logits[token * vocab], &in.logits[token * vocab] + vocab);
          const double k = CrossEntropyMaxUnits(vocab, *high - *low) * kUnit;
          const double expected = NaiveGradient(in, i);
          const double onehot = i % vocab == in.label[token] ? 1 : 0;
          const double p = std::exp(in.logits[i] - LogSumExp(in, in.logits, token));
          const double bound = Scale(in, token) * (k * p + kUnit * onehot + 0x1p-125);
          REQUIRE(Within(dlogits[i], expected, bound + 1.01 * Rounding<TestType>(expected)));
          if (in.weight[token] == 0) REQUIRE(dlogits[i] == 0);
          if (i % vocab == 0) loss_bound += Scale(in, token) * k;
        }
        REQUIRE(Within(loss, NaiveLoss(in, in.logits), loss_bound));
        for (int64_t offset = 1; offset < testing::kNumOffsets; ++offset) {
          REQUIRE(Run<TestType>(in, offset) == std::pair(loss, dlogits));
        }
      }
    }
  }
}

TEST_CASE("CrossEntropyWorksInPlace") {
  const Inputs in = MakeInputs(7, 33, 4);
  Guarded<float> memory(in.logits, 5);
  const double loss = CrossEntropy<float>(33, memory.span(), in.label, in.weight, in.inverse_tokens, 1, memory.span());
  REQUIRE(std::pair(loss, memory.Values()) == Run<float>(in, 0));
}

TEST_CASE("TheOraclesGradientIsTheDerivativeOfItsLoss") {
  const Inputs in = MakeInputs(5, 7, 3);
  for (int64_t i = 0; i < 35; ++i) {
    std::vector<double> up = in.logits, down = in.logits;
    up[i] += 1e-5;
    down[i] -= 1e-5;
    REQUIRE(Within(NaiveGradient(in, i), (NaiveLoss(in, up) - NaiveLoss(in, down)) / 2e-5, 1e-8));
  }
}

TEST_CASE("TokensWithoutWeightHaveNoPartAndNanElsewhereShows") {
  for (const float bad : {NAN, INFINITY}) {
    for (int64_t place = 0; place < 33; ++place) {
      Inputs in = MakeInputs(3, 33, 1);  // the second token has weight 0
      const auto good = Run<float>(in, 0);
      in.logits[33 + place] = bad;
      REQUIRE(Run<float>(in, 0) == good);
      in.logits[place] = bad;
      const auto [loss, dlogits] = Run<float>(in, 0);
      REQUIRE(std::isnan(loss));
      for (int64_t i = 0; i < 99; ++i) REQUIRE(std::isnan(dlogits[i]) == (i < 33));
    }
  }
}

TEST_CASE("ALossScaleMovesTheExponentsOfDlogitsAndNothingElse") {
  for (const int exponent : {1, 16, 60, 120}) {
    Inputs in = MakeInputs(7, 17, 1);
    const auto [loss, dlogits] = Run<float>(in, 0);
    in.loss_scale = std::ldexp(1.0f, exponent);
    const auto [scaled_loss, scaled] = Run<float>(in, 0);
    REQUIRE(scaled_loss == loss);
    for (size_t i = 0; i < dlogits.size(); ++i) REQUIRE(scaled[i] == std::ldexp(dlogits[i], exponent));
  }
}

TEST_CASE("InFp16ScaledDlogitsAreInfiniteFrom65520OnAndThoseOfNoWeightAreZeroWithAnyScale") {
  for (const float loss_scale : {1.0f, 0x1p20f, 0x1p126f, INFINITY}) {
    Inputs in = MakeInputs(7, 211, 5);
    in.loss_scale = loss_scale;
    testing::Float16Extremes extremes;
    const auto [loss, dlogits] = Run<Float16>(in, 0);
    REQUIRE(Within(loss, NaiveLoss(in, in.logits), 1e-5));
    for (size_t i = 0; i < dlogits.size(); ++i) {
      if (in.weight[i / 211] == 0) REQUIRE(dlogits[i] == 0);
      if (std::isinf(loss_scale)) continue;
      const double expected = loss_scale * NaiveGradient(in, static_cast<int64_t>(i));
      REQUIRE(extremes.Takes(dlogits[i], expected, loss_scale * CrossEntropyMaxUnits(211, 10) * kUnit));
    }
    if (loss_scale == 0x1p20f) REQUIRE(extremes.SawInfinity());
    if (loss_scale == 1) REQUIRE(extremes.SawSubnormal());
  }
}

TEST_CASE("CrossEntropyTakesLogitsWhoseExponentialsOverflow") {
  Inputs in = MakeInputs(1, 3, 1);
  in.logits = {1e4, 1e4, -1e4};
  in.label = {2};
  const auto [loss, dlogits] = Run<float>(in, 0);
  const double scale = in.inverse_tokens;
  REQUIRE(Within(loss, scale * (2e4 + std::log(2)), 1e-6 * scale * 2e4));
  REQUIRE((Within(dlogits[0], scale / 2, 1e-7) && Within(dlogits[2], -scale, 1e-7)));
}

TEST_CASE("CrossEntropyRefusesWrongSizesAndLabels") {
  std::vector<float> six(6), five(5), out(6);
  const std::vector<int32_t> label = {0, 2}, bad = {0, 3}, negative = {-1, 0}, weight = {1, 1};
  REQUIRE_THROWS_WITH((CrossEntropy<float>(3, five, label, weight, 1, 1, out)), Catch::Contains("shape"));
  REQUIRE_THROWS_WITH((CrossEntropy<float>(3, six, bad, weight, 1, 1, out)), Catch::Contains("vocabulary"));
  REQUIRE_THROWS_WITH((CrossEntropy<float>(3, six, negative, weight, 1, 1, out)), Catch::Contains("vocabulary"));
  REQUIRE_THROWS_WITH((CrossEntropy<float>(0, six, label, weight, 1, 1, out)), Catch::Contains("at least 1"));
}

}  // namespace
}  // namespace plumbline::kernels
