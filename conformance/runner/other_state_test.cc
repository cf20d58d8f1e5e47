// SPDX-License-Identifier: Apache-2.0
// For every problem: the other state has the sizes of the right one and none of its numbers, and can be written and
// read as a case's.
#include "conformance/runner/other_state.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "conformance/cases/exact_cases.h"
#include "conformance/cases/gpt2_cases.h"
#include "conformance/cases/llama_cases.h"
#include "conformance/contract/batch_source.h"
#include "conformance/contract/testing/temporary_folder.h"

namespace plumbline::conformance {
namespace {

contract::CaseData DataOf(const Problem& problem) {
  const contract::TokenSource source{std::vector<int32_t>(100, 1), true};
  contract::CaseData data;
  data.spec.id = problem.name;
  data.spec.model = problem.model;
  data.spec.config = problem.plain;
  data.spec.seed = 7;
  data.spec.steps = 1;
  data.parameters = contract::Parameters(problem.model);
  if (problem.model.is_exact()) {
    data.state = contract::MakeInitialState(problem.model.exact(), problem.plain.optimizer, data.spec.seed);
  } else {
    data.real_state = contract::MakeInitialRealState(problem.model, problem.plain, data.spec.seed);
  }
  data.batches = contract::MakeBatches(source, problem.model, {data.spec.seed, 0, 1, problem.plain.train_batch_size});
  return data;
}

template <typename T>
void ExpectOtherInEveryElement(const std::vector<T>& other, const std::vector<T>& right) {
  ASSERT_EQ(other.size(), right.size());
  for (size_t i = 0; i < right.size(); ++i) {
    EXPECT_TRUE(std::isfinite(static_cast<double>(other[i]))) << i;
    EXPECT_NE(other[i], right[i]) << i;
  }
}

TEST(OtherState, DiffersInEveryElementOfEveryTensorOfGpt2FrozenOnesToo) {
  bool any_frozen = false;
  for (const Problem& problem : Gpt2Cases().problems) {
    const contract::CaseData right = DataOf(problem);
    contract::CaseData other = right;
    ReplaceState(other);
    ASSERT_EQ(other.real_state.size(), right.parameters.size());
    EXPECT_EQ(other.norm_history == right.norm_history, !contract::HasNormHistory(right.spec.config));
    for (size_t i = 0; i < right.parameters.size(); ++i) {
      SCOPED_TRACE(problem.name + ", " + right.parameters[i].name);
      ASSERT_FALSE(right.real_state[i].master.empty());
      ExpectOtherInEveryElement(other.real_state[i].master, right.real_state[i].master);
      ExpectOtherInEveryElement(other.real_state[i].moment, right.real_state[i].moment);
      ExpectOtherInEveryElement(other.real_state[i].second_moment, right.real_state[i].second_moment);
      any_frozen |= right.parameters[i].frozen;
    }
  }
  EXPECT_TRUE(any_frozen);
}

TEST(OtherState, DiffersInEveryElementOfEveryTensorOfFamilyExact) {
  for (const Problem& problem : ExactCases().problems) {
    const contract::CaseData right = DataOf(problem);
    contract::CaseData other = right;
    ReplaceState(other);
    ASSERT_EQ(other.state.size(), right.parameters.size());
    for (size_t i = 0; i < right.parameters.size(); ++i) {
      SCOPED_TRACE(problem.name + ", " + right.parameters[i].name);
      ASSERT_FALSE(right.state[i].weight.empty());
      ExpectOtherInEveryElement(other.state[i].weight, right.state[i].weight);
      ExpectOtherInEveryElement(other.state[i].master, right.state[i].master);
      ExpectOtherInEveryElement(other.state[i].moment, right.state[i].moment);
    }
  }
}

TEST(OtherState, IsAValidState) {
  const contract::testing::TemporaryFolder folder;
  for (const CaseList& list : {ExactCases(), Gpt2Cases(), LlamaCases()}) {
    for (const Problem& problem : list.problems) {
      contract::CaseData data = DataOf(problem);
      ReplaceState(data);
      contract::WriteCase(folder.path(), data);
      EXPECT_NO_THROW(contract::ReadCase(folder.path())) << problem.name;
    }
  }
}

}  // namespace
}  // namespace plumbline::conformance
