// SPDX-License-Identifier: Apache-2.0
// Factors by hand, units of every form against a plain loop, and the same bits for every number of shards.
#include "optimized/engine/unit_clipping.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <mutex>
#include <thread>

#include "optimized/comm/thread_communicator.h"
#include "optimized/partition/bucket_plan.h"

namespace plumbline::optimized {
namespace {

using Values = std::vector<std::vector<float>>;  // of each parameter, whole

contract::AdaptiveClipping Options(double ratio, double eps) {
  return {.kind = contract::AdaptiveClipping::Kind::kUnit, .ratio = ratio, .eps = eps};
}

// What all shards together make of the gradients. A parameter without units keeps NaN.
Values Clip(const contract::AdaptiveClipping& options, const std::vector<UnitForm>& forms, const Values& gradients,
            const Values& masters, int64_t degree) {
  std::vector<int64_t> numels;
  Values clipped;
  for (const UnitForm& form : forms) {
    numels.push_back(form.numel);
    clipped.emplace_back(form.numel, NAN);
  }
  const BucketPlan buckets = PlanBuckets(numels, 100, degree);
  const auto ranks = MakeThreadCommunicators(degree, Progress::kLastArriver);
  std::mutex mutex;
  std::vector<std::jthread> threads;
  for (int64_t rank = 0; rank < degree; ++rank) {
    threads.emplace_back([&, rank] {
      const ShardPlan shard = PlanShard(buckets, degree, rank);
      UnitClipping clipping(options, forms, shard,
                            {degree > 1 ? ranks[rank].get() : nullptr, std::chrono::seconds(20)});
      const auto part_of = [](const Values& values) {
        return [&values](const ShardSlice& s) { return std::span(values[s.parameter]).subspan(s.begin, s.elems()); };
      };
      clipping.Skip();
      clipping.Compute(part_of(masters), part_of(gradients));  // each begins anew
      clipping.Compute(part_of(gradients), part_of(masters));
      const std::lock_guard lock(mutex);
      for (const ShardSlice& s : shard.slices) {
        if (forms[s.parameter].num_units == 0) continue;
        const std::span<float> result = std::span(clipped[s.parameter]).subspan(s.begin, s.elems());
        const int64_t half = s.elems() / 2;  // in two calls, the second of which begins anywhere
        clipping.Clip(s.parameter, s.begin, part_of(gradients)(s).first(half), result.first(half));
        clipping.Clip(s.parameter, s.begin + half, part_of(gradients)(s).subspan(half), result.subspan(half));
      }
    });
  }
  threads.clear();
  return clipped;
}

// ratio 1/2, eps 2. Vector: 10 over 5/2, a factor of 1/4. Rows of [3, 2]: 1 is not over 2/2, 13 is over it (the
// weights' norm of 1 is below eps), 0 stays 0. Columns of [2, 3]: 5 over 10/2 is not over, 10 over 2/2 (weights of 0),
// 4 over 5/2.
TEST(UnitClipping, ScalesUnitsWhoseGradientIsOverTheirShareOfTheWeights) {
  const std::vector<UnitForm> forms = {{2, 1, 2}, {6, 3, 2}, {6, 3, 1}};
  const Values masters = {{3, 4}, {0, 0, 1, 0, 9, 9}, {6, 0, 3, 8, 0, -4}};
  const Values gradients = {{6, 8}, {0, -1, 5, 12, 0, 0}, {3, 6, 0, 4, -8, 4}};
  const Values expected = {{1.5f, 2}, {0, -1, 5 / 13.0f, 12 / 13.0f, 0, 0}, {3, 0.6f, 0, 4, -0.8f, 2.5f}};
  const Values clipped = Clip(Options(0.5, 2), forms, gradients, masters, 1);
  for (size_t p = 0; p < forms.size(); ++p) {
    for (size_t i = 0; i < clipped[p].size(); ++i) EXPECT_NEAR(clipped[p][i], expected[p][i], 1e-6) << p << " " << i;
  }
  EXPECT_EQ(clipped[1][1], -1);
}

std::vector<UnitForm> LargeForms() {
  // Rows of 45, columns of 67 and of 3, a vector, one that is not clipped, rows of 1, and one row.
  return {{13 * 45, 13, 45}, {7 * 67, 67, 1}, {50 * 3, 3, 1}, {130, 1, 130}, {90, 0, 0}, {70, 70, 1}, {77, 1, 77}};
}

Values Fill(const std::vector<UnitForm>& forms, double phase) {
  Values values;
  for (const UnitForm& form : forms) {
    values.emplace_back();
    for (int64_t i = 0; i < form.numel; ++i) {
      const double size = std::exp2(std::fmod(static_cast<double>(i) * 0.37 + phase, 4));
      values.back().push_back(static_cast<float>(size * std::sin(static_cast<double>(i) * 5 + phase)));
    }
  }
  return values;
}

TEST(UnitClipping, FollowsAPlainLoopOverUnitsOfEveryForm) {
  const std::vector<UnitForm> forms = LargeForms();
  const Values gradients = Fill(forms, 1), masters = Fill(forms, 2);
  const contract::AdaptiveClipping options = Options(0.9, 3);
  const Values clipped = Clip(options, forms, gradients, masters, 1);
  int num_scaled = 0, num_kept = 0;
  for (size_t p = 0; p < forms.size(); ++p) {
    const UnitForm& form = forms[p];
    for (int64_t unit = 0; unit < form.num_units; ++unit) {
      const auto is_of_unit = [&](int64_t i) { return i / form.run_elems % form.num_units == unit; };
      double g = 0, w = 0;
      for (int64_t i = 0; i < form.numel; ++i) {
        if (!is_of_unit(i)) continue;
        g += static_cast<double>(gradients[p][i]) * gradients[p][i];
        w += static_cast<double>(masters[p][i]) * masters[p][i];
      }
      const double limit = options.ratio * std::max(std::sqrt(w), options.eps);
      const double factor = std::sqrt(g) > limit ? limit / std::sqrt(g) : 1;
      ++(factor < 1 ? num_scaled : num_kept);
      for (int64_t i = 0; i < form.numel; ++i) {
        if (!is_of_unit(i)) continue;
        const double expected = factor * gradients[p][i];
        ASSERT_NEAR(clipped[p][i], expected, 0x1p-22 * std::abs(expected)) << p << " unit " << unit;
      }
    }
  }
  EXPECT_GT(num_scaled, 20);
  EXPECT_GT(num_kept, 20);
}

TEST(UnitClipping, IsTheSameBitsForEveryNumberOfShards) {
  const std::vector<UnitForm> forms = LargeForms();
  Values gradients = Fill(forms, 1), masters = Fill(forms, 2);
  gradients[0][50] = 1e18f;  // beside 1e-18: sums in double would depend on their order
  gradients[0][60] = 1e-18f;
  const auto bits = [](const Values& values) {
    std::vector<uint32_t> all;
    for (const std::vector<float>& tensor : values) {
      for (const float value : tensor) all.push_back(std::bit_cast<uint32_t>(value));
    }
    return all;
  };
  const auto whole = bits(Clip(Options(0.9, 3), forms, gradients, masters, 1));
  for (const int64_t degree : {2, 3, 5, 8}) {
    EXPECT_EQ(bits(Clip(Options(0.9, 3), forms, gradients, masters, degree)), whole) << degree;
  }
}

// Where everything is frozen or exempt the call is made all the same, of nothing.
TEST(UnitClipping, WithoutAnyUnitChangesNothing) {
  const Values clipped =
      Clip(Options(0.5, 2), {{90, 0, 0}}, {std::vector<float>(90, 5)}, {std::vector<float>(90, 1)}, 3);
  for (const float value : clipped[0]) EXPECT_TRUE(std::isnan(value));
}

}  // namespace
}  // namespace plumbline::optimized
