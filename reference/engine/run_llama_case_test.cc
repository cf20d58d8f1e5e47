// SPDX-License-Identifier: Apache-2.0
// Cases of family llama from their folder to OUT_DIR, read back with the contract's readers; and training on a real
// text.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "conformance/contract/batch_source.h"
#include "conformance/contract/case_file.h"
#include "conformance/contract/digest.h"
#include "conformance/contract/file_io.h"
#include "conformance/contract/tensor_file.h"
#include "conformance/contract/trace.h"
#include "reference/testing/real_case.h"
#include "reference/testing/run_real_case.h"
#include "reference/testing/small_llama.h"

namespace plumbline::reference {
namespace {

using contract::OptimizerKind;
using contract::TensorKind;

constexpr int64_t kBatch = 6;
constexpr int64_t kSteps = 4;

contract::LlamaSpec FullModel() {
  contract::LlamaSpec model = SmallLlama();
  model.unused = true;
  model.dropout = 0.25;
  model.unequal_lengths = true;
  model.frozen = {"layers.1.attn.v.weight", "layers.0.norm2.weight"};
  return model;
}

TEST(RunLlamaCase, WritesEveryTensorWholeIntoTraceAndDumpWithEqualHashes) {
  constexpr int64_t kFirst = 7;
  contract::CaseData data = MakeRealCase(FullModel(), RealConfig(OptimizerKind::kAdamW, kBatch), kSteps, kFirst);
  data.num_updates = 5;
  data.spec.dump_steps = {8};
  const std::filesystem::path out = OutDirOf(data);
  const contract::Trace trace = contract::ReadTrace(out, 0);
  EXPECT_TRUE(trace.complete);
  ASSERT_EQ(trace.steps.size(), static_cast<size_t>(kSteps));
  const contract::StepRecord& record = trace.steps[1];
  EXPECT_EQ(record.step, 8);
  int64_t weighted = 0;
  for (int64_t n = 0; n < kBatch * data.batches.positions; ++n)
    weighted += data.batches.loss_weights[static_cast<size_t>(data.batches.Index(8, 0, 0) + n)];
  EXPECT_EQ(record.tokens, weighted);
  EXPECT_GT(record.real->gradient_norm, 0);
  EXPECT_FALSE(record.real->skipped);
  const contract::TensorFile dump = contract::ReadTensorFile(out / "rank0" / "tensors-000008.safetensors");
  size_t num_dumped = 0;
  for (const TensorKind kind : contract::kTensorKinds) {
    const bool state = kind == TensorKind::kMaster || kind == TensorKind::kWeight;
    std::vector<contract::ParameterSpec> expected;
    for (const contract::ParameterSpec& parameter : data.parameters)
      if (state || !parameter.frozen) expected.push_back(parameter);
    ASSERT_EQ(record.of(kind).size(), expected.size()) << contract::Name(kind);
    for (size_t i = 0; i < expected.size(); ++i) {
      const contract::SliceDigest& slice = record.of(kind)[i];
      EXPECT_EQ(slice.tensor, expected[i].name);
      EXPECT_EQ(slice.begin, 0);
      EXPECT_EQ(slice.end, expected[i].numel());
      ++num_dumped;
      contract::Digest digest;
      int64_t index = 0;
      for (const double value : Doubles(dump.Find(std::string(contract::Name(kind)) + "/" + slice.tensor + "@0")))
        digest.AddBits(index++, std::bit_cast<uint64_t>(value));
      EXPECT_EQ(digest.hash, slice.digest.hash) << contract::Name(kind) << " " << slice.tensor;
    }
  }
  EXPECT_EQ(dump.tensors.size(), num_dumped);
}

// All files of a folder and what is in them.
std::map<std::string, std::string> Contents(const std::filesystem::path& folder) {
  std::map<std::string, std::string> contents;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
    if (entry.is_regular_file())
      contents[std::filesystem::relative(entry.path(), folder).string()] = contract::ReadFile(entry.path());
  return contents;
}

// Among what padding may hold is a token whose embedding is infinite, and which no sample has: padding that took any
// part would make the step's loss NaN.
TEST(RunLlamaCase, TokensAndLabelsAtPaddingChangeNothingInAnyOutput) {
  constexpr int32_t kInfinite = 3;
  contract::CaseData data = MakeRealCase(FullModel(), RealConfig(OptimizerKind::kAdamW, kBatch), kSteps);
  data.spec.dump_steps = {0, 1, 2, 3};
  for (int32_t& token : data.batches.tokens)
    if (token == kInfinite) token = 4;
  for (int64_t channel = 0; channel < data.spec.model.real().width; ++channel)
    data.real_state[0].master[static_cast<size_t>(kInfinite * data.spec.model.real().width + channel)] =
        std::numeric_limits<float>::infinity();
  const std::filesystem::path out = OutDirOf(data);
  const std::map<std::string, std::string> before = Contents(out);
  EXPECT_EQ(before.size(), 5u) << "a trace and four dumps";
  for (const contract::StepRecord& record : contract::ReadTrace(out, 0).steps) {
    EXPECT_TRUE(std::isfinite(record.loss));
    EXPECT_FALSE(record.real->skipped);
  }

  int64_t num_changed = 0;
  for (int64_t step = 0; step < kSteps; ++step) {
    for (int64_t sample = 0; sample < kBatch; ++sample) {
      for (int64_t t = data.batches.Length(step, sample); t < data.batches.positions; ++t) {
        const auto n = static_cast<size_t>(data.batches.Index(step, sample, t));
        data.batches.tokens[n] = t % 2 == 0 ? kInfinite : (data.batches.tokens[n] + 1) % 11;
        data.batches.labels[n] = (data.batches.labels[n] + 5) % 11;
        ++num_changed;
      }
    }
  }
  EXPECT_GT(num_changed, 20);
  EXPECT_EQ(Contents(OutDirOf(data)) == before, true) << "padding changed an output";
}

// Each sample's tokens and labels do reach the output, its last one too.
TEST(RunLlamaCase, TheLastTokenAndLabelOfASampleCount) {
  contract::LlamaSpec model = FullModel();
  model.dropout = 0;
  contract::CaseData data = MakeRealCase(model, RealConfig(OptimizerKind::kAdamW, kBatch), 1);
  int64_t sample = 0;
  while (data.batches.Length(0, sample) < 2 || data.batches.Length(0, sample) == data.batches.positions) ++sample;
  const auto last = static_cast<size_t>(data.batches.Index(0, sample, data.batches.Length(0, sample) - 1));
  data.batches.loss_weights[last] = 1;
  const auto loss = [&] { return contract::ReadTrace(OutDirOf(data), 0).steps[0].loss; };
  const double first = loss();
  data.batches.labels[last] = (data.batches.labels[last] + 1) % 11;
  const double second = loss();
  EXPECT_NE(first, second);
  data.batches.tokens[last] = (data.batches.tokens[last] + 1) % 11;
  EXPECT_NE(loss(), second);
}

// The repository's licence as bytes. Batches are drawn anew in every step, so the loss is compared by means of five.
TEST(RunLlamaCase, LearnsARealTextInTwentySteps) {
  contract::LlamaSpec model;
  model.layers = 2;
  model.width = 24;
  model.heads = 6;
  model.kv_heads = 2;
  model.positions = 16;
  model.hidden = 64;
  model.vocab = 61;
  model.unequal_lengths = true;
  contract::RunConfig config = RealConfig(OptimizerKind::kAdamW, 12);
  config.params.lr = 1e-2;
  contract::CaseData data = MakeRealCase(model, config, 20);
  data.batches = contract::MakeBatches(contract::ReadTokenSource("LICENSE"), model, {1, 0, 20, 12});
  const contract::Trace trace = contract::ReadTrace(OutDirOf(data), 0);
  const auto mean = [&](size_t first) {
    double sum = 0;
    for (size_t step = first; step < first + 5; ++step) sum += trace.steps[step].loss;
    return sum / 5;
  };
  // Before the first update the model knows nothing: about ln 61 = 4.11.
  EXPECT_NEAR(trace.steps[0].loss, std::log(61.0), 0.1);
  EXPECT_LT(mean(15), mean(0) - 0.4);
  EXPECT_LT(mean(15), mean(5));
}

}  // namespace
}  // namespace plumbline::reference
