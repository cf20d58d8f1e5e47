// SPDX-License-Identifier: Apache-2.0
// Parameters against the table of docs/exact-family.md; every bad size and the message that names it.
#include "conformance/contract/model_spec.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "conformance/contract/error.h"
#include "conformance/contract/testing/error_message.h"

namespace plumbline::contract {
namespace {

using testing::ErrorMessage;

// Sizes of which no two are equal, so that no swap of two goes unseen. H = 3 query heads, 1 key/value head: e = 5.
ExactSpec Spec() {
  ExactSpec spec;
  spec.layers = 2;
  spec.width = 15;
  spec.heads = 3;
  spec.kv_heads = 1;
  spec.positions = 8;
  spec.hidden = 22;
  spec.vocab = 19;
  return spec;
}

TEST(ExactSpec, DerivesTheWidthsOfTheDocument) {
  ExactSpec spec = Spec();
  EXPECT_EQ(spec.head_width(), 5);
  EXPECT_EQ(spec.kv_width(), 5);
  EXPECT_EQ(spec.master_modulus(), 24);
  spec.kv_heads = 3;
  spec.weight_bound = 2;
  EXPECT_EQ(spec.kv_width(), 15);
  EXPECT_EQ(spec.master_modulus(), 40);
}

TEST(ExactSpec, HasTheDocumentsConstantsAsDefaults) {
  EXPECT_EQ(ExactSpec{}.weight_bound, 1);
  EXPECT_EQ(ExactSpec{}.fold_bound, 2);
  EXPECT_EQ(ExactSpec{}.gradient_fold_bound, 4);
  EXPECT_FALSE(ExactSpec{}.dropout);
}

TEST(Parameters, AreThoseOfTheTableInItsOrder) {
  const struct {
    const char* name;
    int64_t rows, cols;
  } kTable[] = {{"embed.weight", 19, 15},    {"pos.weight", 8, 15},         {"layers.0.attn.q", 15, 15},
                {"layers.0.attn.k", 15, 5},  {"layers.0.attn.v", 15, 5},    {"layers.0.attn.o", 15, 15},
                {"layers.0.mlp.up", 15, 22}, {"layers.0.mlp.down", 22, 15}, {"layers.1.attn.q", 15, 15},
                {"layers.1.attn.k", 15, 5},  {"layers.1.attn.v", 15, 5},    {"layers.1.attn.o", 15, 15},
                {"layers.1.mlp.up", 15, 22}, {"layers.1.mlp.down", 22, 15}};
  const std::vector<ParameterSpec> parameters = Parameters(Spec());
  ASSERT_EQ(parameters.size(), std::size(kTable));
  for (size_t i = 0; i < parameters.size(); ++i) {
    EXPECT_EQ(parameters[i].name, kTable[i].name);
    EXPECT_EQ(parameters[i].rows, kTable[i].rows) << kTable[i].name;
    EXPECT_EQ(parameters[i].cols, kTable[i].cols) << kTable[i].name;
    EXPECT_EQ(parameters[i].tensor_id, static_cast<int64_t>(i)) << kTable[i].name;
    EXPECT_EQ(parameters[i].numel(), kTable[i].rows * kTable[i].cols) << kTable[i].name;
  }
}

TEST(Parameters, NumberLayersInDecimalsAndIdsBySixesBeyondTen) {
  ExactSpec spec = Spec();
  spec.layers = 12;
  const std::vector<ParameterSpec> parameters = Parameters(spec);
  ASSERT_EQ(parameters.size(), 2u + 6 * 12);
  EXPECT_EQ(parameters[2 + 6 * 11 + 4].name, "layers.11.mlp.up");
  EXPECT_EQ(parameters[2 + 6 * 11 + 4].tensor_id, 6 + 6 * 11);
}

TEST(Validate, AcceptsTheSmallestAndTheLargestSizes) {
  EXPECT_NO_THROW(Validate(Spec()));
  ExactSpec spec;
  spec.layers = spec.width = spec.heads = spec.kv_heads = spec.positions = spec.hidden = 1;
  spec.vocab = 2;
  spec.fold_bound = spec.gradient_fold_bound = 1;
  EXPECT_NO_THROW(Validate(spec));
  spec.layers = 4096;
  spec.width = spec.heads = spec.kv_heads = spec.positions = spec.hidden = spec.vocab = 1 << 20;
  spec.weight_bound = spec.fold_bound = spec.gradient_fold_bound = 1 << 16;
  EXPECT_NO_THROW(Validate(spec));
  EXPECT_EQ(Parameters(spec).back().numel(), int64_t{1} << 40);
}

TEST(Validate, NamesEachSizeThatIsOutOfRange) {
  const struct {
    const char* name;
    int64_t ExactSpec::*field;
    int64_t min, max;
  } kTable[] = {{"layers", &ExactSpec::layers, 1, 4096},
                {"width", &ExactSpec::width, 1, 1 << 20},
                {"heads", &ExactSpec::heads, 1, 1 << 20},
                {"kv_heads", &ExactSpec::kv_heads, 1, 1 << 20},
                {"positions", &ExactSpec::positions, 1, 1 << 20},
                {"hidden", &ExactSpec::hidden, 1, 1 << 20},
                {"vocab", &ExactSpec::vocab, 2, 1 << 20},
                {"weight_bound", &ExactSpec::weight_bound, 1, 1 << 16},
                {"fold_bound", &ExactSpec::fold_bound, 1, 1 << 16},
                {"gradient_fold_bound", &ExactSpec::gradient_fold_bound, 1, 1 << 16}};
  for (const auto& [name, field, min, max] : kTable) {
    for (int64_t value :
         {min - 1, max + 1, int64_t{-1}, std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max()}) {
      ExactSpec spec = Spec();
      spec.*field = value;
      EXPECT_EQ(ErrorMessage(ErrorCode::kInvalidArgument, [&] { Validate(spec); }),
                std::string("model.") + name + " is " + std::to_string(value) + "; allowed: an integer from " +
                    std::to_string(min) + " to " + std::to_string(max));
    }
  }
}

TEST(Validate, NamesHeadsThatDoNotDivide) {
  ExactSpec spec = Spec();
  spec.heads = 4;
  EXPECT_EQ(ErrorMessage(ErrorCode::kInvalidArgument, [&] { Validate(spec); }),
            "model.width is 15; allowed: a multiple of model.heads = 4");
  spec = Spec();
  spec.kv_heads = 2;
  EXPECT_EQ(ErrorMessage(ErrorCode::kInvalidArgument, [&] { Validate(spec); }),
            "model.heads is 3; allowed: a multiple of model.kv_heads = 2");
  spec.kv_heads = 6;
  EXPECT_EQ(ErrorMessage(ErrorCode::kInvalidArgument, [&] { Validate(spec); }),
            "model.heads is 3; allowed: a multiple of model.kv_heads = 6");
}

Gpt2Spec SmallGpt2() {
  Gpt2Spec spec;
  spec.layers = 2;
  spec.width = 6;
  spec.heads = 3;
  spec.positions = 5;
  spec.hidden = 7;
  spec.vocab = 11;
  return spec;
}

TEST(Gpt2Parameters, HaveTheNamesShapesAndOrderOfTheDocument) {
  Gpt2Spec spec = SmallGpt2();
  spec.tied_head = false;
  spec.unused = true;
  spec.frozen = {"pos.weight", "norm.bias"};
  const std::vector<ParameterSpec> parameters = Parameters(spec);
  ASSERT_EQ(parameters.size(), 2 + 12 * 2 + 2 + 2u);
  EXPECT_EQ(parameters[4].name, "layers.0.attn.qkv.weight");
  EXPECT_EQ(parameters[4].shape(), (std::vector<int64_t>{6, 18}));
  EXPECT_EQ(parameters[5].name, "layers.0.attn.qkv.bias");
  EXPECT_EQ(parameters[5].shape(), std::vector<int64_t>{18});
  EXPECT_EQ(parameters[14].name, "layers.1.norm1.weight");
  EXPECT_EQ(parameters[25].name, "layers.1.mlp.down.bias");
  EXPECT_EQ(parameters[26].name, "norm.weight");
  EXPECT_EQ(parameters[28].name, "head.weight");
  EXPECT_EQ(parameters[29].name, "unused.weight");
  for (size_t i = 0; i < parameters.size(); ++i) {
    EXPECT_EQ(parameters[i].tensor_id, static_cast<int64_t>(i));
    EXPECT_EQ(parameters[i].frozen, i == 1 || i == 27) << parameters[i].name;
  }
  EXPECT_EQ(Parameters(SmallGpt2()).size(), 28u);
}

TEST(Gpt2Parameters, HaveTheUnitsOfTheDocument) {
  Gpt2Spec spec = SmallGpt2();
  spec.tied_head = false;
  spec.unused = true;
  const std::vector<ParameterSpec> parameters = Parameters(spec);
  for (size_t i : {0u, 1u, 28u, 29u}) {
    EXPECT_EQ(parameters[i].units, UnitShape::kRows) << parameters[i].name;
    EXPECT_EQ(parameters[i].num_units(), parameters[i].rows);
  }
  for (size_t i : {4u, 6u, 10u, 12u}) {
    EXPECT_EQ(parameters[i].units, UnitShape::kColumns) << parameters[i].name;
    EXPECT_EQ(parameters[i].num_units(), parameters[i].cols);
  }
  for (size_t i : {2u, 5u, 27u}) {
    EXPECT_EQ(parameters[i].units, UnitShape::kWhole) << parameters[i].name;
    EXPECT_EQ(parameters[i].num_units(), 1);
  }
}

TEST(Validate, NamesWhatIsWrongWithAGpt2) {
  const auto message = [](const Gpt2Spec& spec) -> std::string {
    try {
      Validate(spec);
    } catch (const Error& error) {
      return error.what();
    }
    return "nothing";
  };
  EXPECT_EQ(message(SmallGpt2()), "nothing");
  Gpt2Spec spec = SmallGpt2();
  spec.heads = 4;
  EXPECT_EQ(message(spec), "model.width is 6; allowed: a multiple of model.heads = 4");
  spec = SmallGpt2();
  spec.dropout = 1;
  EXPECT_EQ(message(spec), "model.dropout is 1; allowed: a number from 0 to 0.99");
  spec = SmallGpt2();
  for (const auto& [epsilon, shown] :
       {std::pair(0.0, "0"), {-1e-9, "-1e-09"}, {1e-300, "1e-300"}, {9e-21, "9e-21"}, {1.0, "1"}}) {
    spec.norm_epsilon = epsilon;
    EXPECT_EQ(message(spec),
              "model.norm_epsilon is " + std::string(shown) + "; allowed: a number from 1e-20 to below 1");
  }
  spec = SmallGpt2();
  spec.initializer_range = 1;
  EXPECT_EQ(message(spec), "model.initializer_range is 1; allowed: a number from 1e-5 to below 1");
  spec.initializer_range = 1e-300;
  EXPECT_EQ(message(spec), "model.initializer_range is 1e-300; allowed: a number from 1e-5 to below 1");
  spec = SmallGpt2();
  spec.frozen = {"pos.wieght"};
  EXPECT_EQ(message(spec), "model.frozen names \"pos.wieght\"; allowed: each parameter of the model, once");
  spec.frozen = {"pos.weight", "pos.weight"};
  EXPECT_EQ(message(spec), "model.frozen names \"pos.weight\" twice; allowed: each parameter of the model, once");
  spec.frozen.clear();
  for (const ParameterSpec& parameter : Parameters(spec)) spec.frozen.push_back(parameter.name);
  EXPECT_EQ(message(spec), "model.frozen names every parameter; allowed: at least one is trained");
}

LlamaSpec SmallLlama() {
  LlamaSpec spec;
  spec.layers = 2;
  spec.width = 24;
  spec.heads = 6;
  spec.kv_heads = 2;
  spec.positions = 5;
  spec.hidden = 7;
  spec.vocab = 11;
  return spec;
}

TEST(LlamaParameters, HaveTheNamesShapesOrderAndUnitsOfTheDocument) {
  LlamaSpec spec = SmallLlama();
  spec.unused = true;
  spec.frozen = {"layers.1.mlp.gate.weight"};
  const std::vector<ParameterSpec> parameters = Parameters(spec);
  using Shape = std::vector<int64_t>;
  const struct {
    const char* name;
    Shape shape;
    UnitShape units;
  } kTable[] = {{"embed.weight", {11, 24}, UnitShape::kRows},
                {"norm1.weight", {24}, UnitShape::kWhole},
                {"attn.q.weight", {24, 24}, UnitShape::kColumns},
                {"attn.k.weight", {24, 8}, UnitShape::kColumns},
                {"attn.v.weight", {24, 8}, UnitShape::kColumns},
                {"attn.out.weight", {24, 24}, UnitShape::kColumns},
                {"norm2.weight", {24}, UnitShape::kWhole},
                {"mlp.gate.weight", {24, 7}, UnitShape::kColumns},
                {"mlp.up.weight", {24, 7}, UnitShape::kColumns},
                {"mlp.down.weight", {7, 24}, UnitShape::kColumns},
                {"norm.weight", {24}, UnitShape::kWhole},
                {"head.weight", {11, 24}, UnitShape::kRows},
                {"unused.weight", {3, 5}, UnitShape::kRows}};
  ASSERT_EQ(parameters.size(), 1 + 9 * 2 + 2 + 1u);
  for (size_t i = 0; i < parameters.size(); ++i) {
    const size_t layer = i == 0 || i > 18 ? 0 : (i - 1) / 9;
    const bool in_layer = i >= 1 && i <= 18;
    const auto& row = kTable[i == 0 ? 0 : in_layer ? 1 + (i - 1) % 9 : i - 9];
    const std::string prefix = in_layer ? "layers." + std::to_string(layer) + "." : "";
    EXPECT_EQ(parameters[i].name, prefix + row.name);
    EXPECT_EQ(parameters[i].shape(), row.shape) << row.name;
    EXPECT_EQ(parameters[i].units, row.units) << row.name;
    EXPECT_EQ(parameters[i].tensor_id, static_cast<int64_t>(i));
    EXPECT_EQ(parameters[i].frozen, i == 16) << parameters[i].name;
  }
}

TEST(Validate, NamesWhatIsWrongWithALlama) {
  const auto message = [](const LlamaSpec& spec) {
    return ErrorMessage(ErrorCode::kInvalidArgument, [&] { Validate(spec); });
  };
  Validate(SmallLlama());
  LlamaSpec spec = SmallLlama();
  spec.kv_heads = 4;
  EXPECT_EQ(message(spec), "model.heads is 6; allowed: a multiple of model.kv_heads = 4");
  spec = SmallLlama();
  spec.kv_heads = 0;
  EXPECT_EQ(message(spec), "model.kv_heads is 0; allowed: an integer from 1 to 1048576");
  spec = SmallLlama();
  spec.width = 30;
  EXPECT_EQ(message(spec),
            "model.width is 30; allowed: a multiple of twice model.heads = 6, as positions turn pairs of channels");
  spec = SmallLlama();
  for (const auto& [theta, shown] :
       {std::pair(0.0, "0"), {-1.0, "-1"}, {1e-300, "1e-300"}, {0.99, "0.99"}, {2e9, "2e+09"}}) {
    spec.rope_theta = theta;
    EXPECT_EQ(message(spec), "model.rope_theta is " + std::string(shown) + "; allowed: a number from 1 to 1e9");
  }
  spec = SmallLlama();
  spec.hidden = 0;
  EXPECT_EQ(message(spec), "model.hidden is 0; allowed: an integer from 1 to 1048576");
  spec = SmallLlama();
  spec.frozen = {"pos.weight"};
  EXPECT_EQ(message(spec), "model.frozen names \"pos.weight\"; allowed: each parameter of the model, once");
}

TEST(ModelSpec, SaysWhatItsFamilyHas) {
  Gpt2Spec tied = SmallGpt2(), untied = SmallGpt2();
  untied.tied_head = false;
  LlamaSpec equal = SmallLlama(), unequal = SmallLlama();
  unequal.unequal_lengths = true;
  EXPECT_TRUE(ModelSpec(tied).has_tied_head());
  EXPECT_FALSE(ModelSpec(untied).has_tied_head());
  EXPECT_FALSE(ModelSpec(equal).has_tied_head());
  EXPECT_FALSE(ModelSpec(equal).has_unequal_lengths());
  EXPECT_TRUE(ModelSpec(unequal).has_unequal_lengths());
  EXPECT_FALSE(ModelSpec(untied).has_unequal_lengths());
  EXPECT_EQ(ModelSpec(equal).family(), "llama");
  EXPECT_EQ(ModelSpec(tied).family(), "gpt2");
  EXPECT_EQ(ModelSpec(Spec()).family(), "exact");
  EXPECT_NE(ModelSpec(equal), ModelSpec(unequal));
  EXPECT_EQ(ModelSpec(equal).real().width, 24);
  EXPECT_EQ(ModelSpec(tied).real().width, 6);
  EXPECT_THROW(ModelSpec(equal).gpt2(), Error);
  EXPECT_THROW(ModelSpec(Spec()).real(), Error);
}

}  // namespace
}  // namespace plumbline::contract
