// SPDX-License-Identifier: Apache-2.0
#include "conformance/cases/shrink.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "conformance/cases/exact_cases.h"
#include "conformance/cases/gpt2_cases.h"
#include "conformance/cases/llama_cases.h"
#include "conformance/cases/lone_case.h"
#include "conformance/contract/digest.h"

namespace plumbline::conformance {
namespace {

using contract::Case;

// All cases of all families' lists, one with hints and one whose layers have stages of their own.
const std::vector<Case>& ListedCases() {
  static const std::vector<Case> cases = [] {
    std::vector<Case> all;
    for (const CaseList& list : {ExactCases(), Gpt2Cases(), LlamaCases()}) {
      for (const CaseSpec& entry : list.cases) {
        Case spec;
        spec.id = entry.id;
        spec.model = list.problems[static_cast<size_t>(entry.problem)].model;
        spec.steps = list.problems[static_cast<size_t>(entry.problem)].steps;
        spec.config = entry.config;
        spec.seed = 7;
        all.push_back(spec);
      }
    }
    // As a user's file may have them; no list does.
    Case hinted = all.front();
    hinted.id = "exact/hinted";
    hinted.config.hints = {{"steps_per_print", "10"}, {"zero_optimization.sub_group_size", "7"}};
    Case layered = all.front();
    layered.id = "exact/layered";
    layered.config.layer_stages.assign(static_cast<size_t>(layered.model.layers()), 1);
    layered.config.layer_stages.back() = 2;
    all.insert(all.begin(), {hinted, layered});
    return all;
  }();
  return cases;
}

Case Listed(const std::string& id) {
  for (const Case& spec : ListedCases()) {
    if (spec.id.starts_with(id)) return spec;
  }
  ADD_FAILURE() << id;
  return {};
}

const ShrinkAxis& AxisOf(std::string_view name) {
  for (const ShrinkAxis& axis : ShrinkAxes()) {
    if (axis.name == name) return axis;
  }
  ADD_FAILURE() << name;
  return ShrinkAxes().front();
}

// Every tenth case: all problems are among them.
std::vector<Case> SomeListedCases() {
  std::vector<Case> some;
  for (size_t i = 0; i < ListedCases().size(); i += 10) some.push_back(ListedCases()[i]);
  return some;
}

int64_t SizeOn(const Case& spec, std::string_view axis) { return AxisOf(axis).size(spec); }

bool Never() { return false; }

TEST(ShrinkAxes, EachValueOfEachListedCaseGivesAValidSmallerCase) {
  for (const Case& spec : SomeListedCases()) {
    for (const ShrinkAxis& axis : ShrinkAxes()) {
      int64_t last = -1;
      for (int64_t value : SmallerValues(spec, axis)) {
        const Case smaller = WithValue(spec, axis, value).value();
        EXPECT_EQ(contract::ParseCase(contract::ToJson(smaller), "case"), smaller);
        EXPECT_EQ(WhyNotJudgeable(smaller), std::nullopt);
        EXPECT_TRUE(IsSmaller(smaller, spec)) << spec.id << " " << axis.name << " " << value;
        EXPECT_FALSE(IsSmaller(spec, smaller));
        EXPECT_EQ(axis.size(smaller), value) << axis.name;
        EXPECT_GT(value, last) << "smallest first";
        last = value;
      }
      EXPECT_LT(last, axis.size(spec)) << axis.name;
    }
  }
}

TEST(ShrinkAxes, EachCanMakeSomeListedCaseSmaller) {
  for (const ShrinkAxis& axis : ShrinkAxes()) {
    bool used = false;
    for (const Case& spec : ListedCases()) used |= !SmallerValues(spec, axis).empty();
    EXPECT_TRUE(used) << axis.name;
  }
}

TEST(ShrinkAxes, NoCaseIsSmallerThanItself) {
  for (const Case& spec : ListedCases()) EXPECT_FALSE(IsSmaller(spec, spec));
}

TEST(ShrinkAxes, OneLayerLessTakesItsFrozenParametersAlong) {
  Case spec = Listed("gpt2/frozen-adamw");
  ASSERT_EQ(spec.model.gpt2().frozen,
            (std::vector<std::string>{"embed.weight", "layers.1.norm2.weight", "layers.1.mlp.up.bias"}));
  spec = WithValue(spec, AxisOf("layers"), 1).value();
  EXPECT_EQ(spec.model.gpt2().frozen, std::vector<std::string>{"embed.weight"});
}

TEST(ShrinkAxes, OneLayerLessTakesItsStageAlong) {
  Case spec = Listed("exact/layered");
  spec.model.exact().layers = 3;
  spec.config.layer_stages = {1, 0, 2};
  EXPECT_EQ(WithValue(spec, AxisOf("layers"), 2).value().config.layer_stages, (std::vector<int64_t>{1, 0}));
  EXPECT_TRUE(WithValue(spec, AxisOf("layers' own stages"), 0).value().config.layer_stages.empty());
}

// A case may not have a group that no parameter belongs to.
TEST(ShrinkAxes, WhatALayerOrTheUnusedParameterTakesAlongOfGroups) {
  Case spec = Listed("gpt2/frozen-adamw");
  const auto patterns = [](const Case& of) {
    std::vector<std::string> some;
    for (const contract::ParameterGroup& group : of.config.groups) some.push_back(group.match);
    return some;
  };
  spec.model.real().unused = true;
  spec.config.groups = {
      {"layers.1.*", 0.1, {}}, {"unused.weight", 0.2, {}}, {"layers.*", 0.3, {}}, {"*norm*", 0.4, {}}};
  const Case one_layer = WithValue(spec, AxisOf("layers"), 1).value();
  EXPECT_EQ(patterns(one_layer), (std::vector<std::string>{"unused.weight", "layers.*", "*norm*"}));
  const Case none_unused = WithValue(spec, AxisOf("unused parameter"), 0).value();
  EXPECT_EQ(patterns(none_unused), (std::vector<std::string>{"layers.1.*", "layers.*", "*norm*"}));
}

TEST(ShrinkAxes, KeyAndValueHeadsStayGroupedWhileTheyCan) {
  Case spec = Listed("exact/grouped-v5");  // four heads, two of them share keys and values
  EXPECT_EQ(WithValue(spec, AxisOf("heads"), 2)->model.exact().kv_heads, 1);
  EXPECT_EQ(WithValue(spec, AxisOf("heads"), 1)->model.exact().kv_heads, 1);
  spec = Listed("exact/dense-v19");  // three heads, none shared
  EXPECT_EQ(WithValue(spec, AxisOf("heads"), 1)->model.exact().kv_heads, 1);
}

TEST(ShrinkAxes, ADegreeThatDoesNotDivideTheBatchTakesSamplesAlong) {
  Case spec = Listed("exact/dense-v19/data3");
  spec.config.accumulation_steps = 1;
  spec.config.train_batch_size = 3;
  spec.config.micro_batch_size = 1;
  const Case two = WithValue(spec, AxisOf("data"), 2).value();
  EXPECT_EQ(two.config.train_batch_size, 2);
  EXPECT_EQ(two.config.micro_batch_size, 1);
  spec.config.train_batch_size = 24;
  spec.config.micro_batch_size = 8;
  EXPECT_EQ(WithValue(spec, AxisOf("data"), 2)->config.train_batch_size, 24) << "nor where it divides";
  Case real = Listed("gpt2/untied-sgd/data3");
  real.config.accumulation_steps = 1;
  real.config.train_batch_size = 12;
  real.config.micro_batch_size = 4;
  EXPECT_EQ(WithValue(real, AxisOf("data"), 2)->config.train_batch_size, 12);
  EXPECT_TRUE(SmallerValues(real, AxisOf("batch")).empty()) << "3 ranks, and 4 micro-batches of the plain engine";
}

TEST(ShrinkAxes, HintsGoOneByOne) {
  const Case& spec = ListedCases().front();
  EXPECT_EQ(SmallerValues(spec, AxisOf("hints")), (std::vector<int64_t>{0, 1}));
  EXPECT_EQ(WithValue(spec, AxisOf("hints"), 1)->config.hints, (contract::Hints{{"steps_per_print", "10"}}));
  EXPECT_EQ(WithValue(spec, AxisOf("hints"), 0)->config.hints, contract::Hints{});
}

TEST(ShrinkAxes, ReductionsNameTheAxesThatDiffer) {
  const Case spec = Listed("exact/dense-v19/data8");
  EXPECT_EQ(Reductions(spec, spec), "");
  Case smaller = WithValue(spec, AxisOf("data"), 2).value();
  smaller = WithValue(smaller, AxisOf("steps"), 1).value();
  EXPECT_EQ(Reductions(spec, smaller), "data 8 → 2, steps " + std::to_string(spec.steps) + " → 1");
  const Case narrow = Listed("gpt2/tied-adamw");
  EXPECT_EQ(Reductions(narrow, WithValue(narrow, AxisOf("dropout"), 0).value()), "dropout on → off");
  for (const char* id : {"gpt2/tied-adamw/", "gpt2/frozen-momentum/", "gpt2/frozen-adamw/", "gpt2/cycled-adamw/"}) {
    const Case scheduled = Listed(id);
    EXPECT_EQ(Reductions(scheduled, WithValue(scheduled, AxisOf("schedule"), 0).value()), "schedule set → constant");
  }
}

TEST(Shrink, OfWhatAlwaysFailsLeavesNothingSmaller) {
  for (const Case& spec : SomeListedCases()) {
    const ShrinkResult result = Shrink(
        spec, [](const Case&) { return true; }, Never);
    EXPECT_TRUE(result.finished);
    for (const ShrinkAxis& axis : ShrinkAxes()) {
      EXPECT_TRUE(SmallerValues(result.smallest, axis).empty()) << spec.id << " " << axis.name;
    }
    EXPECT_EQ(result.smallest.config.data_degree, 1);
    EXPECT_EQ(result.smallest.steps, 1);
    EXPECT_EQ(result.smallest.seed, spec.seed);
    EXPECT_LE(result.tried, 4) << "all at once comes first";
  }
}

TEST(Shrink, OfWhatFailsOnlyAsItIsKeepsIt) {
  for (const Case& spec : SomeListedCases()) {
    const ShrinkResult result = Shrink(
        spec, [](const Case&) { return false; }, Never);
    EXPECT_TRUE(result.finished);
    EXPECT_EQ(result.smallest, spec);
    EXPECT_LT(result.tried, 150) << spec.id;
  }
}

// What a defect may need: at least so much of these axes.
struct Need {
  std::string id;
  std::vector<std::pair<std::string_view, int64_t>> least;
};

TEST(Shrink, FindsExactlyWhatAFailureNeeds) {
  const std::vector<Need> needs = {
      {"exact/dense-v19/data8", {{"data", 2}}},
      {"exact/dense-v19/data8", {{"data", 3}, {"layers", 2}, {"steps", 37}}},
      {"exact/grouped-v5/data3-zero1-acc4", {{"data", 2}, {"zero", 1}}},  // 2 * 4 does not divide 36
      {"exact/grouped-v5", {{"accumulation", 2}, {"zero", 1}, {"heads that share keys", 2}}},
      {"exact/wide-v5", {{"bounds", 1}, {"hidden", 13}}},
      {"gpt2/tied-adamw", {{"tied head", 1}, {"steps", 2}}},
      {"gpt2/tied-adamw", {{"groups", 2}, {"clipping", 1}, {"vocabulary", 61}}},
      {"gpt2/frozen-momentum", {{"momentum", 1}, {"unused parameter", 1}, {"frozen parameters", 2}}},
  };
  for (const Need& need : needs) {
    const auto still_fails = [&](const Case& spec) {
      return std::all_of(need.least.begin(), need.least.end(),
                         [&](const auto& entry) { return SizeOn(spec, entry.first) >= entry.second; });
    };
    const auto found = std::find_if(ListedCases().begin(), ListedCases().end(), [&](const Case& spec) {
      return spec.id.starts_with(need.id) && still_fails(spec);
    });
    ASSERT_NE(found, ListedCases().end()) << need.id;
    const Case start = *found;
    const ShrinkResult result = Shrink(start, still_fails, Never);
    for (const auto& [axis, least] : need.least) EXPECT_EQ(SizeOn(result.smallest, axis), least) << need.id << axis;
    // Nothing else is left that could be smaller.
    for (const ShrinkAxis& axis : ShrinkAxes()) {
      for (int64_t value : SmallerValues(result.smallest, axis)) {
        EXPECT_FALSE(still_fails(WithValue(result.smallest, axis, value).value())) << need.id << axis.name << value;
      }
    }
  }
}

TEST(Shrink, ReturnsToAnAxisThatAnotherHadHeldUp) {
  Case start = Listed("exact/dense-v19/data8-");
  start.config.accumulation_steps = 3;
  start.config.micro_batch_size = start.config.train_batch_size / 8 / 3;
  const auto still_fails = [](const Case& spec) {
    const bool needed = spec.config.accumulation_steps >= 2 && spec.model.vocab() >= 7;
    return needed && (spec.config.data_degree >= 2 || spec.config.train_batch_size <= 8);
  };
  ASSERT_TRUE(still_fails(start));
  const Case smallest = Shrink(start, still_fails, Never).smallest;
  EXPECT_EQ(smallest.config.data_degree, 1) << "two ranks while the batch was large, which comes later in the table";
  EXPECT_EQ(smallest.config.accumulation_steps, 2);
  EXPECT_EQ(smallest.model.vocab(), 7);
}

// A failure that comes and goes with size, like one of alignment: whatever the answers are, it ends, asks nothing
// twice, and what it keeps has failed.
TEST(Shrink, EndsWhateverTheAnswersAre) {
  const Case start = Listed("gpt2/untied-sgd");
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    std::set<std::string> asked, failed;
    Case last = start;
    const auto still_fails = [&](const Case& spec) {
      EXPECT_TRUE(IsSmaller(spec, last));
      const std::string json = contract::ToJson(spec);
      EXPECT_TRUE(asked.insert(json).second) << json;
      uint64_t digest = seed;
      for (char c : json) digest = contract::Mix(digest + static_cast<unsigned char>(c));
      const bool fails = digest % 4 == 0;
      if (fails) failed.insert(json);
      if (fails) last = spec;
      return fails;
    };
    const ShrinkResult result = Shrink(start, still_fails, Never);
    EXPECT_EQ(result.tried, static_cast<int64_t>(asked.size()));
    EXPECT_EQ(result.smallest, last);
    EXPECT_TRUE(result.smallest == start || failed.contains(contract::ToJson(result.smallest)));
  }
}

TEST(Shrink, KeepsTheLastThatFailedWhenItGivesUp) {
  const Case start = Listed("exact/dense-v19/data8");
  const auto still_fails = [](const Case& spec) { return spec.config.data_degree >= 3 && spec.steps >= 7; };
  const int64_t all = Shrink(start, still_fails, Never).tried;
  ASSERT_GT(all, 5);
  for (int64_t most = 0; most <= all; ++most) {
    int64_t asked = 0;
    const auto give_up = [&] { return asked++ == most; };
    const ShrinkResult result = Shrink(start, still_fails, give_up);
    EXPECT_EQ(result.tried, most);
    EXPECT_EQ(result.finished, most == all);
    EXPECT_TRUE(still_fails(result.smallest));
  }
}

}  // namespace
}  // namespace plumbline::conformance
