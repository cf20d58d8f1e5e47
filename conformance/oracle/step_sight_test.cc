// SPDX-License-Identifier: Apache-2.0
// SeeStep on dumps that are written here, whole and sharded, and on everything that can be wrong with them.
#include "conformance/oracle/step_sight.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <fstream>
#include <functional>
#include <limits>
#include <tuple>

#include "conformance/contract/file_io.h"
#include "conformance/contract/tensor_file.h"
#include "conformance/contract/testing/temporary_folder.h"
#include "conformance/oracle/testing/example_step.h"
#include "conformance/oracle/testing/odd_numbers.h"

namespace plumbline::conformance {
namespace {

using contract::DType;
using contract::HostTensor;
using contract::TensorKind;
using reports::CheckOutcome;

constexpr int64_t kStep = 4;

contract::Case DumpCase(int64_t world, DType storage = DType::kF32) {
  contract::Case spec = ExampleRealCase(storage);
  spec.config.data_degree = world;
  spec.config.train_batch_size = 6 * world;
  spec.config.zero_stage = world > 1 ? 1 : 0;
  spec.first_step = kStep;
  spec.dump_steps = {kStep};
  return spec;
}

uint64_t ExampleBits(TensorKind kind, int64_t tensor, int64_t index, DType type) {
  ExampleNumbers numbers(static_cast<uint64_t>(static_cast<int64_t>(kind) * 100'000 + tensor * 1000 + index));
  const double value = numbers.Uniform() - 0.5;
  if (type == DType::kF64) return std::bit_cast<uint64_t>(value);
  const auto bits = std::bit_cast<uint32_t>(static_cast<float>(value));
  return type == DType::kBF16 ? bits >> 16 : bits;
}

bool IsKept(TensorKind kind, const contract::ParameterSpec& parameter) {
  return !parameter.frozen || kind == TensorKind::kMaster || kind == TensorKind::kWeight;
}

// What one rank leaves: its dump and the record of its trace. A test changes them before they are written.
struct RankOutput {
  contract::StepRecord record;
  contract::TensorFile dump;
};

// Weights whole on every rank, the rest in equal parts.
std::vector<RankOutput> ExampleOutputs(const contract::Case& spec, bool fp64 = false) {
  std::vector<RankOutput> outputs;
  const int64_t world = spec.config.world_size();
  for (int64_t rank = 0; rank < world; ++rank) {
    RankOutput& output = outputs.emplace_back();
    output.record.step = kStep;
    output.record.loss = 2.25;
    output.record.tokens = 40;
    output.record.real = contract::RealStep{{1e-3}, 0.5, false};
    for (TensorKind kind : contract::kTensorKinds) {
      const DType stored = kind == TensorKind::kWeight ? spec.config.storage : DType::kF32;
      const DType type = fp64 ? DType::kF64 : stored;
      const int64_t size = contract::SizeBytes(type);
      for (const auto& parameter : contract::Parameters(spec.model)) {
        if (!IsKept(kind, parameter)) continue;
        const bool whole = kind == TensorKind::kWeight;
        const int64_t begin = whole ? 0 : parameter.numel() * rank / world;
        const int64_t end = whole ? parameter.numel() : parameter.numel() * (rank + 1) / world;
        if (begin == end) continue;
        contract::SliceDigest slice{parameter.name, begin, end, {}};
        HostTensor tensor{std::string(contract::Name(kind)) + "/" + parameter.name + "@" + std::to_string(begin),
                          type,
                          {end - begin},
                          std::vector<std::byte>(static_cast<size_t>((end - begin) * size))};
        for (int64_t i = begin; i < end; ++i) {
          const uint64_t bits = ExampleBits(kind, parameter.tensor_id, i, type);
          slice.digest.AddBits(i, bits);
          std::memcpy(tensor.data.data() + static_cast<size_t>((i - begin) * size), &bits, static_cast<size_t>(size));
        }
        output.record.of(kind).push_back(slice);
        output.dump.tensors.push_back(std::move(tensor));
      }
    }
  }
  return outputs;
}

// Writes everything and looks at it.
SightResult See(const contract::Case& spec, const std::vector<RankOutput>& outputs) {
  const contract::testing::TemporaryFolder folder;
  for (size_t rank = 0; rank < outputs.size(); ++rank) {
    contract::TraceWriter trace(folder.path(), "example", static_cast<int64_t>(rank), spec.config);
    trace.Step(outputs[rank].record);
    trace.End(1);
    contract::WriteTensorFile(folder.path() / ("rank" + std::to_string(rank)) / "tensors-000004.safetensors",
                              outputs[rank].dump);
  }
  return SeeStep(spec, folder.path(), kStep);
}

void ExpectFail(const SightResult& result, const std::string& part) {
  EXPECT_EQ(result.check.outcome, CheckOutcome::kFail);
  EXPECT_FALSE(result.sight);
  EXPECT_NE(result.check.detail.find(part), std::string::npos) << result.check.detail;
}

TEST(SeeStep, PutsWholeTensorsTogetherFromTheSlicesOfAnyNumberOfRanks) {
  for (DType storage : {DType::kF32, DType::kBF16}) {
    for (int64_t world : {1, 2, 3, 7}) {
      const contract::Case spec = DumpCase(world, storage);
      const SightResult result = See(spec, ExampleOutputs(spec));
      ASSERT_TRUE(result.sight) << result.check.detail;
      EXPECT_EQ(result.check.name, "dump");
      EXPECT_EQ(result.sight->storage, storage);
      EXPECT_EQ(result.sight->step, kStep);
      EXPECT_EQ(result.sight->loss, 2.25);
      EXPECT_EQ(result.sight->tokens, 40);
      EXPECT_EQ(result.sight->real.gradient_norm, 0.5);
      int64_t elements = 0;
      for (TensorKind kind : contract::kTensorKinds) {
        for (const auto& parameter : contract::Parameters(spec.model)) {
          const auto& values = result.sight->of(kind)[static_cast<size_t>(parameter.tensor_id)];
          ASSERT_EQ(static_cast<int64_t>(values.size()), IsKept(kind, parameter) ? parameter.numel() : 0);
          for (size_t i = 0; i < values.size(); ++i) {
            const bool weight = kind == TensorKind::kWeight && storage == DType::kBF16;
            const auto bits = static_cast<uint32_t>(
                ExampleBits(kind, parameter.tensor_id, static_cast<int64_t>(i), weight ? DType::kBF16 : DType::kF32));
            ASSERT_EQ(values[i], std::bit_cast<float>(weight ? bits << 16 : bits));
          }
          elements += static_cast<int64_t>(values.size());
        }
      }
      EXPECT_GE(result.check.compared, elements);
    }
  }
}

TEST(SeeStep, TakesAnEngineThatComputesInFp64) {
  const contract::Case spec = DumpCase(1);
  const SightResult result = See(spec, ExampleOutputs(spec, true));
  ASSERT_TRUE(result.sight) << result.check.detail;
  EXPECT_EQ(result.sight->storage, DType::kF64);
  EXPECT_EQ(result.sight->of(TensorKind::kMaster)[1][2],
            std::bit_cast<double>(ExampleBits(TensorKind::kMaster, 1, 2, DType::kF64)));
}

TEST(SeeStep, KeepsNaNAndInfAndTakesThemForEqualBits) {
  const contract::Case spec = DumpCase(2);
  std::vector<RankOutput> outputs = ExampleOutputs(spec);
  for (RankOutput& output : outputs) {
    output.record.loss = std::numeric_limits<double>::quiet_NaN();
    output.record.real->gradient_norm = HUGE_VAL;
    for (size_t i = 0; i < output.dump.tensors.size(); ++i) {
      if (output.dump.tensors[i].name != "weight/embed.weight@0") continue;
      const float nan = std::numeric_limits<float>::quiet_NaN();
      contract::SliceDigest& slice = output.record.of(TensorKind::kWeight)[0];
      slice.digest.hash -=
          contract::Mix(contract::Mix(0x9E3779B97F4A7C15ull) + ExampleBits(TensorKind::kWeight, 0, 0, DType::kF32));
      slice.digest.AddBits(0, std::bit_cast<uint32_t>(nan));
      std::memcpy(output.dump.tensors[i].data.data(), &nan, sizeof(nan));
    }
  }
  const SightResult result = See(spec, outputs);
  ASSERT_TRUE(result.sight) << result.check.detail;
  EXPECT_TRUE(std::isnan(result.sight->of(TensorKind::kWeight)[0][0]));
  EXPECT_TRUE(std::isnan(result.sight->loss));
}

HostTensor& DumpedOf(RankOutput& output, TensorKind kind, size_t slice) {
  size_t before = 0;
  for (TensorKind other : contract::kTensorKinds) {
    if (other < kind) before += output.record.of(other).size();
  }
  return output.dump.tensors[before + slice];
}

// The digest that the trace lists becomes that of what is dumped.
void DigestAnew(RankOutput& output, TensorKind kind, size_t slice) {
  const HostTensor& tensor = DumpedOf(output, kind, slice);
  contract::SliceDigest& listed = output.record.of(kind)[slice];
  listed.digest = {};
  const auto size = static_cast<size_t>(contract::SizeBytes(tensor.dtype));
  for (int64_t i = listed.begin; i < listed.end; ++i) {
    uint64_t bits = 0;
    std::memcpy(&bits, tensor.data.data() + static_cast<size_t>(i - listed.begin) * size, size);
    listed.digest.AddBits(i, bits);
  }
}

// Changes one rank's slice and, unless it is about that, its digest in the trace.
void FlipBit(RankOutput& output, TensorKind kind, size_t slice, bool trace_too) {
  DumpedOf(output, kind, slice).data.back() ^= std::byte{1};
  if (trace_too) DigestAnew(output, kind, slice);
}

void PutFloat(RankOutput& output, TensorKind kind, size_t slice, float value) {
  std::memcpy(DumpedOf(output, kind, slice).data.data(), &value, sizeof(value));
  DigestAnew(output, kind, slice);
}

// The first element of a weight that both ranks hold: two ranks agree in every bit, NaNs too, or not at all.
TEST(SeeStep, TellsReplicasApartInEveryBitOfZerosSubnormalNumbersAndNaNs) {
  constexpr float kTiny = std::numeric_limits<float>::denorm_min();
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  const auto other_nan = std::bit_cast<float>(std::bit_cast<uint32_t>(nan) ^ 1);
  const float values[] = {0.0f, -0.0f, kTiny, -kTiny, 2 * kTiny, nan, -nan, other_nan, inf, -inf};
  const contract::Case spec = DumpCase(2);
  for (const float& a : values) {
    for (const float& b : values) {
      std::vector<RankOutput> outputs = ExampleOutputs(spec);
      PutFloat(outputs[0], TensorKind::kWeight, 0, a);
      PutFloat(outputs[1], TensorKind::kWeight, 0, b);
      const SightResult result = See(spec, outputs);
      if (&a != &b) {
        ExpectFail(result, "differs from rank 0's, first in element 0");
        continue;
      }
      ASSERT_TRUE(result.sight) << result.check.detail;
      const double seen = result.sight->of(TensorKind::kWeight)[0][0];
      EXPECT_TRUE(std::isnan(a) ? std::isnan(seen)
                                : std::bit_cast<uint64_t>(seen) == std::bit_cast<uint64_t>(double{a}));
    }
  }
}

TEST(SeeStep, TakesSlicesInOneDimensionOnly) {
  const contract::Case spec = DumpCase(1);
  const int64_t numel = ExampleOutputs(spec)[0].dump.tensors[0].shape[0];
  for (const std::vector<int64_t>& shape : std::vector<std::vector<int64_t>>{
           {numel, 1}, {1, numel}, {numel / 2, 2}, {1, numel, 1}, {numel - 1}, {1}, {0}, {0, numel}, {}}) {
    std::vector<RankOutput> outputs = ExampleOutputs(spec);
    HostTensor& tensor = outputs[0].dump.tensors[0];
    tensor.shape = shape;
    tensor.data.resize(static_cast<size_t>(tensor.numel()) * 4);
    ExpectFail(See(spec, outputs), "is not the slice of " + std::to_string(numel) + " elements, in one dimension");
  }
}

// No engine lists or dumps a slice without elements, and none of them covers a tensor.
TEST(SeeStep, FailsOnAnEmptySlice) {
  const contract::Case spec = DumpCase(1);
  std::vector<RankOutput> outputs = ExampleOutputs(spec);
  HostTensor& tensor = outputs[0].dump.tensors[0];
  contract::SliceDigest& listed = outputs[0].record.of(TensorKind::kGradient)[0];
  tensor.shape = {0};
  tensor.data.clear();
  listed.end = listed.begin;
  listed.digest = {};
  ExpectFail(See(spec, outputs), "allowed: an integer from 1 to");
}

TEST(SeeStep, FailsOnASliceThatTheTraceListsTwice) {
  const contract::Case spec = DumpCase(1);
  std::vector<RankOutput> outputs = ExampleOutputs(spec);
  outputs[0].record.of(TensorKind::kGradient).push_back(outputs[0].record.of(TensorKind::kGradient).front());
  ExpectFail(See(spec, outputs), "lists gradient/embed.weight@0 twice");
}

// Frozen, so that it has no gradient and no moments, and stored in bf16: 80 MB for both ranks.
TEST(SeeStep, FindsOneBitOfOneOfTenMillionElements) {
  contract::Case spec = DumpCase(2, DType::kBF16);
  spec.model.gpt2().vocab = 833'341;  // a prime
  spec.model.gpt2().frozen = {"embed.weight"};
  const int64_t numel = contract::Parameters(spec.model)[0].numel();
  ASSERT_GT(numel, 10'000'000);
  std::vector<RankOutput> outputs = ExampleOutputs(spec);
  FlipBit(outputs[1], TensorKind::kWeight, 0, false);
  ExpectFail(See(spec, outputs), "rank 1: weight/embed.weight@0 has another digest than the trace lists");
  DigestAnew(outputs[1], TensorKind::kWeight, 0);
  ExpectFail(See(spec, outputs),
             "rank 1: weight/embed.weight@0 differs from rank 0's, first in element " + std::to_string(numel - 1));
}

TEST(SeeStep, FailsWhenAReplicaDiffersInOneBitAndNamesTheElement) {
  const contract::Case spec = DumpCase(3);
  std::vector<RankOutput> outputs = ExampleOutputs(spec);
  FlipBit(outputs[2], TensorKind::kWeight, 1, true);
  ExpectFail(See(spec, outputs), "rank 2: weight/pos.weight@0 differs from rank 0's, first in element 83");
}

TEST(SeeStep, FailsWhenADumpIsNotWhatTheTraceLists) {
  const contract::Case spec = DumpCase(2);
  std::vector<RankOutput> outputs = ExampleOutputs(spec);
  FlipBit(outputs[1], TensorKind::kMoment, 3, false);
  ExpectFail(See(spec, outputs), "has another digest than the trace lists");
  outputs = ExampleOutputs(spec);
  outputs[0].dump.tensors.pop_back();
  ExpectFail(See(spec, outputs), "the dump has");
  outputs = ExampleOutputs(spec);
  outputs[0].dump.tensors[0].name = "gradient/embed.weight@1";
  ExpectFail(See(spec, outputs), "is in the dump and not in the trace");
  outputs = ExampleOutputs(spec);
  outputs[0].dump.tensors[0].shape = {outputs[0].dump.tensors[0].shape[0], 1};
  ExpectFail(See(spec, outputs), "in one dimension");
}

// Removes one slice from dump and trace alike.
void RemoveGradient(RankOutput& output, size_t slice) {
  output.dump.tensors.erase(output.dump.tensors.begin() + static_cast<int64_t>(slice));
  auto& listed = output.record.of(TensorKind::kGradient);
  listed.erase(listed.begin() + static_cast<int64_t>(slice));
}

TEST(SeeStep, FailsUnlessSlicesCoverEachTensorOnce) {
  const contract::Case spec = DumpCase(2);
  std::vector<RankOutput> outputs = ExampleOutputs(spec);
  RemoveGradient(outputs[0], 0);
  ExpectFail(See(spec, outputs), "begins where 0 elements are covered");
  outputs = ExampleOutputs(spec);
  RemoveGradient(outputs[1], 1);
  ExpectFail(See(spec, outputs), "the slices of gradient/pos.weight end at element 42");
  outputs = ExampleOutputs(spec);
  outputs[1].dump.tensors[0].name = "gradient/embed.weight@113";  // one element earlier, with the digest of that place
  contract::SliceDigest& listed = outputs[1].record.of(TensorKind::kGradient)[0];
  --listed.begin, --listed.end;
  listed.digest = {};
  for (int64_t i = 0; i < listed.end - listed.begin; ++i) {
    listed.digest.AddBits(listed.begin + i, ExampleBits(TensorKind::kGradient, 0, listed.begin + 1 + i, DType::kF32));
  }
  ExpectFail(See(spec, outputs), "overlaps another");
}

TEST(SeeStep, FailsOnTensorsThatTheCaseDoesNotHave) {
  contract::Case spec = DumpCase(1);
  const std::vector<RankOutput> outputs = ExampleOutputs(spec);
  spec.config.optimizer = contract::OptimizerKind::kSgd;
  ExpectFail(See(spec, outputs), "moment/embed.weight@0 is not one of this case");
  spec = DumpCase(1);
  spec.model.gpt2().frozen = {"norm.bias"};
  ExpectFail(See(spec, outputs), "gradient/norm.bias@0 is not one of this case");
  spec = DumpCase(1);
  spec.model.gpt2().unused = false;
  ExpectFail(See(spec, outputs), "unused.weight");
  spec = DumpCase(1);
  spec.model.gpt2().vocab = 20;
  ExpectFail(See(spec, outputs), "end at element 228; the tensor has 240");
}

TEST(SeeStep, FailsOnAnotherStorageType) {
  const contract::Case fp32 = DumpCase(1);
  const contract::Case bf16 = DumpCase(1, DType::kBF16);
  ExpectFail(See(fp32, ExampleOutputs(bf16)), "weight/embed.weight@0 is BF16; allowed: F32");
  ExpectFail(See(bf16, ExampleOutputs(fp32)), "weight/embed.weight@0 is F32; allowed: BF16");
  // As many bytes an element, and the same bits: only the name of the type tells them apart.
  for (const auto& [spec, kind, type] :
       {std::tuple(&fp32, TensorKind::kGradient, DType::kI32), std::tuple(&fp32, TensorKind::kMaster, DType::kI32),
        std::tuple(&fp32, TensorKind::kWeight, DType::kI32), std::tuple(&bf16, TensorKind::kWeight, DType::kF16),
        std::tuple(&bf16, TensorKind::kWeight, DType::kU16)}) {
    std::vector<RankOutput> outputs = ExampleOutputs(*spec);
    DumpedOf(outputs[0], kind, 0).dtype = type;
    ExpectFail(See(*spec, outputs), "@0 is " + std::string(contract::Name(type)) + "; allowed: ");
  }
  // What is not stored in the storage type is fp32 in every case.
  for (TensorKind kind : contract::kTensorKinds) {
    if (kind == TensorKind::kWeight) continue;
    std::vector<RankOutput> outputs = ExampleOutputs(bf16);
    HostTensor& tensor = DumpedOf(outputs[0], kind, 0);
    tensor.dtype = DType::kBF16;
    tensor.data.resize(tensor.data.size() / 2);
    DigestAnew(outputs[0], kind, 0);
    ExpectFail(See(bf16, outputs), "@0 is BF16; allowed: F32");
  }
  const contract::Case two = DumpCase(2);
  std::vector<RankOutput> mixed = ExampleOutputs(two);
  mixed[1] = ExampleOutputs(two, true)[1];
  ExpectFail(See(two, mixed), "others of its kind are F32");
}

TEST(SeeStep, FailsWhenRanksStateDifferentNumbers) {
  const contract::Case spec = DumpCase(3);
  const auto see = [&](const std::function<void(contract::StepRecord&)>& change) {
    std::vector<RankOutput> outputs = ExampleOutputs(spec);
    change(outputs[1].record);
    return See(spec, outputs);
  };
  ExpectFail(see([](contract::StepRecord& record) { record.loss = 2.5; }), "rank 1: loss differs");
  ExpectFail(see([](contract::StepRecord& record) { record.tokens = 41; }), "rank 1: tokens differs");
  ExpectFail(see([](contract::StepRecord& record) { record.real->lr = {2e-3}; }), "rank 1: lr differs");
  // In a trace every NaN and Inf is the same null.
  for (double value : kNotFinite) {
    ExpectFail(see([&](contract::StepRecord& record) { record.loss = value; }), "rank 1: loss differs");
    ExpectFail(see([&](contract::StepRecord& record) { record.real->gradient_norm = value; }), "gradient_norm differs");
  }
  ExpectFail(see([](contract::StepRecord& record) { record.real->skipped = true; }), "rank 1: skipped differs");
  ExpectFail(see([](contract::StepRecord& record) { record.real.reset(); }), "rank 1: the trace has no lr");
}

TEST(SeeStep, FailsOnMissingOrMalformedFilesWithoutThrowing) {
  const contract::Case spec = DumpCase(1);
  const contract::testing::TemporaryFolder folder;
  ExpectFail(SeeStep(spec, folder.path(), kStep), "trace.jsonl");
  std::vector<RankOutput> outputs = ExampleOutputs(spec);
  contract::TraceWriter trace(folder.path(), "example", 0, spec.config);
  trace.Step(outputs[0].record);
  trace.End(1);
  ExpectFail(SeeStep(spec, folder.path(), kStep), "tensors-000004.safetensors");
  ExpectFail(SeeStep(spec, folder.path(), kStep + 1), "does not have this step");
  contract::WriteFile(folder.path() / "rank0" / "tensors-000004.safetensors", "not a tensor file");
  ExpectFail(SeeStep(spec, folder.path(), kStep), "tensors-000004.safetensors");
  ExpectFail(SeeStep(DumpCase(2), folder.path(), kStep), "world is 1");
  outputs[0].record.real->lr = {1e-3, 1e-3};
  ExpectFail(See(spec, outputs), "lr has 2 entries");
}

}  // namespace
}  // namespace plumbline::conformance
