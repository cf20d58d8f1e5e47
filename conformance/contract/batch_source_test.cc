// SPDX-License-Identifier: Apache-2.0
// The data of a case against docs/exact-family.md, "Data", whose rules are written here a second time.
#include "conformance/contract/batch_source.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>
#include <stop_token>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "conformance/contract/file_io.h"
#include "conformance/contract/random_stream.h"
#include "conformance/contract/tensor_file.h"
#include "conformance/contract/testing/error_message.h"
#include "conformance/contract/testing/temporary_folder.h"

namespace plumbline::contract {
namespace {

using testing::ErrorMessage;
using testing::TemporaryFolder;

ExactSpec Model(int64_t positions, int64_t vocab = 19) {
  ExactSpec model;
  model.layers = 1;
  model.width = 6;
  model.heads = 3;
  model.kv_heads = 1;
  model.hidden = 5;
  model.positions = positions;
  model.vocab = vocab;
  return model;
}

// Bytes of which each differs from its neighbours, so that a label off by one shows.
TokenSource Text(int64_t length) {
  TokenSource source;
  source.reduce_modulo_vocab = true;
  for (int64_t i = 0; i < length; ++i) source.tokens.push_back(static_cast<int32_t>((i * 7 + i / 256) % 256));
  return source;
}

// Shapes (B, T) with prime, odd, indivisible and very divisible batches.
constexpr std::pair<int64_t, int64_t> kShapes[] = {{1, 8},  {2, 8},  {3, 7},  {4, 8}, {5, 9},
                                                   {6, 11}, {8, 16}, {12, 8}, {24, 9}};

std::vector<int32_t> StepOf(const std::vector<int32_t>& values, const Batches& batches, int64_t step) {
  const auto size = batches.batch * batches.positions;
  return {values.begin() + step * size, values.begin() + (step + 1) * size};
}

// Number of weighted tokens of each sample of a step.
std::vector<int64_t> WeightedTokens(const Batches& batches, int64_t step) {
  std::vector<int64_t> counts(static_cast<size_t>(batches.batch));
  for (int64_t sample = 0; sample < batches.batch; ++sample) {
    for (int64_t position = 0; position < batches.positions; ++position) {
      counts[static_cast<size_t>(sample)] +=
          batches.loss_weights[static_cast<size_t>(batches.Index(step, sample, position))] != 0;
    }
  }
  return counts;
}

bool Differ(const std::vector<int64_t>& counts) { return std::set<int64_t>(counts.begin(), counts.end()).size() > 1; }

TEST(NumWeightedTokens, IsTheLargestPowerOfTwoWithinTwoThirdsAndHalfOfThatInOddSteps) {
  for (int64_t batch = 1; batch <= 20; ++batch) {
    for (int64_t positions = 1; positions <= 40; ++positions) {
      const int64_t count = NumWeightedTokens(batch, positions, 6);
      int64_t expected = 0;
      for (int64_t power = 1; 3 * power <= 2 * batch * positions; power *= 2) expected = power;
      EXPECT_EQ(count, expected) << batch << " " << positions;
      EXPECT_EQ(NumWeightedTokens(batch, positions, 7), expected / 2) << batch << " " << positions;
    }
  }
}

TEST(MakeBatches, WeighsExactlyNTokensAndOneInEachSampleWithNOrFiveN) {
  for (const auto& [batch, positions] : kShapes) {
    const Batches batches = MakeBatches(Text(300), Model(positions), {1, 0, 200, batch});
    double expected = 0;  // half of all weighted tokens
    int64_t num_heavy = 0;
    for (int64_t step = 0; step < 200; ++step) {
      const int64_t n = NumWeightedTokens(batch, positions, step);
      expected += static_cast<double>(n) / 2;
      const std::vector<int64_t> counts = WeightedTokens(batches, step);
      int64_t total = 0;
      for (int64_t count : counts) {
        EXPECT_GE(count, 1);
        total += count;
      }
      EXPECT_EQ(total, n) << batch << " " << positions << " " << step;
      for (int64_t i = batches.Index(step, 0, 0); i < batches.Index(step + 1, 0, 0); ++i) {
        const int32_t weight = batches.loss_weights[static_cast<size_t>(i)];
        EXPECT_TRUE(weight == 0 || weight == n || weight == 5 * n) << weight;
        num_heavy += weight == 5 * n;
      }
    }
    // A fair bit for each of the tokens: within five standard deviations of a half.
    EXPECT_NEAR(static_cast<double>(num_heavy), expected, 5 * std::sqrt(expected / 2)) << batch << " " << positions;
  }
}

TEST(MakeBatches, CountsOfWeightedTokensDifferInEveryLayoutThatDividesTheBatch) {
  for (const auto& [batch, positions] : kShapes) {
    const Batches batches = MakeBatches(Text(300), Model(positions), {3, 0, 200, batch});
    int num_layouts = 0;
    for (int64_t a_degree = 1; a_degree <= batch; ++a_degree) {
      for (int64_t r_degree = 1; a_degree * r_degree <= batch; ++r_degree) {
        if (batch % (a_degree * r_degree) != 0 || a_degree * r_degree == 1) continue;
        ++num_layouts;
        const int64_t m = batch / (a_degree * r_degree);
        for (int64_t step = 0; step < 200; ++step) {
          const std::vector<int64_t> counts = WeightedTokens(batches, step);
          std::vector<int64_t> micro, ranks(static_cast<size_t>(r_degree)),
              accumulations(static_cast<size_t>(a_degree));
          for (int64_t a = 0; a < a_degree; ++a) {
            for (int64_t r = 0; r < r_degree; ++r) {
              int64_t count = 0;
              for (int64_t i = 0; i < m; ++i) count += counts[static_cast<size_t>((a * r_degree + r) * m + i)];
              micro.push_back(count);
              ranks[static_cast<size_t>(r)] += count;
              accumulations[static_cast<size_t>(a)] += count;
            }
          }
          ASSERT_TRUE(Differ(micro)) << batch << " " << a_degree << " " << r_degree << " " << step;
          if (r_degree > 1) {
            ASSERT_TRUE(Differ(ranks)) << batch << " " << a_degree << " " << r_degree << " " << step;
          }
          if (a_degree > 1) {
            ASSERT_TRUE(Differ(accumulations)) << batch << " " << a_degree << " " << r_degree << " " << step;
          }
        }
      }
    }
    EXPECT_EQ(num_layouts > 0, batch > 1);
  }
}

// The choice of the document for one attempt: rank all positions by their word, first the best of each sample.
std::vector<int32_t> WeightsOfAttempt(uint64_t seed, int64_t step, int64_t batch, int64_t positions, int64_t attempt) {
  const int64_t n = NumWeightedTokens(batch, positions, step);
  std::vector<std::tuple<bool, uint32_t, int64_t>> order;  // not the best of its sample, word, index
  for (int64_t sample = 0; sample < batch; ++sample) {
    std::pair<uint32_t, int64_t> best{~uint32_t{0}, -1};
    for (int64_t i = sample * positions; i < (sample + 1) * positions; ++i) {
      const std::pair<uint32_t, int64_t> key{Draw(seed, Site::kPositionRank, step, attempt, i), i};
      if (best.second < 0 || key < best) best = key;
      order.emplace_back(true, key.first, i);
    }
    std::get<0>(order[static_cast<size_t>(best.second)]) = false;
  }
  std::sort(order.begin(), order.end());
  std::vector<int32_t> weights(static_cast<size_t>(batch * positions));
  for (int64_t k = 0; k < n; ++k) {
    const int64_t i = std::get<2>(order[static_cast<size_t>(k)]);
    const bool heavy = Draw(seed, Site::kLossWeight, step, attempt, i) >= 0x80000000u;
    weights[static_cast<size_t>(i)] = static_cast<int32_t>(heavy ? 5 * n : n);
  }
  return weights;
}

TEST(MakeBatches, TakesTheFirstAttemptThatIsAccepted) {
  int num_later_attempts = 0;
  for (const auto& [batch, positions] : kShapes) {
    const Batches batches = MakeBatches(Text(300), Model(positions), {11, 0, 20, batch});
    for (int64_t step = 0; step < 20; ++step) {
      const std::vector<int32_t> weights = StepOf(batches.loss_weights, batches, step);
      int64_t attempt = 0;
      while (attempt < 10'000 && WeightsOfAttempt(11, step, batch, positions, attempt) != weights) ++attempt;
      ASSERT_LT(attempt, 10'000) << "no attempt gives these weights";
      num_later_attempts += attempt > 0;
      // All earlier attempts have a layout with equal counts.
      for (int64_t earlier = 0; earlier < attempt; ++earlier) {
        Batches refused{1, batch, positions, {}, {}, WeightsOfAttempt(11, step, batch, positions, earlier)};
        const std::vector<int64_t> counts = WeightedTokens(refused, 0);
        bool equal_somewhere = false;
        for (int64_t a_degree = 1; a_degree <= batch; ++a_degree) {
          for (int64_t r_degree = 1; a_degree * r_degree <= batch; ++r_degree) {
            if (batch % (a_degree * r_degree) != 0 || a_degree * r_degree == 1) continue;
            const int64_t m = batch / (a_degree * r_degree);
            std::vector<int64_t> micro(static_cast<size_t>(a_degree * r_degree)), ranks(static_cast<size_t>(r_degree)),
                accumulations(static_cast<size_t>(a_degree));
            for (int64_t b = 0; b < batch; ++b) {
              micro[static_cast<size_t>(b / m)] += counts[static_cast<size_t>(b)];
              ranks[static_cast<size_t>(b / m % r_degree)] += counts[static_cast<size_t>(b)];
              accumulations[static_cast<size_t>(b / m / r_degree)] += counts[static_cast<size_t>(b)];
            }
            equal_somewhere |=
                !Differ(micro) || (r_degree > 1 && !Differ(ranks)) || (a_degree > 1 && !Differ(accumulations));
          }
        }
        EXPECT_TRUE(equal_somewhere) << batch << " step " << step << " attempt " << earlier;
      }
    }
  }
  EXPECT_GT(num_later_attempts, 10);
}

TEST(MakeBatches, IsAFunctionOfSeedStepAndSampleAlone) {
  const ExactSpec model = Model(7);
  const Batches ten = MakeBatches(Text(1000), model, {5, 0, 10, 6});
  const Batches sixty = MakeBatches(Text(1000), model, {5, 0, 60, 6});
  for (int64_t step = 0; step < 10; ++step) {
    EXPECT_EQ(StepOf(ten.tokens, ten, step), StepOf(sixty.tokens, sixty, step));
    EXPECT_EQ(StepOf(ten.labels, ten, step), StepOf(sixty.labels, sixty, step));
    EXPECT_EQ(StepOf(ten.loss_weights, ten, step), StepOf(sixty.loss_weights, sixty, step));
  }
  // The tokens of a sample do not depend on how many samples there are.
  const Batches small = MakeBatches(Text(1000), model, {5, 0, 10, 3});
  for (int64_t i = 0; i < 3 * 7; ++i)
    EXPECT_EQ(small.tokens[static_cast<size_t>(i)], ten.tokens[static_cast<size_t>(i)]);
  EXPECT_NE(MakeBatches(Text(1000), model, {6, 0, 10, 6}).tokens, ten.tokens);
  EXPECT_NE(MakeBatches(Text(1000), model, {5 + (uint64_t{1} << 32), 0, 10, 6}).tokens, ten.tokens);
  EXPECT_NE(StepOf(ten.tokens, ten, 0), StepOf(ten.tokens, ten, 1));
}

TEST(MakeBatches, EndsSamplesOfUnequalLengthsWhereTheDocumentSays) {
  LlamaSpec model;
  model.layers = 1;
  model.width = 4;
  model.heads = model.kv_heads = 2;
  model.positions = 9;
  model.hidden = 3;
  model.vocab = 17;
  const Batches whole = MakeBatches(Text(300), model, {11, 4, 6, 24});
  model.unequal_lengths = true;
  const Batches batches = MakeBatches(Text(300), model, {11, 4, 6, 24});
  EXPECT_TRUE(whole.lengths.empty());
  ASSERT_EQ(batches.lengths.size(), 6u * 24);
  EXPECT_EQ(batches.tokens, whole.tokens);
  std::set<int64_t> longest;
  for (int64_t step = 4; step < 10; ++step) {
    const int64_t limit = 9 - 2 * ((step + 1) % 3);
    std::set<int64_t> seen;
    for (int64_t sample = 0; sample < 24; ++sample) {
      const int64_t length = batches.Length(step, sample);
      const uint64_t word = Draw(11, static_cast<Site>(23), step, 0, sample);
      EXPECT_EQ(length, 1 + static_cast<int64_t>(word * static_cast<uint64_t>(limit) >> 32));
      seen.insert(length);
      for (int64_t position = 0; position < 9; ++position) {
        const auto at = static_cast<size_t>(batches.Index(step, sample, position));
        EXPECT_EQ(batches.loss_weights[at], position < length ? whole.loss_weights[at] : 0);
      }
    }
    EXPECT_GT(seen.size(), 3u);
    longest.insert(*seen.rbegin());
  }
  EXPECT_GT(longest.size(), 1u) << "the longest sample changes from step to step";
}

TEST(MakeBatches, TakesTokensFromTheDrawnStartAndLabelsOneByteLaterModuloTheVocabulary) {
  const TokenSource text = Text(997);
  const ExactSpec model = Model(9, 19);
  const Batches batches = MakeBatches(text, model, {2, 0, 30, 5});
  EXPECT_EQ(batches.steps, 30);
  EXPECT_EQ(batches.batch, 5);
  EXPECT_EQ(batches.positions, 9);
  for (int64_t step = 0; step < 30; ++step) {
    for (int64_t sample = 0; sample < 5; ++sample) {
      const uint64_t word = Draw(2, Site::kSampleStart, step, 0, sample);
      const auto start = static_cast<size_t>(word * (997 - 9) >> 32);
      for (size_t t = 0; t < 9; ++t) {
        const auto at = static_cast<size_t>(batches.Index(step, sample, static_cast<int64_t>(t)));
        EXPECT_EQ(batches.tokens[at], text.tokens[start + t] % 19);
        EXPECT_EQ(batches.labels[at], text.tokens[start + t + 1] % 19);
      }
    }
  }
}

TEST(MakeBatches, ReachesTheFirstAndTheLastByteOfTheText) {
  // Of the 3 starts of T + 3 bytes; the last byte is a label only.
  TokenSource source;
  for (int32_t i = 0; i < 8 + 3; ++i) source.tokens.push_back(i);
  const Batches batches = MakeBatches(source, Model(8, 11), {4, 0, 50, 3});
  std::set<int32_t> first_tokens, last_labels;
  for (int64_t i = 0; i < 150; ++i) {
    first_tokens.insert(batches.tokens[static_cast<size_t>(i * 8)]);
    last_labels.insert(batches.labels[static_cast<size_t>(i * 8 + 7)]);
  }
  EXPECT_EQ(first_tokens, (std::set<int32_t>{0, 1, 2}));
  EXPECT_EQ(last_labels, (std::set<int32_t>{8, 9, 10}));
}

TEST(MakeBatches, AcceptsATextOfExactlyOneSampleAndItsLabel) {
  const Batches batches = MakeBatches(Text(9), Model(8, 256), {1, 0, 3, 2});
  for (int64_t i = 0; i < 3 * 2; ++i) {
    EXPECT_EQ(batches.tokens[static_cast<size_t>(i * 8)], 0);
    EXPECT_EQ(batches.labels[static_cast<size_t>(i * 8 + 7)], 8 * 7);
  }
  EXPECT_EQ(ErrorMessage(ErrorCode::kInvalidArgument,
                         [] {
                           MakeBatches(Text(8), Model(8), {1, 0, 3, 2});
                         }),
            "text: has 8 tokens; allowed: at least 9, one sample and its last label");
  EXPECT_EQ(ErrorMessage(ErrorCode::kInvalidArgument,
                         [] {
                           MakeBatches({}, Model(8), {1, 0, 3, 2});
                         }),
            "token file: has 0 tokens; allowed: at least 9, one sample and its last label");
}

TEST(MakeBatches, RefusesATokenOutsideTheVocabularyWhereNothingReducesIt) {
  TokenSource source = Text(100);
  source.reduce_modulo_vocab = false;
  for (int32_t& token : source.tokens) token %= 19;
  EXPECT_NO_THROW(MakeBatches(source, Model(8), {1, 0, 3, 2}));
  source.tokens[99] = 19;
  EXPECT_EQ(ErrorMessage(ErrorCode::kInvalidArgument,
                         [&] {
                           MakeBatches(source, Model(8), {1, 0, 3, 2});
                         }),
            "token file: token 99 is 19; allowed: 0 to 18, the vocabulary of the case");
  source.reduce_modulo_vocab = true;
  EXPECT_NO_THROW(MakeBatches(source, Model(8), {1, 0, 3, 2}));
}

TEST(MakeBatches, NeedsMoreWeightedTokensThanSamplesInOddSteps) {
  // B = 4, T = 6: two thirds of 24 are 16, in odd steps 8 > B. T = 5: 13, so N is 8 and 4.
  EXPECT_NO_THROW(MakeBatches(Text(100), Model(6), {1, 0, 20, 4}));
  EXPECT_EQ(ErrorMessage(ErrorCode::kInvalidArgument,
                         [] {
                           MakeBatches(Text(100), Model(5), {1, 0, 1, 4});
                         }),
            "model.positions is 5; allowed: enough for more weighted tokens than samples in odd steps");
}

TEST(MakeBatches, MakesNothingAfterAStopRequestAndTheSameBeforeOne) {
  std::stop_source stop;
  const BatchRequest request{5, 0, 3, 6};
  const std::optional<Batches> batches = MakeBatches(Text(100), Model(8), request, stop.get_token());
  ASSERT_TRUE(batches);
  EXPECT_EQ(batches->loss_weights, MakeBatches(Text(100), Model(8), request).loss_weights);
  stop.request_stop();
  EXPECT_FALSE(MakeBatches(Text(100), Model(8), request, stop.get_token()));
}

// A batch of so many divisors takes many seconds a step, most of them in the search for a layout without a difference.
TEST(MakeBatches, SeesAStopRequestWithinAStep) {
  std::stop_source stop;
  const std::jthread other([&] { stop.request_stop(); });
  EXPECT_FALSE(MakeBatches(Text(100), Model(6), {1, 0, 1, 720720}, stop.get_token()));
}

TEST(MakeBatches, RefusesABatchWithoutSamples) {
  for (int64_t batch : {int64_t{0}, int64_t{-1}}) {
    ErrorMessage(ErrorCode::kInvalidArgument, [&] { MakeBatches(Text(100), Model(8), {1, 0, 1, batch}); });
  }
}

TEST(ReadTokenSource, ReadsTextAsBytesAlsoBeyondAscii) {
  const TemporaryFolder folder;
  std::string text = "ab{\n";
  text += '\0';
  text += "\xff\x80";
  WriteFile(folder / "text", text);
  const TokenSource source = ReadTokenSource(folder / "text");
  EXPECT_TRUE(source.reduce_modulo_vocab);
  EXPECT_EQ(source.tokens, (std::vector<int32_t>{97, 98, 123, 10, 0, 255, 128}));
}

TEST(ReadTokenSource, ReadsATokenFileOfEachType) {
  const TemporaryFolder folder;
  const std::vector<int32_t> expected = {0, 1, 200};
  const auto write = [&](DType dtype, const auto& values) {
    HostTensor tensor{"tokens", dtype, {3}, std::vector<std::byte>(values.size() * sizeof(values[0]))};
    std::memcpy(tensor.data.data(), values.data(), tensor.data.size());
    WriteTensorFile(folder / "t", {{tensor}, {}});
  };
  write(DType::kU8, std::vector<uint8_t>{0, 1, 200});
  EXPECT_EQ(ReadTokenSource(folder / "t").tokens, expected);
  EXPECT_FALSE(ReadTokenSource(folder / "t").reduce_modulo_vocab);
  write(DType::kU16, std::vector<uint16_t>{0, 1, 200});
  EXPECT_EQ(ReadTokenSource(folder / "t").tokens, expected);
  write(DType::kI32, std::vector<int32_t>{0, 1, 200});
  EXPECT_EQ(ReadTokenSource(folder / "t").tokens, expected);
  write(DType::kI64, std::vector<int64_t>{0, 1, 200});
  EXPECT_EQ(ReadTokenSource(folder / "t").tokens, expected);
  write(DType::kF32, std::vector<float>{0, 1, 200});
  EXPECT_EQ(ErrorMessage(ErrorCode::kInvalidArgument, [&] { ReadTokenSource(folder / "t"); }),
            "t: tokens is of type F32; allowed: U8, U16, I32, I64");
  write(DType::kI64, std::vector<int64_t>{0, -1, 200});
  EXPECT_EQ(ErrorMessage(ErrorCode::kInvalidArgument, [&] { ReadTokenSource(folder / "t"); }),
            "t: token 1 is -1; allowed: 0 to 2^30");
  write(DType::kI64, std::vector<int64_t>{0, 1, int64_t{1} << 32});
  EXPECT_EQ(ErrorMessage(ErrorCode::kInvalidArgument, [&] { ReadTokenSource(folder / "t"); }),
            "t: token 2 is 4294967296; allowed: 0 to 2^30");
}

TEST(ReadTokenSource, DemandsExactlyOneTensorOfOneDimensionNamedTokens) {
  const TemporaryFolder folder;
  const std::string allowed = "; allowed: exactly one, tokens, of one dimension";
  const auto message = [&](const TensorFile& file) {
    WriteTensorFile(folder / "t", file);
    return ErrorMessage(ErrorCode::kInvalidArgument, [&] { ReadTokenSource(folder / "t"); });
  };
  const std::vector<int32_t> values = {1, 2, 3, 4};
  EXPECT_EQ(message({{}, {}}), "t: holds 0 tensors" + allowed);
  EXPECT_EQ(message({{MakeI32("tokens", {4}, values), MakeI32("x", {4}, values)}, {}}), "t: holds 2 tensors" + allowed);
  EXPECT_EQ(message({{MakeI32("token", {4}, values)}, {}}), "t: holds tensor \"token\" of 1 dimensions" + allowed);
  EXPECT_EQ(message({{MakeI32("tokens", {2, 2}, values)}, {}}), "t: holds tensor \"tokens\" of 2 dimensions" + allowed);
}

TEST(ReadTokenSource, RefusesAnEmptyAndAMissingFile) {
  const TemporaryFolder folder;
  WriteFile(folder / "empty", "");
  EXPECT_EQ(ErrorMessage(ErrorCode::kInvalidArgument, [&] { ReadTokenSource(folder / "empty"); }),
            (folder / "empty").string() + ": is empty; allowed: a text or token file");
  ErrorMessage(ErrorCode::kInvalidArgument, [&] { ReadTokenSource(folder / "absent"); });
}

// The interface: a file that begins like a safetensors file and parses as one is a token file, anything else is text.
TEST(ReadTokenSource, TakesWhatOnlyBeginsLikeATensorFileForText) {
  using namespace std::string_literals;
  const TemporaryFolder folder;
  for (const std::string& content :
       {"\x02\0\0\0\0\0\0\0{x rest"s, "\x05\0\0\0\0\0\0\0{\"a\": 1}"s, "\x02\0\0\0\0\0\0\0{}more"s,
        "\xff\0\0\0\0\0\0\0{}"s, "\0\0\0\0\0\0\0\0{}"s, "\x02\0\0\0\0\0\0\0[]"s, "{}"s, "12345678"s, "12345678{}"s}) {
    WriteFile(folder / "text", content);
    const TokenSource source = ReadTokenSource(folder / "text");
    EXPECT_TRUE(source.reduce_modulo_vocab) << content;
    EXPECT_EQ(source.tokens.size(), content.size());
    EXPECT_EQ(source.tokens[0], static_cast<unsigned char>(content[0]));
  }
}

TEST(MakeInitialState, DrawsWeightsAndMastersAsTheDocumentSays) {
  for (int64_t w : {1, 2}) {
    ExactSpec model = Model(8);
    model.weight_bound = w;
    const std::vector<ParameterSpec> parameters = Parameters(model);
    const uint64_t seed = (uint64_t{9} << 32) + 4;
    const std::vector<ParameterState> state = MakeInitialState(model, OptimizerKind::kModularMomentum, seed);
    ASSERT_EQ(state.size(), parameters.size());
    std::set<int64_t> weights, rests;
    for (size_t p = 0; p < state.size(); ++p) {
      ASSERT_EQ(static_cast<int64_t>(state[p].weight.size()), parameters[p].numel());
      ASSERT_EQ(state[p].master.size(), state[p].weight.size());
      for (size_t i = 0; i < state[p].weight.size(); ++i) {
        const auto id = static_cast<int64_t>(p);
        const auto element = static_cast<int64_t>(i);
        const int64_t weight = Below(Draw(seed, Site::kInitialWeight, 0, id, element), 2 * w + 1) - w;
        EXPECT_EQ(state[p].weight[i], weight);
        EXPECT_EQ(state[p].master[i], 8 * (weight + w) + Below(Draw(seed, Site::kInitialMaster, 0, id, element), 8));
        weights.insert(weight);
        rests.insert(state[p].master[i] % 8);
      }
      EXPECT_EQ(state[p].moment, std::vector<int64_t>(state[p].weight.size(), 0));
    }
    EXPECT_EQ(static_cast<int64_t>(weights.size()), 2 * w + 1);
    EXPECT_EQ(rests.size(), 8u);
  }
}

TEST(MakeInitialState, HasNoMomentsUnderModularSgd) {
  for (const ParameterState& state : MakeInitialState(Model(8), OptimizerKind::kModularSgd, 1)) {
    EXPECT_TRUE(state.moment.empty());
    EXPECT_FALSE(state.weight.empty());
  }
}

}  // namespace
}  // namespace plumbline::contract
