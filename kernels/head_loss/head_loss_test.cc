// SPDX-License-Identifier: Apache-2.0
// Loss and gradient at the head against the definition, with many ties among the logits.
#include "kernels/head_loss/head_loss.h"

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cstdint>

#include "kernels/testing/sizes.h"

namespace plumbline::kernels {
namespace {

using testing::Guarded;

TEMPLATE_TEST_CASE("LossAndGradientEqualTheDefinitionWithTies", "", float, BFloat16, Float16) {
  constexpr int64_t kTokensOfBatch = 64;
  constexpr float kLossScale = 16;
  for (const int64_t vocab : {1, 2, 3, 7, 16, 17, 31}) {
    for (const int64_t tokens : {0, 1, 5, 33}) {
      testing::Integers integers(vocab * 100 + tokens);
      const std::vector<double> logits = integers.Vector(tokens * vocab, -3, 3);  // few values: ties everywhere
      std::vector<int32_t> label(tokens), weight(tokens);
      for (int64_t i = 0; i < tokens; ++i) {
        label[i] = static_cast<int32_t>(integers.In(0, vocab - 1));
        weight[i] = static_cast<int32_t>(std::array{0, 1, 5}[integers.In(0, 2)] * kTokensOfBatch);
      }
      double expected_loss = 0;
      std::vector<double> expected(tokens * vocab, 0.0);
      for (int64_t i = 0; i < tokens; ++i) {
        const auto row = logits.begin() + i * vocab;
        const int64_t best = std::max_element(row, row + vocab) - row;  // the first of equal ones
        const double scale = static_cast<double>(weight[i]) / kTokensOfBatch;
        expected_loss += scale * (row[best] - row[label[i]]);
        if (best != label[i]) {
          expected[i * vocab + best] = kLossScale * scale;
          expected[i * vocab + label[i]] = -kLossScale * scale;
        }
      }
      Guarded<TestType> dlogits(tokens * vocab, 3);
      const double loss = HeadLoss<TestType>(vocab, Guarded<TestType>(logits, 1).view(), label, weight,
                                             1.0f / kTokensOfBatch, kLossScale, dlogits.span());
      REQUIRE(loss == expected_loss);
      REQUIRE(dlogits.Values() == expected);
      REQUIRE(dlogits.GuardsAreIntact());
    }
  }
}

TEST_CASE("HeadLossRefusesLabelsOutsideTheVocabularyAndWrongSizes") {
  std::vector<float> logits(6), dlogits(6), short_logits(5);
  const std::vector<int32_t> weight = {1, 1};
  for (const int32_t bad : {-1, 3}) {
    const std::vector<int32_t> label = {0, bad};
    REQUIRE_THROWS_WITH(HeadLoss<float>(3, logits, label, weight, 1, 1, dlogits), Catch::Contains("vocabulary"));
  }
  const std::vector<int32_t> label = {0, 1};
  REQUIRE_THROWS_WITH(HeadLoss<float>(3, short_logits, label, weight, 1, 1, dlogits),
                      Catch::Contains("size of its shape"));
  REQUIRE_THROWS_WITH(HeadLoss<float>(0, logits, label, weight, 1, 1, dlogits), Catch::Contains("at least 1"));
}

}  // namespace
}  // namespace plumbline::kernels
