// SPDX-License-Identifier: Apache-2.0
#include "conformance/oracle/unit_formula.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "conformance/oracle/testing/example_gpt2.h"
#include "conformance/oracle/testing/example_llama.h"
#include "conformance/oracle/testing/example_run.h"

namespace plumbline::conformance {
namespace {

using Units = std::vector<size_t>;

TEST(UnitsOf, ExactAreEmbeddingLayersAndATiedHead) {
  contract::ModelSpec model = ExampleCase(1).model;
  model.exact().layers = 2;
  const ModelUnits units = UnitsOf(model);
  EXPECT_EQ(units.reads, (std::vector<Units>{{0, 1}, {2, 3, 4, 5, 6, 7}, {8, 9, 10, 11, 12, 13}, {0}}));
  EXPECT_EQ(units.uses, (Units{0, 1, 2, 3, 3, 2, 1}));
}

TEST(UnitsOf, ExactUseEachUnitTwiceButTheEmbeddingOnce) {
  for (int64_t layers : {1, 3, 7}) {
    contract::ModelSpec model = ExampleCase(1).model;
    model.exact().layers = layers;
    const ModelUnits units = UnitsOf(model);
    EXPECT_EQ(units.uses.size(), static_cast<size_t>(2 * layers + 3));
    for (size_t unit = 0; unit < units.reads.size(); ++unit) {
      EXPECT_EQ(std::count(units.uses.begin(), units.uses.end(), unit), unit == 0 ? 1 : 2) << unit;
    }
  }
}

TEST(UnitsOf, Gpt2ReadTheLastNormWithTheHead) {
  contract::Case spec = ExampleGpt2(1, 3);
  const Units layer = {2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13};
  EXPECT_EQ(UnitsOf(spec.model).reads, (std::vector<Units>{{0, 1}, layer, {14, 15, 0}}));
  EXPECT_EQ(UnitsOf(spec.model).uses, (Units{0, 1, 2, 2, 1}));
  spec.model.gpt2().tied_head = false;
  EXPECT_EQ(UnitsOf(spec.model).reads, (std::vector<Units>{{0, 1}, layer, {14, 15, 16}}));
}

TEST(UnitsOf, Gpt2NeverUseTheUnusedParameter) {
  contract::Case spec = ExampleGpt2(1, 3);
  spec.model.gpt2().unused = true;
  EXPECT_EQ(UnitsOf(spec.model).reads.back(), Units{16});
  EXPECT_EQ(UnitsOf(spec.model).uses, (Units{0, 1, 2, 2, 1}));
  spec.model.gpt2().tied_head = false;
  EXPECT_EQ(UnitsOf(spec.model).reads.back(), Units{17});
}

TEST(UnitsOf, LlamaReadTheLastNormWithTheHeadAndNoPositions) {
  contract::LlamaSpec model = ExampleLlama();
  const Units layer = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  EXPECT_EQ(UnitsOf(model).reads, (std::vector<Units>{{0}, layer, {10, 11}}));
  EXPECT_EQ(UnitsOf(model).uses, (Units{0, 1, 2, 2, 1}));
  model.unused = true;
  EXPECT_EQ(UnitsOf(model).reads.back(), Units{12});
  EXPECT_EQ(UnitsOf(model).uses, (Units{0, 1, 2, 2, 1}));
}

TEST(UnitsOf, ReadEveryParameterOfEachFamily) {
  for (int64_t layers : {1, 2, 5}) {
    contract::Case gpt2 = ExampleGpt2(1, 3);
    gpt2.model.gpt2().layers = layers;
    gpt2.model.gpt2().unused = true;
    contract::Case untied = gpt2;
    untied.model.gpt2().tied_head = false;
    contract::Case exact = ExampleCase(1);
    exact.model.exact().layers = layers;
    contract::LlamaSpec llama = ExampleLlama();
    llama.layers = layers;
    llama.unused = true;
    for (const contract::ModelSpec& model : {gpt2.model, untied.model, exact.model, contract::ModelSpec(llama)}) {
      std::set<size_t> read;
      for (const Units& unit : UnitsOf(model).reads) read.insert(unit.begin(), unit.end());
      EXPECT_EQ(read.size(), contract::Parameters(model).size());
      EXPECT_EQ(*read.rbegin(), contract::Parameters(model).size() - 1);
    }
  }
}

}  // namespace
}  // namespace plumbline::conformance
