// SPDX-License-Identifier: Apache-2.0
#include "conformance/diagnosis/dump.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "conformance/contract/error.h"
#include "conformance/contract/tensor_file.h"
#include "conformance/contract/testing/temporary_folder.h"
#include "conformance/oracle/testing/example_run.h"

namespace plumbline::conformance {
namespace {

using contract::TensorKind;

TEST(Dump, IsReadRankByRankWithWhatTheTraceSays) {
  const contract::testing::TemporaryFolder folder;
  const contract::Case spec = ExampleCase(2, 1);
  for (int64_t rank = 0; rank < 2; ++rank) {
    contract::TraceWriter trace(folder.path(), "example", rank, spec.config);
    contract::StepRecord record;
    record.step = 3;
    record.loss = 5 + static_cast<double>(rank);
    trace.Step(record);
    const std::vector<int64_t> values = {rank, -7};
    const std::vector<float> floats = {0.5F, static_cast<float>(rank)};
    contract::TensorFile file;
    file.tensors.push_back(contract::MakeI64("gradient/pos.weight@" + std::to_string(2 * rank), {2}, values));
    file.tensors.push_back(contract::MakeF32("weight/embed.weight@0", {2}, floats));
    file.tensors.push_back(contract::MakeI64("gradient/nobody@0", {2}, values));
    file.tensors.push_back(contract::MakeI64("gradient/pos.weight@x", {2}, values));
    contract::WriteTensorFile(folder.path() / ("rank" + std::to_string(rank)) / "tensors-000003.safetensors", file);
  }
  const Dump dump = ReadDump(spec, folder.path(), 3);
  ASSERT_EQ(dump.records.size(), 2u);
  EXPECT_EQ(dump.records[1].loss, 6);
  const auto& slices = dump.of(TensorKind::kGradient, 1);
  ASSERT_EQ(slices.size(), 2u);
  EXPECT_EQ(slices[1].rank, 1);
  EXPECT_EQ(slices[1].begin, 2);
  EXPECT_EQ(slices[1].values, (Values{1, -7}));
  EXPECT_EQ(dump.of(TensorKind::kWeight, 0)[0].values, (Values{0.5, 0}));
  EXPECT_THROW(ReadDump(spec, folder.path(), 2), contract::Error);
}

// One tensor of a type that dumps have or might have: 1.5 or, of integers, 3; and -2.
template <typename Bits>
contract::HostTensor TensorOf(contract::DType dtype, const std::vector<Bits>& bits) {
  contract::HostTensor tensor{"weight/embed.weight@0", dtype, {static_cast<int64_t>(bits.size())}, {}};
  const auto* begin = reinterpret_cast<const std::byte*>(bits.data());
  tensor.data.assign(begin, begin + bits.size() * sizeof(Bits));
  return tensor;
}

Values ReadBack(contract::HostTensor tensor) {
  const contract::testing::TemporaryFolder folder;
  const contract::Case spec = ExampleCase(1, 0);
  contract::TraceWriter(folder.path(), "example", 0, spec.config);
  contract::WriteTensorFile(folder.path() / contract::DumpName(0, 3), {{std::move(tensor)}, {}});
  const Dump dump = ReadDump(spec, folder.path(), 3);
  const auto& slices = dump.of(TensorKind::kWeight, 0);
  return slices.empty() ? Values{} : slices[0].values;
}

TEST(Dump, ReadsTheNumbersOfEveryType) {
  using contract::DType;
  EXPECT_EQ(ReadBack(TensorOf<double>(DType::kF64, {1.5, -2})), (Values{1.5, -2}));
  EXPECT_EQ(ReadBack(TensorOf<float>(DType::kF32, {1.5F, -2})), (Values{1.5, -2}));
  EXPECT_EQ(ReadBack(TensorOf<uint16_t>(DType::kBF16, {0x3FC0, 0xC000})), (Values{1.5, -2}));
  EXPECT_EQ(ReadBack(TensorOf<uint16_t>(DType::kF16, {0x3E00, 0xC000, 0x0001, 0xFC00})),
            (Values{1.5, -2, 0x1p-24, -HUGE_VAL}));
  EXPECT_EQ(ReadBack(TensorOf<int64_t>(DType::kI64, {3, -2})), (Values{3, -2}));
  EXPECT_EQ(ReadBack(TensorOf<int32_t>(DType::kI32, {3, -2})), (Values{3, -2}));
  EXPECT_EQ(ReadBack(TensorOf<uint16_t>(DType::kU16, {3, 65534})), (Values{3, 65534}));
  EXPECT_EQ(ReadBack(TensorOf<uint8_t>(DType::kU8, {3, 254})), (Values{3, 254}));
}

TEST(Dump, LeavesOutSlicesThatBeginOutsideTheTensor) {
  for (const char* begin : {"-1", "1000000", "9223372036854775807", "99999999999999999999"}) {
    contract::HostTensor tensor = TensorOf<float>(contract::DType::kF32, {1, 2});
    tensor.name = std::string("weight/embed.weight@") + begin;
    EXPECT_EQ(ReadBack(tensor), Values{}) << begin;
  }
}

// Parts of a tensor on two ranks, listed by the trace in other parts; a family's digests are of integers or of bits.
TEST(Dump, FindsTheRanksWhoseTraceStatesOtherNumbersThanTheirDump) {
  for (const bool is_exact : {true, false}) {
    contract::Case spec = ExampleCase(2, 1);
    if (!is_exact) {
      contract::Gpt2Spec model;
      model.layers = model.width = model.heads = model.positions = model.hidden = 2;
      model.vocab = 3;
      spec.model = model;
      spec.config.optimizer = contract::OptimizerKind::kAdamW;
    }
    for (const int64_t wrong : {-1, 0, 1}) {
      const contract::testing::TemporaryFolder folder;
      for (int64_t rank = 0; rank < 2; ++rank) {
        const std::vector<float> values = {1.0F, -7.0F};
        contract::TraceWriter trace(folder.path(), "example", rank, spec.config);
        contract::StepRecord record;
        record.step = 3;
        if (!is_exact) record.real = contract::RealStep{{0.5}, 1, false};
        for (int64_t i = 0; i < 2; ++i) {
          const int64_t index = 2 * rank + i;
          contract::SliceDigest slice{"pos.weight", index, index + 1, {}};
          const float stated = values[static_cast<size_t>(i)] + (wrong == rank && i == 1 ? 1 : 0);
          if (is_exact) {
            slice.digest.Add(index, static_cast<int64_t>(stated));
          } else {
            slice.digest.AddBits(index, std::bit_cast<uint32_t>(stated));
          }
          record.of(TensorKind::kGradient).push_back(slice);
        }
        trace.Step(record);
        contract::TensorFile file;
        file.tensors.push_back(contract::MakeF32("gradient/pos.weight@" + std::to_string(2 * rank), {2}, values));
        contract::WriteTensorFile(folder.path() / contract::DumpName(rank, 3), file);
      }
      const Dump dump = ReadDump(spec, folder.path(), 3);
      EXPECT_EQ(RanksOfOtherTrace(dump, TensorKind::kGradient, 1, "pos.weight"),
                wrong < 0 ? std::vector<int64_t>{} : std::vector<int64_t>{wrong});
      EXPECT_EQ(RanksOfOtherTrace(dump, TensorKind::kGradient, 0, "embed.weight"), std::vector<int64_t>{});
    }
  }
}

const std::vector<DumpedSlice> kParts = {{0, 0, {1, 2, 3}}, {1, 3, {4, 5}}};

TEST(Dump, PartsOfRanksMakeTheWhole) {
  const auto whole = Assemble(kParts, 5, {});
  ASSERT_TRUE(whole);
  EXPECT_EQ(whole->values, (Values{1, 2, 3, 4, 5}));
  ASSERT_EQ(whole->held.size(), 2u);
  EXPECT_EQ(whole->held[1].rank, 1);
  EXPECT_EQ(whole->held[1].begin, 3);
  EXPECT_EQ(whole->held[1].end, 5);
}

TEST(Dump, OfReplicasTheOneThatIsWrongIsLookedAt) {
  const Values truth = {1, 2};
  const auto whole = Assemble({{0, 0, {1, 2}}, {1, 0, {1, 9}}, {2, 0, {1, 2}}}, 2, truth);
  ASSERT_TRUE(whole);
  EXPECT_EQ(whole->held[0].rank, 1);
  EXPECT_EQ(Assemble({{0, 0, {1, 5}}, {1, 0, {NAN, 2}}}, 2, truth)->held[0].rank, 1);
  EXPECT_EQ(Assemble({{0, 0, {1, 2}}, {1, 0, {1, 9}}}, 2, {})->held[0].rank, 0);
}

TEST(Dump, WhatDoesNotCoverIsNoTensor) {
  EXPECT_FALSE(Assemble(kParts, 6, {}));                               // too short
  EXPECT_FALSE(Assemble({{0, 1, {2, 3}}}, 3, {}));                     // a gap in front
  EXPECT_FALSE(Assemble({{0, 0, {1, 2, 3}}, {1, 2, {4, 5}}}, 5, {}));  // an overlap
  EXPECT_FALSE(Assemble({{0, 0, {1, 2, 3}}, {1, 0, {4, 5}}}, 3, {}));  // replicas of other sizes
  EXPECT_FALSE(Assemble({}, 3, {}));
}

TEST(Dump, DisagreementsAreFoundInTheOrderOfTheStep) {
  Dump dump;
  for (auto& kind : dump.slices) kind.resize(3);
  EXPECT_FALSE(FirstDisagreement(dump));
  const std::vector<DumpedSlice> differing = {{0, 0, {1}}, {1, 0, {2}}};
  dump.slices[static_cast<int>(TensorKind::kWeight)][0] = differing;
  EXPECT_EQ(FirstDisagreement(dump)->kind, TensorKind::kWeight);
  dump.slices[static_cast<int>(TensorKind::kGradient)][0] = differing;
  dump.slices[static_cast<int>(TensorKind::kGradient)][2] = differing;
  EXPECT_EQ(FirstDisagreement(dump)->kind, TensorKind::kGradient);
  EXPECT_EQ(FirstDisagreement(dump)->tensor, 2u);  // backward comes to the last one first
  dump.slices[static_cast<int>(TensorKind::kGradient)][2] = {{0, 0, {NAN}}, {1, 0, {NAN}}};
  EXPECT_EQ(FirstDisagreement(dump)->tensor, 0u);
}

TEST(Dump, RanksThatDifferAreNamedOnce) {
  const std::vector<DumpedSlice> slices = {{0, 0, {1, 2}}, {0, 2, {3}}, {1, 3, {4.5, 5.5}}, {2, 5, {NAN}}};
  EXPECT_EQ(DifferingRanks(slices, {1, 2, 3, 4, 5, 6}, 0), (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(DifferingRanks(slices, {1, 2, 3, 4, 5, 6}, 1), (std::vector<int64_t>{2}));
}

TEST(Dump, NormCountsReplicasOnce) {
  Dump dump;
  for (auto& kind : dump.slices) kind.resize(2);
  dump.slices[0][0] = {{0, 0, {3}}, {1, 0, {3}}};
  dump.slices[0][1] = {{0, 0, {0}}, {1, 1, {4}}};
  EXPECT_DOUBLE_EQ(GradientNorm(dump), 5);
  EXPECT_EQ(RankGradientNorms(dump, 2), (std::vector<double>{3, 5}));
}

}  // namespace
}  // namespace plumbline::conformance
