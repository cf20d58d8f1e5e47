// SPDX-License-Identifier: Apache-2.0
// Whole cases of the real families in many layouts, of which all must give the same bits.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "optimized/engine/testing/case_run.h"
#include "optimized/engine/testing/real_case.h"

namespace plumbline::optimized::testing {

// Otherwise runs that all skip every step would be equal.
inline void ExpectEveryTrainedParameterMovesInEveryStep(const Combined& combined, const contract::CaseData& data) {
  for (int64_t step = 0; step < data.spec.steps; ++step) EXPECT_TRUE(std::isfinite(combined.norms[step])) << step;
  for (int64_t step = 1; step < data.spec.steps; ++step) {
    for (const contract::ParameterSpec& p : data.parameters) {
      const bool has_moved = combined.digests.at({step, contract::TensorKind::kMaster, p.name}) !=
                             combined.digests.at({step - 1, contract::TensorKind::kMaster, p.name});
      EXPECT_EQ(has_moved, !p.frozen) << p.name << " in step " << step;
    }
  }
}

inline Combined RunThatMoves(const Layout& layout, const RealOptions& options) {
  const contract::CaseData data = MakeRealCase(layout, options);
  const Combined combined = Combine(RunInFreshFolders(data), data);
  ExpectEveryTrainedParameterMovesInEveryStep(combined, data);
  return combined;
}

inline std::string FirstDifference(const Combined& a, const Combined& b) {
  if (!SameNumbers(a.losses, b.losses)) return "losses";
  if (!SameNumbers(a.norms, b.norms)) return "norms";
  if (a.digests.size() != b.digests.size()) return "number of tensors";
  for (const auto& [key, digest] : a.digests) {
    if (!b.digests.contains(key) || b.digests.at(key) != digest) {
      return "step " + std::to_string(std::get<0>(key)) + " " + std::string(Name(std::get<1>(key))) + " " +
             std::get<2>(key);
    }
  }
  return "";
}

inline void ExpectSameBits(const std::vector<Layout>& layouts, const RealOptions& options) {
  const Combined expected = RunThatMoves(layouts.front(), options);
  for (const Layout& layout : layouts) {
    EXPECT_EQ(FirstDifference(RunThatMoves(layout, options), expected), "") << Text(layout) << " " << Text(options);
  }
}

inline const std::vector<int64_t> kBuckets = {1, 200, kNoLimit};

// Limits of ZeRO 3 that split and keep, with and without prefetch and overlap, are dealt out in turn.
inline std::vector<Layout> LayoutsOfStages(const std::vector<int64_t>& stages, int64_t degree, int64_t accumulation,
                                           contract::DType storage, const std::vector<int64_t>& buckets = kBuckets) {
  const std::vector<Limits> limits = {{true, 0, 0, 0}, {false, 300, 13, 800}, {true, 50'000'000, 61, 1'000'000'000}};
  std::vector<Layout> layouts;
  size_t i = 0;
  for (const int64_t stage : stages) {
    for (const int64_t bucket : buckets) {
      layouts.push_back({degree, stage, accumulation, storage, bucket, limits[i++ % limits.size()]});
    }
  }
  return layouts;
}

}  // namespace plumbline::optimized::testing
