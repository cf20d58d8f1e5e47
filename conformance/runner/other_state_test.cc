// SPDX-License-Identifier: Apache-2.0
// For every problem of the real families: the other state has the sizes of the right one, and none of its numbers.
#include "conformance/runner/other_state.h"

#include <gtest/gtest.h>

#include <cmath>

#include "conformance/cases/gpt2_cases.h"
#include "conformance/contract/batch_source.h"

namespace plumbline::conformance {
namespace {

void ExpectOtherInEveryElement(const std::vector<float>& other, const std::vector<float>& right) {
  ASSERT_EQ(other.size(), right.size());
  for (size_t i = 0; i < right.size(); ++i) {
    EXPECT_TRUE(std::isfinite(other[i])) << i;
    EXPECT_NE(other[i], right[i]) << i;
  }
}

TEST(OtherState, DiffersInEveryElementOfEveryTensorFrozenOnesToo) {
  bool any_frozen = false;
  for (const Problem& problem : Gpt2Cases().problems) {
    contract::Case spec;
    spec.model = problem.model;
    spec.config = problem.plain;
    spec.seed = 7;
    const auto right = contract::MakeInitialRealState(spec.model.gpt2(), spec.config, spec.seed);
    const auto other = MakeOtherState(spec);
    ASSERT_EQ(other.size(), right.size());
    for (size_t i = 0; i < right.size(); ++i) {
      SCOPED_TRACE(problem.name + ", parameter " + std::to_string(i));
      ASSERT_FALSE(right[i].master.empty());
      ExpectOtherInEveryElement(other[i].master, right[i].master);
      ExpectOtherInEveryElement(other[i].moment, right[i].moment);
      ExpectOtherInEveryElement(other[i].second_moment, right[i].second_moment);
    }
    any_frozen |= !spec.model.gpt2().frozen.empty();
  }
  EXPECT_TRUE(any_frozen);
}

}  // namespace
}  // namespace plumbline::conformance
