// SPDX-License-Identifier: Apache-2.0
// Whole cases of family gpt2, from folder to traces: the same bits for what must not change them, and traces, dumps and
// ledgers that say what docs/formats.md promises.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <numeric>
#include <optional>

#include "conformance/contract/tensor_file.h"
#include "optimized/backend/storage_types.h"
#include "optimized/engine/testing/case_run.h"
#include "optimized/engine/testing/real_case.h"
#include "optimized/engine/testing/same_bits.h"

namespace plumbline::optimized {
namespace {

namespace fs = std::filesystem;
using contract::CaseData;
using contract::CommCount;
using contract::DType;
using contract::OptimizerKind;
using contract::TensorKind;
using testing::Combine;
using testing::Combined;
using testing::ExpectSameBits;
using testing::FirstDifference;
using testing::kSteps;
using testing::Layout;
using testing::LayoutsOfStages;
using testing::MakeRealCase;
using testing::RealOptions;
using testing::RunInFreshFolders;
using testing::SameNumbers;

const std::vector<std::string> kFrozen = {"embed.weight", "layers.0.attn.qkv.weight", "layers.1.norm2.bias"};

// Every feature of the family, in every combination of two at least once.
std::vector<RealOptions> Variants() {
  return {
      {},
      {.optimizer = OptimizerKind::kSgd, .clipping = 0, .tied_head = false, .frozen = kFrozen},
      {.optimizer = OptimizerKind::kAdamW, .clipping = 100, .dropout = 0, .unused = false, .frozen = kFrozen},
      {.optimizer = OptimizerKind::kSgd, .momentum = 0, .dropout = 0, .tied_head = false, .unused = false},
      {.optimizer = OptimizerKind::kAdamW,
       .dropout = 0,
       .tied_head = false,
       .frozen = {"unused.weight", "norm.weight"}},
      {.optimizer = OptimizerKind::kSgd, .clipping = 100, .unused = false},
      {.optimizer = OptimizerKind::kLamb, .frozen = kFrozen},
      {.optimizer = OptimizerKind::kLion, .clipping = 0, .tied_head = false},
      {.optimizer = OptimizerKind::kAdam, .dropout = 0, .adaptive_clipping = testing::kUnitClipping},
  };
}

TEST(RunRealCase, EveryStageBucketAndLimitGivesTheSameBitsWithOneMicroBatch) {
  for (const RealOptions& options : Variants()) {
    for (const DType storage : {DType::kF32, DType::kBF16, DType::kF16}) {
      ExpectSameBits(LayoutsOfStages({0, 1, 2, 3}, 3, 1, storage), options);
    }
  }
}

// Of a norm (12), of the largest parameter (432), and of all of them.
TEST(RunRealCase, BucketsBelowAtAndAboveASizeGiveTheSameBits) {
  const CaseData data = MakeRealCase({});
  int64_t total = 0;
  for (const contract::ParameterSpec& p : data.parameters) total += p.numel();
  ExpectSameBits(
      LayoutsOfStages({0, 1, 2, 3}, 3, 1, DType::kBF16, {11, 12, 13, 431, 432, 433, total - 1, total, total + 1}), {});
}

// Stages 0 and 1 add a rank's micro-batches before the sum over ranks, 2 and 3 after it.
TEST(RunRealCase, StagesWithTheSameOrderOfSumsGiveTheSameBitsWithThreeMicroBatches) {
  for (const RealOptions& options : Variants()) {
    for (const DType storage : {DType::kF32, DType::kBF16}) {
      ExpectSameBits(LayoutsOfStages({0, 1}, 2, 3, storage), options);
      ExpectSameBits(LayoutsOfStages({2, 3}, 2, 3, storage), options);
    }
  }
}

TEST(RunRealCase, MoreRanksThanAlignmentUnitsOfATensorStillCover) {
  for (const RealOptions& options :
       {RealOptions{.frozen = kFrozen}, RealOptions{.optimizer = OptimizerKind::kSgd, .tied_head = false}}) {
    ExpectSameBits(LayoutsOfStages({0, 1, 2, 3}, 12, 1, DType::kF32), options);
  }
}

TEST(RunRealCase, TheSameCaseTwiceGivesTheSameBitsAndAnotherSeedDoesNot) {
  const CaseData data = MakeRealCase({4, 3, 3, DType::kBF16, 200, {true, 300, 13, 800}});
  const Combined once = Combine(RunInFreshFolders(data), data);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(FirstDifference(Combine(RunInFreshFolders(data), data), once), "");
  CaseData other = data;
  other.spec.seed += 1;  // of the dropout masks: state and batches are in the case
  EXPECT_EQ(FirstDifference(Combine(RunInFreshFolders(other), other), once), "losses");
}

TEST(RunRealCase, ListsEachKindForEachParameterThatHasIt) {
  for (const RealOptions& options : Variants()) {
    const CaseData data = MakeRealCase({3, 3, 1, DType::kBF16, 200, {true, 300, 13, 800}}, options);
    const Combined combined = Combine(RunInFreshFolders(data), data);
    size_t num_tensors = 0;
    for (int64_t step = 0; step < kSteps; ++step) {
      for (const contract::ParameterSpec& p : data.parameters) {
        const auto has = [&](TensorKind kind) { return combined.digests.contains({step, kind, p.name}); };
        EXPECT_TRUE(has(TensorKind::kWeight) && has(TensorKind::kMaster)) << p.name;
        EXPECT_EQ(has(TensorKind::kGradient), !p.frozen) << p.name;
        EXPECT_EQ(has(TensorKind::kMoment), !p.frozen && contract::HasMoment(data.spec.config)) << p.name;
        EXPECT_EQ(has(TensorKind::kSecondMoment), !p.frozen && contract::HasSecondMoment(data.spec.config)) << p.name;
        for (const TensorKind kind : contract::kTensorKinds) num_tensors += has(kind) ? 1 : 0;
      }
    }
    EXPECT_EQ(combined.digests.size(), num_tensors);
  }
}

// Values of a dumped tensor, widened.
std::vector<float> Values(const contract::HostTensor& tensor) {
  std::vector<float> values;
  for (int64_t i = 0; i < tensor.numel(); ++i) {
    VisitStorage(tensor.dtype, [&](auto value) {
      std::memcpy(&value, tensor.data.data() + i * static_cast<int64_t>(sizeof value), sizeof value);
      values.push_back(kernels::ToFloat(value));
    });
  }
  return values;
}

// (kind, tensor) -> the whole tensor, from the dumps of all ranks. Checks types, and digests against the trace's.
std::map<std::pair<TensorKind, std::string>, std::vector<float>> Dumped(const fs::path& out_dir, const CaseData& data,
                                                                        int64_t step) {
  std::map<std::pair<TensorKind, std::string>, std::vector<float>> whole;
  for (int64_t rank = 0; rank < data.spec.config.data_degree; ++rank) {
    const contract::TensorFile file = contract::ReadTensorFile(
        out_dir / ("rank" + std::to_string(rank)) / ("tensors-00000" + std::to_string(step) + ".safetensors"));
    const contract::Trace trace = contract::ReadTrace(out_dir, rank);
    size_t num_slices = 0;
    for (const TensorKind kind : contract::kTensorKinds) {
      for (const contract::SliceDigest& slice : trace.steps[step].of(kind)) {
        ++num_slices;
        const contract::HostTensor& tensor =
            file.Find(std::string(Name(kind)) + "/" + slice.tensor + "@" + std::to_string(slice.begin));
        EXPECT_EQ(tensor.dtype, kind == TensorKind::kWeight ? data.spec.config.storage : DType::kF32);
        const std::vector<float> values = Values(tensor);
        EXPECT_EQ(static_cast<int64_t>(values.size()), slice.end - slice.begin);
        contract::Digest digest;
        for (size_t i = 0; i < values.size(); ++i) {
          VisitStorage(tensor.dtype, [&](auto value) {
            value = kernels::FromFloat<decltype(value)>(values[i]);
            uint32_t bits = 0;
            std::memcpy(&bits, &value, sizeof value);
            digest.AddBits(slice.begin + static_cast<int64_t>(i), bits);
          });
        }
        EXPECT_EQ(digest.hash, slice.digest.hash) << slice.tensor;
        std::vector<float>& target = whole[{kind, slice.tensor}];
        target.resize(std::max(target.size(), static_cast<size_t>(slice.end)), NAN);
        std::ranges::copy(values, target.begin() + slice.begin);
      }
    }
    EXPECT_EQ(file.tensors.size(), num_slices);
  }
  return whole;
}

TEST(RunRealCase, DumpsHoldTheBitsOfTheTraceAsStoredInFiveKinds) {
  for (const DType storage : {DType::kF32, DType::kBF16, DType::kF16}) {
    CaseData data = MakeRealCase({3, 2, 1, storage, 300}, {.frozen = kFrozen});
    data.spec.dump_steps = {0, 2};
    const fs::path out_dir = RunInFreshFolders(data);
    EXPECT_FALSE(fs::exists(out_dir / "rank0" / "tensors-000001.safetensors"));
    for (const int64_t step : data.spec.dump_steps) {
      const auto dumped = Dumped(out_dir, data, step);
      for (const contract::ParameterSpec& p : data.parameters) {
        const std::vector<float>& master = dumped.at({TensorKind::kMaster, p.name});
        const std::vector<float>& weight = dumped.at({TensorKind::kWeight, p.name});
        ASSERT_EQ(static_cast<int64_t>(master.size()), p.numel());
        for (size_t i = 0; i < master.size(); ++i) {
          const float stored = VisitStorage(
              storage, [&](auto type) { return kernels::ToFloat(kernels::FromFloat<decltype(type)>(master[i])); });
          ASSERT_EQ(weight[i], stored) << p.name;
        }
        EXPECT_EQ(dumped.contains({TensorKind::kSecondMoment, p.name}), !p.frozen);
        if (p.frozen) {
          EXPECT_EQ(master, data.real_state[p.tensor_id].master);
        }
      }
    }
  }
}

// After the first update without clipping m = (1 - beta1) g, b = g + lambda p: g itself is what is dumped.
TEST(RunRealCase, TheDumpedGradientIsBeforeClippingAndWithoutWeightDecay) {
  const auto first_gradients = [](double clipping, OptimizerKind optimizer) {
    CaseData data = MakeRealCase({2, 2, 1}, {.optimizer = optimizer, .clipping = clipping});
    data.spec.dump_steps = {0};
    const fs::path out_dir = RunInFreshFolders(data);
    const contract::StepRecord record = contract::ReadTrace(out_dir, 0).steps[0];
    double squares = 0;
    std::map<std::string, std::vector<float>> gradients;
    for (const auto& [key, values] : Dumped(out_dir, data, 0)) {
      if (key.first != TensorKind::kGradient) continue;
      gradients[key.second] = values;
      for (const float value : values) squares += static_cast<double>(value) * value;
    }
    EXPECT_NEAR(record.real->gradient_norm, std::sqrt(squares), 1e-12 * std::sqrt(squares));
    EXPECT_GT(record.real->gradient_norm, 0.5);
    return gradients;
  };
  const auto free = first_gradients(0, OptimizerKind::kAdamW);
  EXPECT_EQ(first_gradients(0.5, OptimizerKind::kAdamW), free);
  EXPECT_EQ(first_gradients(0.5, OptimizerKind::kSgd), free);
  EXPECT_EQ(free.at("unused.weight"), std::vector<float>(15, 0.0f));
}

// The optimizer's rate is 0.01, of which `*.bias` has twice as much whatever the schedule.
TEST(RunRealCase, ReportsTheRatesOfTheDefaultGroupAndOfEachEntry) {
  using Kind = contract::Schedule::Kind;
  contract::Schedule decay{Kind::kWarmupDecay, 0.002, 0.01, 2, true, 2};  // gamma 0, 0, 1/2, and then the end
  contract::Schedule cosine{Kind::kWarmupCosine, 0, 0, 2, true, 3, 0.5};  // rho 0, 1/2, 3/4, and then the end
  cosine.cos_min_ratio = 0.1;
  const struct {
    contract::Schedule schedule;
    double rates[kSteps];  // of the default group
  } cases[] = {{{}, {0.01, 0.01, 0.01, 0.01}},
               {{Kind::kWarmup, 0.002, 0.01, 2, true}, {0.002, 0.002, 0.006, 0.01}},
               {decay, {0.002, 0.002, 0.006, 0.002}},
               {cosine, {0, 0.005, 0.0075, 0.001}},
               {testing::MakeShortCycle(), {0.001, 0.004, 0.007, 0.01}}};
  for (const auto& [schedule, rates] : cases) {
    CaseData data = MakeRealCase({2, 1, 1});
    data.spec.config.groups = {{"*.bias", 0.02, 0.0}, {"pos.*", std::nullopt, 0.5}};
    data.spec.config.schedule = schedule;
    const contract::Trace trace = contract::ReadTrace(RunInFreshFolders(data), 1);
    ASSERT_EQ(trace.steps.size(), static_cast<size_t>(kSteps));
    for (const contract::StepRecord& record : trace.steps) {
      ASSERT_TRUE(record.real);
      ASSERT_EQ(record.real->lr.size(), 3u);
      EXPECT_NEAR(record.real->lr[0], rates[record.step], 1e-15);
      EXPECT_NEAR(record.real->lr[1], 2 * rates[record.step], 1e-15);
      EXPECT_NEAR(record.real->lr[2], rates[record.step], 1e-15);
      EXPECT_FALSE(record.real->skipped);
    }
  }
}

// Row 12 of the embedding is so large that its norm overflows; it occurs in the last sample of step 1 only, hence on
// the last rank. The head is not tied, so that nobody else sees the row.
CaseData MakeCaseThatSkipsStepOne(const Layout& layout, OptimizerKind optimizer) {
  CaseData data = MakeRealCase(layout, {.optimizer = optimizer, .tied_head = false, .frozen = {"pos.weight"}});
  constexpr int32_t kRow = 12;
  std::ranges::replace(data.batches.tokens, kRow, 0);
  data.batches.tokens[data.batches.Index(1, testing::kBatch - 1, 0)] = kRow;
  for (int64_t i = 0; i < 12; ++i) data.real_state[0].master[kRow * 12 + i] = 3e38f;
  return data;
}

TEST(RunRealCase, AnOverflowOnOneRankSkipsThatStepOnAllRanksWithTheSameBitsInEveryStage) {
  for (const OptimizerKind optimizer :
       {OptimizerKind::kAdamW, OptimizerKind::kSgd, OptimizerKind::kLamb, OptimizerKind::kLion}) {
    std::optional<Combined> expected;
    for (const Layout& layout : LayoutsOfStages({0, 1, 2, 3}, 3, 1, DType::kF32)) {
      const CaseData data = MakeCaseThatSkipsStepOne(layout, optimizer);
      const fs::path out_dir = RunInFreshFolders(data);
      for (int64_t rank = 0; rank < 3; ++rank) {
        for (const contract::StepRecord& record : contract::ReadTrace(out_dir, rank).steps) {
          EXPECT_EQ(record.real->skipped, record.step == 1);
          EXPECT_EQ(std::isnan(record.real->gradient_norm), record.step == 1);
        }
      }
      Combined combined = Combine(out_dir, data);
      for (const TensorKind kind :
           {TensorKind::kWeight, TensorKind::kMaster, TensorKind::kMoment, TensorKind::kSecondMoment}) {
        for (const contract::ParameterSpec& p : data.parameters) {
          if (!combined.digests.contains({0, kind, p.name})) continue;
          EXPECT_EQ(combined.digests.at({0, kind, p.name}), combined.digests.at({1, kind, p.name})) << p.name;
          if (kind != TensorKind::kWeight) continue;
          const bool has_moved = combined.digests.at({1, kind, p.name}) != combined.digests.at({2, kind, p.name});
          EXPECT_EQ(has_moved, !p.frozen) << p.name;
        }
      }
      if (!expected) expected = combined;
      EXPECT_EQ(FirstDifference(combined, *expected), "") << testing::Text(layout);
    }
  }
}

TEST(RunRealCase, AResumedCaseGoesOnWithTheTracesOfTheWholeOneAlsoAfterASkippedStep) {
  for (const int64_t stage : {0, 1, 2, 3}) {
    for (const OptimizerKind optimizer :
         {OptimizerKind::kAdamW, OptimizerKind::kSgd, OptimizerKind::kLamb, OptimizerKind::kLion}) {
      CaseData data = MakeCaseThatSkipsStepOne({3, stage, 2, DType::kBF16, 200, {true, 300, 13, 800}}, optimizer);
      data.spec.config.schedule = testing::MakeShortCycle();
      data.spec.save_steps = {0, 1, 2};
      if (optimizer == OptimizerKind::kSgd) {
        data.spec.config.gradient_clipping = 0;
        data.spec.config.adaptive_clipping = testing::kHistoryClipping;
        data.norm_history = {1, 0.3, 0.02};
      }
      const fs::path whole_dir = RunInFreshFolders(data);
      for (const int64_t step : data.spec.save_steps) {
        CaseData resumed = data;
        resumed.spec.save_steps = {};
        resumed.spec.resume = true;
        resumed.num_updates = 77;  // the checkpoint's counts
        resumed.norm_history = {3, 1e6, 1};
        const fs::path saved = whole_dir / ("checkpoint-00000" + std::to_string(step));
        const fs::path resumed_dir = RunInFreshFolders(resumed, saved);
        for (int64_t rank = 0; rank < 3; ++rank) {
          const contract::Trace whole = contract::ReadTrace(whole_dir, rank);
          const contract::Trace rest = contract::ReadTrace(resumed_dir, rank);
          ASSERT_EQ(rest.steps.size(), static_cast<size_t>(kSteps - step - 1));
          for (const contract::StepRecord& record : rest.steps) {
            const contract::StepRecord& expected = whole.steps[record.step];
            EXPECT_TRUE(SameNumbers({record.loss}, {expected.loss}));
            EXPECT_TRUE(SameNumbers({record.real->gradient_norm}, {expected.real->gradient_norm}));
            EXPECT_EQ(record.real->lr, expected.real->lr);
            EXPECT_EQ(record.real->skipped, expected.real->skipped);
            EXPECT_EQ(record.real->norm_history, expected.real->norm_history);
            ASSERT_NO_FATAL_FAILURE(testing::ExpectSameCommAndTensors(record, expected));
          }
        }
      }
    }
  }
}

// A finite start whose activations overflow: norms divide by the deviation, so a huge norm weight is needed.
TEST(RunRealCase, ASkippedStepIsToldAndChangesNothingButTheSchedule) {
  for (const int64_t stage : {0, 1, 2, 3}) {
    CaseData data = MakeRealCase({3, stage, 1, DType::kF32, 200, {true, 0, 13, 0}}, {.frozen = kFrozen});
    data.num_updates = 5;
    data.real_state[2].master.assign(12, 3e38f);
    data.spec.dump_steps = {3};
    const fs::path out_dir = RunInFreshFolders(data);
    for (int64_t rank = 0; rank < 3; ++rank) {
      for (const contract::StepRecord& record : contract::ReadTrace(out_dir, rank).steps) {
        EXPECT_TRUE(record.real->skipped);
        EXPECT_TRUE(std::isnan(record.real->gradient_norm));  // null in the file
      }
    }
    const auto dumped = Dumped(out_dir, data, 3);
    for (const contract::ParameterSpec& p : data.parameters) {
      EXPECT_EQ(dumped.at({TensorKind::kMaster, p.name}), data.real_state[p.tensor_id].master);
      EXPECT_EQ(dumped.at({TensorKind::kWeight, p.name}), data.real_state[p.tensor_id].master);
      if (p.frozen) continue;
      EXPECT_EQ(dumped.at({TensorKind::kMoment, p.name}), data.real_state[p.tensor_id].moment);
      EXPECT_EQ(dumped.at({TensorKind::kSecondMoment, p.name}), data.real_state[p.tensor_id].second_moment);
    }
  }
}

TEST(RunRealCase, TracesTellTheHistoryOfNormsExactlyWhereClippingHasOne) {
  for (const auto& clipping : {testing::kHistoryClipping, testing::kUnitClipping, contract::AdaptiveClipping()}) {
    CaseData data = MakeRealCase({2, 1, 1}, {.clipping = 0, .adaptive_clipping = clipping});
    data.norm_history = {1, 0.75, 0.25};
    for (int64_t rank = 0; rank < 2; ++rank) {
      const contract::Trace trace = contract::ReadTrace(RunInFreshFolders(data), rank);
      for (const contract::StepRecord& record : trace.steps) {
        ASSERT_EQ(record.real->norm_history.has_value(), contract::HasNormHistory(data.spec.config));
        if (!record.real->norm_history) continue;
        EXPECT_EQ(record.real->norm_history->count, record.step + 2);
        if (record.step > 0) continue;
        const double norm = record.real->gradient_norm;
        EXPECT_NEAR(record.real->norm_history->mean, (0.75 + norm) / 2, 1e-15);
        EXPECT_NEAR(record.real->norm_history->variance, (0.25 + (norm - 0.75) * (norm - 0.75) / 2) / 2, 1e-15);
      }
    }
  }
}

// The run of a case from step 2 on, whose state is what another run has dumped after step 1.
CaseData FromStepTwo(const CaseData& data, const fs::path& out_dir, int64_t num_updates) {
  const auto dumped = Dumped(out_dir, data, 1);
  CaseData late = data;
  late.spec.dump_steps = {};
  late.spec.first_step = 2;
  late.spec.steps = kSteps - 2;
  late.num_updates = num_updates;
  for (const contract::ParameterSpec& p : data.parameters) {
    contract::RealParameterState& state = late.real_state[p.tensor_id];
    state.master = dumped.at({TensorKind::kMaster, p.name});
    if (!state.moment.empty()) state.moment = dumped.at({TensorKind::kMoment, p.name});
    if (!state.second_moment.empty()) state.second_moment = dumped.at({TensorKind::kSecondMoment, p.name});
  }
  late.batches.first_step = 2;
  late.batches.steps = kSteps - 2;
  for (auto* values : {&late.batches.tokens, &late.batches.labels, &late.batches.loss_weights}) {
    values->erase(values->begin(), values->begin() + static_cast<int64_t>(values->size()) / 2);
  }
  return late;
}

void ExpectTheSameFromStepTwoOn(CaseData data, int64_t num_updates) {
  data.spec.config.schedule = testing::MakeShortCycle();
  data.spec.dump_steps = {1};
  const fs::path whole_dir = RunInFreshFolders(data);
  const CaseData late = FromStepTwo(data, whole_dir, num_updates);
  const Combined whole = Combine(whole_dir, data);
  const Combined rest = Combine(RunInFreshFolders(late), late);
  ASSERT_EQ(rest.digests.size() * 2, whole.digests.size());
  for (const auto& [key, digest] : rest.digests) EXPECT_EQ(whole.digests.at(key), digest) << std::get<2>(key);
  EXPECT_EQ(rest.losses, (std::vector<double>{whole.losses[2], whole.losses[3]}));
}

// Plain SGD: p - lr (g + decay p). The first update after a skipped step would have another rate if updates were
// counted.
TEST(RunRealCase, AppliesTheReportedRateOfTheStepAlsoAfterASkippedOne) {
  CaseData data = MakeCaseThatSkipsStepOne({2, 2, 1, DType::kF32, 200}, OptimizerKind::kSgd);
  contract::RunConfig& config = data.spec.config;
  config.params.momentum = 0;
  config.gradient_clipping = 0;
  config.schedule = {contract::Schedule::Kind::kWarmup, 0.001, 0.01, 3, true};
  for (contract::RealParameterState& state : data.real_state) state.moment.clear();
  data.spec.dump_steps = {1, 2};
  const fs::path out_dir = RunInFreshFolders(data);
  const auto before = Dumped(out_dir, data, 1), after = Dumped(out_dir, data, 2);
  const std::vector<double> rates = contract::ReadTrace(out_dir, 0).steps[2].real->lr;
  EXPECT_NEAR(rates[0], 0.001 + 0.009 / 3, 1e-15) << "of step 2, where one update has been made";
  for (const contract::ParameterSpec& p : data.parameters) {
    if (p.frozen) continue;
    const bool is_bias = p.name.ends_with(".bias");
    const double rate = rates[is_bias ? 1 : 0], decay = is_bias ? 0 : 0.1;
    for (int64_t i = 0; i < p.numel(); ++i) {
      const double old = before.at({TensorKind::kMaster, p.name})[i];
      const double step = rate * (after.at({TensorKind::kGradient, p.name})[i] + decay * old);
      // One rounding of the result, and a few of the step.
      ASSERT_NEAR(after.at({TensorKind::kMaster, p.name})[i], old - step,
                  0x1p-24 * (std::abs(old) + 8 * std::abs(step)))
          << p.name;
    }
  }
}

TEST(RunRealCase, StartsInsideTrainingFromTheStateOfTheCase) {
  for (const OptimizerKind optimizer :
       {OptimizerKind::kAdamW, OptimizerKind::kSgd, OptimizerKind::kLamb, OptimizerKind::kLion}) {
    for (const int64_t stage : {0, 3}) {
      const Layout layout{2, stage, 1, DType::kF32, 200, {true, 0, 13, 0}};
      ExpectTheSameFromStepTwoOn(MakeRealCase(layout, {.optimizer = optimizer, .frozen = kFrozen}), 2);
      ExpectTheSameFromStepTwoOn(MakeCaseThatSkipsStepOne(layout, optimizer), 1);
    }
  }
}

}  // namespace
}  // namespace plumbline::optimized
