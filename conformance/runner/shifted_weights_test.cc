// SPDX-License-Identifier: Apache-2.0
// The starts of shifted runs, for whatever a norm may give: the two differ by one number for all of a softmax, to the
// last bit, the number is out of an exponential's range, and the bound on its terms holds and is met.
#include "conformance/runner/shifted_weights.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

#include "conformance/contract/batch_source.h"
#include "conformance/contract/digest.h"

namespace plumbline::conformance {
namespace {

using contract::ModelSpec;
using State = std::vector<contract::RealParameterState>;
using Row = std::vector<double>;

constexpr double kOverflow = 88.73, kUnderflow = -104;  // of the exponential in fp32

template <typename Spec>
Spec Model(int64_t width, int64_t heads, double range) {
  Spec model;
  model.layers = 2;
  model.width = width;
  model.heads = heads;
  model.positions = 5;
  model.hidden = 9;
  model.vocab = 67;
  model.initializer_range = range;
  return model;
}

ModelSpec Gpt2(int64_t width, int64_t heads, double range = 0.02) {
  auto model = Model<contract::Gpt2Spec>(width, heads, range);
  model.tied_head = false;
  return model;
}

ModelSpec Llama(int64_t width, int64_t heads, double range = 0.02) {
  auto model = Model<contract::LlamaSpec>(width, heads, range);
  model.kv_heads = 1;
  return model;
}

const ModelSpec kModels[] = {Gpt2(15, 15), Gpt2(12, 3), Gpt2(32, 2, 0.1), Gpt2(64, 4, 0.001)};
const ModelSpec kUntied[] = {kModels[0],   kModels[1],        kModels[2],         kModels[3],
                             Llama(30, 5), Llama(16, 2, 0.1), Llama(64, 4, 0.001)};

State Initial(const ModelSpec& model, uint64_t seed) {
  contract::RunConfig config;
  config.optimizer = contract::OptimizerKind::kSgd;
  return contract::MakeInitialRealState(model, config, seed);
}

size_t IndexOf(const ModelSpec& model, const std::string& name) {
  const auto parameters = contract::Parameters(model);
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (parameters[i].name == name) return i;
  }
  ADD_FAILURE() << name;
  return 0;
}

Row Column(const ModelSpec& model, const State& state, const std::string& name, size_t begin, size_t stride) {
  Row values;
  const std::vector<float>& all = state[IndexOf(model, name)].master;
  for (size_t i = begin; i < all.size() && values.size() < static_cast<size_t>(model.real().width); i += stride) {
    values.push_back(all[i]);
  }
  return values;
}

// What a norm makes of a row: square sum the width and, in family gpt2, mean 0.
Row Normalised(const ModelSpec& model, Row row) {
  const auto width = static_cast<double>(row.size());
  const bool has_mean = model.kind() == contract::Family::kGpt2;
  const double mean = has_mean ? std::accumulate(row.begin(), row.end(), 0.0) / width : 0;
  double squares = 0;
  for (double& value : row) squares += std::pow(value -= mean, 2);
  for (double& value : row) value *= std::sqrt(width / squares);
  return row;
}

Row RandomRow(const ModelSpec& model, uint64_t seed) {
  Row row;
  for (int64_t i = 0; i < model.real().width; ++i) {
    const uint64_t word = contract::Mix(seed * 1000003 + static_cast<uint64_t>(i));
    row.push_back(std::ldexp(static_cast<double>(word), -63) - 1);
  }
  return Normalised(model, row);
}

// The norm's output for a normalised row.
Row Output(const ModelSpec& model, const State& state, const std::string& norm, const Row& normalised) {
  const Row weight = Column(model, state, norm + ".weight", 0, 1);
  Row output;
  for (size_t i = 0; i < normalised.size(); ++i) output.push_back(normalised[i] * weight[i]);
  if (model.kind() != contract::Family::kGpt2) return output;
  const Row bias = Column(model, state, norm + ".bias", 0, 1);
  for (size_t i = 0; i < output.size(); ++i) output[i] += bias[i];
  return output;
}

double Dot(const Row& a, const Row& b) { return std::inner_product(a.begin(), a.end(), b.begin(), 0.0); }

double Magnitudes(const Row& a, const Row& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += std::abs(a[i] * b[i]);
  return sum;
}

void ExpectEqualBut(const ModelSpec& model, const State& one, const State& other, const std::string& part) {
  const auto parameters = contract::Parameters(model);
  for (size_t i = 0; i < parameters.size(); ++i) {
    EXPECT_EQ(one[i].master == other[i].master, parameters[i].name.find(part) == std::string::npos)
        << parameters[i].name;
    EXPECT_EQ(one[i].moment, other[i].moment);
  }
}

TEST(ShiftedLogits, AddOneVectorToEveryRowOfTheHeadToTheLastBitAndNothingElse) {
  for (const ModelSpec& model : kUntied) {
    for (uint64_t seed = 1; seed <= 20; ++seed) {
      const State initial = Initial(model, seed);
      const ShiftedStarts starts = ShiftedLogits(model, initial);
      ExpectEqualBut(model, starts.whole, starts.shifted, "head.weight");
      ExpectEqualBut(model, starts.whole, initial, "head.weight");
      const auto width = static_cast<size_t>(model.real().width);
      const Row added = Column(model, starts.shifted, "head.weight", 0, 1);
      const Row first = Column(model, starts.whole, "head.weight", 0, 1);
      for (size_t row = 1; row < static_cast<size_t>(model.real().vocab); ++row) {
        const Row before = Column(model, starts.whole, "head.weight", row * width, 1);
        const Row after = Column(model, starts.shifted, "head.weight", row * width, 1);
        for (size_t i = 0; i < width; ++i) ASSERT_EQ(after[i] - before[i], added[i] - first[i]) << row << " " << i;
      }
    }
  }
}

// Of many tokens: logits that are shifted beyond the range in both directions, a second largest that is out of range
// of the largest, and no sum of terms above the bound, which one row meets.
TEST(ShiftedLogits, AreFarApartAndMoveBeyondTheRangeOfAnExponential) {
  for (const ModelSpec& model : kUntied) {
    const ShiftedStarts starts = ShiftedLogits(model, Initial(model, 3));
    constexpr int kTokens = 200;
    int up = 0, down = 0, apart = 0;
    double largest = 0;
    const auto width = static_cast<size_t>(model.real().width);
    for (int token = 0; token < kTokens; ++token) {
      const Row hidden = Output(model, starts.whole, "norm", RandomRow(model, static_cast<uint64_t>(token)));
      Row logits;
      for (size_t row = 0; row < static_cast<size_t>(model.real().vocab); ++row) {
        const Row weights = Column(model, starts.whole, "head.weight", row * width, 1);
        const Row shifted = Column(model, starts.shifted, "head.weight", row * width, 1);
        logits.push_back(Dot(hidden, weights));
        largest = std::max({largest, Magnitudes(hidden, weights), Magnitudes(hidden, shifted)});
        if (row > 0) continue;
        up += Dot(hidden, shifted) - Dot(hidden, weights) > kOverflow;
        down += Dot(hidden, shifted) - Dot(hidden, weights) < kUnderflow;
      }
      std::sort(logits.begin(), logits.end());
      apart += logits.back() - logits[logits.size() - 2] > kOverflow;
    }
    EXPECT_GT(up, kTokens / 10);
    EXPECT_GT(down, kTokens / 10);
    EXPECT_GT(apart, kTokens / 3);
    EXPECT_LE(largest, starts.shift.largest);
    EXPECT_GT(largest, 0.5 * starts.shift.largest);
    EXPECT_GT(starts.shift.least_loss, kOverflow);
  }
}

TEST(ShiftedScores, AddOneVectorToTheKeysOfALayerAndNothingElse) {
  for (const ModelSpec& model : kModels) {
    const State initial = Initial(model, 5);
    const ShiftedStarts starts = ShiftedScores(model, initial);
    ExpectEqualBut(model, starts.whole, starts.shifted, "attn.qkv.bias");
    ExpectEqualBut(model, starts.whole, initial, "attn.qkv.bias");
    for (const std::string layer : {"layers.0.", "layers.1."}) {
      for (size_t part : {0u, 1u, 2u}) {
        const size_t begin = part * static_cast<size_t>(model.real().width);
        const Row before = Column(model, starts.whole, layer + "attn.qkv.bias", begin, 1);
        EXPECT_EQ(before == Column(model, starts.shifted, layer + "attn.qkv.bias", begin, 1), part != 1);
        EXPECT_EQ(before == Column(model, initial, layer + "attn.qkv.bias", begin, 1), part != 0);
      }
    }
  }
}

TEST(ShiftedScores, MoveBeyondTheRangeOfAnExponentialUpInOneHeadAndDownInTheNext) {
  for (const ModelSpec& model : kModels) {
    const ShiftedStarts starts = ShiftedScores(model, Initial(model, 7));
    const auto width = static_cast<size_t>(model.real().width),
               head_width = static_cast<size_t>(model.real().width / model.real().heads);
    double largest = 0;
    for (uint64_t token = 0; token < 100; ++token) {
      for (const std::string layer : {"layers.0.", "layers.1."}) {
        const Row input = Output(model, starts.whole, layer + "norm1", RandomRow(model, token));
        const auto projected = [&](const State& state, size_t column) {
          return Dot(input, Column(model, state, layer + "attn.qkv.weight", column, 3 * width)) +
                 double{state[IndexOf(model, layer + "attn.qkv.bias")].master[column]};
        };
        for (size_t begin = 0; begin < width; begin += head_width) {
          double moved = 0, magnitudes = 0;
          for (size_t i = begin; i < begin + head_width; ++i) {
            const double query = projected(starts.shifted, i), key = projected(starts.shifted, width + i);
            moved += query * (key - projected(starts.whole, width + i));
            magnitudes += std::abs(query * key);
          }
          const double root = std::sqrt(static_cast<double>(head_width));
          const bool up = begin / head_width % 2 == 0;
          EXPECT_TRUE(up ? moved / root > kOverflow : moved / root < kUnderflow) << moved / root;
          largest = std::max(largest, magnitudes / root);
        }
      }
    }
    EXPECT_LE(largest, starts.shift.largest);
    EXPECT_GT(largest, 0.5 * starts.shift.largest);
    EXPECT_EQ(starts.shift.least_loss, 0) << "scores need not be far apart";
  }
}

}  // namespace
}  // namespace plumbline::conformance
