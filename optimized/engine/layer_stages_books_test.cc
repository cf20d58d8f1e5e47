// SPDX-License-Identifier: Apache-2.0
// Calls, bytes, their order and peaks of memory where layers have ZeRO stages of their own, against docs/formats.md,
// "Layers of different stages": of one layout by hand, of all others by a second writing of the text.
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "optimized/comm/ledger.h"
#include "optimized/engine/testing/expected_books.h"
#include "optimized/engine/testing/expected_order.h"
#include "optimized/engine/testing/real_case.h"
#include "optimized/engine/testing/small_case.h"

namespace plumbline::optimized {
namespace {

using contract::CaseData;
using contract::DType;
using testing::Call;
using testing::CallKind;
using testing::ExpectedOrder;
using testing::Layout;
using testing::Peaks;

constexpr auto kAllReduce = CallKind::kAllReduce;
constexpr auto kReduceScatter = CallKind::kReduceScatter;
constexpr auto kAllGather = CallKind::kAllGather;

struct Books {
  std::map<std::string, contract::CommCount> comm;
  std::string sequence;
  Peaks peaks;
  int64_t gathered_between_steps = 0;
};

using Check = std::function<void(const Books&)>;

// Of each of two steps, on each rank.
void ForBooks(const CaseData& data, const Check& check) {
  testing::RunRanks(
      data,
      [&](Training& training) {
        auto& ledger = dynamic_cast<LedgerCommunicator&>(*training.communicator);
        for (int64_t step = 0; step < 2; ++step) {
          ledger.Take();
          testing::Step(training, step);
          const LedgerEntry entry = ledger.Take();
          Books books;
          books.comm = entry.by_kind;
          books.sequence = std::to_string(entry.sequence);
          for (const MemoryCategory category : kMemoryCategories) {
            books.peaks[std::string(Name(category))] = training.memory_ledger.of(category).peak_bytes;
          }
          books.gathered_between_steps = training.memory_ledger.of(MemoryCategory::kGatheredWeights).current_bytes;
          check(books);
        }
      },
      [](std::unique_ptr<Communicator> inner) { return std::make_unique<LedgerCommunicator>(std::move(inner)); });
}

std::string SequenceText(const std::vector<Call>& calls) { return std::to_string(testing::SequenceOf(calls)); }

// Family exact, two ranks, two micro-batches, fp32, a bucket for each set: layer 1 of stage 3, the two embeddings of
// stage 2, layer 0 of stage 1. A layer has 132, 132, 144, 48, 48 and 144 elements in this order, which begin at 0, 160,
// 320, 480, 544 and 608: 752 elements, in multiples of 64 768. The embeddings have 60 and 156, from 0 and 64: 220, 256.
TEST(LayerStagesBooks, OfThreeStagesByHand) {
  const CaseData data = testing::MakeCase(
      {.data_degree = 2, .zero_stage = 2, .accumulation = 2, .limits = {true, 0, 0, 0}, .layer_stages = {1, 3}});
  const std::vector<Call> calls = {{kAllReduce, 8},  // tokens
                                   {kAllGather, 3072},     {kAllGather, 3072},
                                   {kReduceScatter, 3072},  // layer 1 forward, backward, its gradients
                                   {kReduceScatter, 1024},  // the embeddings, but not layer 0
                                   {kAllGather, 3072},     {kAllGather, 3072},
                                   {kReduceScatter, 3072},                          // the second micro-batch
                                   {kReduceScatter, 3072}, {kReduceScatter, 1024},  // now layer 0, too
                                   {kAllReduce, 8},                                 // the loss
                                   {kAllGather, 1024},     {kAllGather, 3072}};     // the embeddings, layer 0
  ForBooks(data, [&](const Books& books) {
    EXPECT_EQ(books.sequence, SequenceText(calls));
    EXPECT_EQ(books.comm.at("all_reduce"), (contract::CommCount{2, 16}));
    EXPECT_EQ(books.comm.at("reduce_scatter"), (contract::CommCount{5, 3 * 3072 + 2 * 1024}));
    EXPECT_EQ(books.comm.at("all_gather"), (contract::CommCount{6, 5 * 3072 + 1024}));
    Peaks peaks = books.peaks;
    peaks.erase("activations");
    EXPECT_EQ(peaks, (Peaks{{"weights", 4 * (768 / 2 + 256 + 768)},
                            {"gathered_weights", 4 * 768},
                            {"gradients", 4 * (768 + 256 + 768) + 4 * (768 + 256 + 768) / 2},
                            {"optimizer_state", 4 * 2 * (768 + 256 + 768) / 2},
                            {"communication", 4 * (768 + 256) / 2}}));
  });
}

// Layer 0 of stage 0 is whole on both ranks; the embeddings are persistent at stage 3, and layer 1 is of stage 3.
TEST(LayerStagesBooks, OfAWholeLayerAndPersistentParametersByHand) {
  const CaseData data = testing::MakeCase({.data_degree = 2,
                                           .zero_stage = 3,
                                           .accumulation = 2,
                                           .storage = DType::kBF16,
                                           .limits = {true, 0, 157, 0},
                                           .layer_stages = {0, 3}});
  // All parameters have at most 156 elements: no group, no gather before the update.
  const std::vector<Call> calls = {
      {kAllReduce, 8},        {kReduceScatter, 4096},  // the persistent ones of both micro-batches
      {kAllReduce, 3072},                              // layer 0 in the last one, before the embeddings end those
      {kReduceScatter, 4096}, {kAllReduce, 8},        {kAllGather, 2048}};
  // Persistent: layer 1 ends at 752; 60 from 768, 156 from 832, to 988: 1024.
  ForBooks(data, [&](const Books& books) {
    EXPECT_EQ(books.sequence, SequenceText(calls));
    Peaks peaks = books.peaks;
    peaks.erase("activations");
    EXPECT_EQ(peaks, (Peaks{{"weights", 2 * (1024 + 768)},
                            {"gathered_weights", 0},
                            {"gradients", 4 * (1024 + 768) + 4 * 1024 / 2},
                            {"optimizer_state", 4 * 2 * (1024 / 2 + 768)},
                            {"communication", 4 * 1024 / 2}}));
  });
}

void ExpectText(const CaseData& data, const std::string& what) {
  const std::string sequence = data.spec.config.data_degree == 1 ? "0" : SequenceText(ExpectedOrder(data).Step());
  const auto comm = testing::ExpectedComm(data);
  const Peaks peaks = testing::ExpectedPeaks(data);
  ForBooks(data, [&](const Books& books) {
    EXPECT_EQ(books.sequence, sequence) << what;
    EXPECT_EQ(books.comm, comm) << what;
    EXPECT_EQ(books.peaks, peaks) << what;
    EXPECT_EQ(books.gathered_between_steps, 0) << what;
  });
}

// All stages of all else and of two layers; ranks, micro-batches, buckets and limits are dealt out in turn.
std::vector<Layout> AllStages() {
  const std::vector<testing::Limits> limits = {
      {true, 0, 0, 0}, {false, 0, 61, 0}, {true, 0, 13, 1'000'000}, {true, 0, 0, 1'000'000}};
  std::vector<Layout> layouts;
  for (int64_t code = 0; code < 64; ++code) {
    for (int64_t turn = 0; turn < 4; ++turn) {
      const int64_t i = code + code / 4 + code / 16 + turn;  // every stage meets every turn
      layouts.push_back({.data_degree = 1 + i % 3,
                         .zero_stage = code % 4,
                         .accumulation = 1 + turn % 2,
                         .storage = turn < 2 ? DType::kF32 : DType::kBF16,
                         .bucket_elems = std::vector<int64_t>{1, 200, 300, testing::kNoLimit}[i % 4],
                         .limits = limits[(i / 2) % 4],
                         .layer_stages = {code / 4 % 4, code / 16}});
    }
  }
  return layouts;
}

TEST(LayerStagesBooks, OfFamilyExactFollowTheTextForAllStages) {
  for (const Layout& layout : AllStages()) ExpectText(testing::MakeCase(layout), testing::Text(layout));
}

std::vector<std::string> ParametersOfLayerOne(const testing::RealOptions& options) {
  std::vector<std::string> names;
  for (const contract::ParameterSpec& p : testing::MakeRealCase({}, options).parameters) {
    if (p.layer == 1) names.push_back(p.name);
  }
  return names;
}

void ExpectTextOfFamily(contract::Family family) {
  using contract::OptimizerKind;
  const std::vector<testing::RealOptions> variants = {
      {.family = family},
      {.family = family, .optimizer = OptimizerKind::kLamb, .tied_head = false, .unused = false},
      {.family = family, .optimizer = OptimizerKind::kLion, .adaptive_clipping = testing::kUnitClipping},
      {.family = family,
       .optimizer = OptimizerKind::kLamb,
       .frozen = ParametersOfLayerOne({.family = family}),
       .adaptive_clipping = testing::kUnitClipping}};
  size_t i = 0;
  for (const Layout& layout : AllStages()) {
    const testing::RealOptions& options = variants[(i + i / 4) % 4];
    ++i;
    CaseData data = testing::MakeRealCase(layout, options);
    data.spec.config.groups[0].clip = options.adaptive_clipping.kind != contract::AdaptiveClipping::Kind::kUnit;
    ExpectText(data, testing::Text(layout) + " " + Text(options));
  }
}

TEST(LayerStagesBooks, OfGpt2FollowTheTextForAllStages) { ExpectTextOfFamily(contract::Family::kGpt2); }

TEST(LayerStagesBooks, OfLlamaFollowTheTextForAllStages) { ExpectTextOfFamily(contract::Family::kLlama); }

// With everything frozen that a stage would shard, every rank has everything, and there is no sum over ranks.
TEST(LayerStagesBooks, OfAFrozenLayerHaveNoSumsForItsStage) {
  const testing::RealOptions options{.frozen = ParametersOfLayerOne({})};
  const CaseData data = testing::MakeRealCase({.data_degree = 2, .layer_stages = {0, 3}}, options);
  ForBooks(data, [&](const Books& books) {
    EXPECT_EQ(books.comm.size(), 1u);
    EXPECT_EQ(books.comm.at("all_reduce").calls, 3);  // tokens, gradients, loss
  });
  ExpectText(data, "layer 1 frozen");
}

}  // namespace
}  // namespace plumbline::optimized
