// SPDX-License-Identifier: Apache-2.0
// Whole cases whose layers have ZeRO stages of their own: the bits of one stage for all wherever the order of sums is
// the same, and who holds what.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "conformance/contract/case_file.h"
#include "conformance/contract/trace.h"
#include "optimized/engine/testing/case_run.h"
#include "optimized/engine/testing/real_case.h"
#include "optimized/engine/testing/same_bits.h"
#include "optimized/engine/testing/small_case.h"

namespace plumbline::optimized {
namespace {

namespace fs = std::filesystem;
using contract::CaseData;
using contract::DType;
using contract::Family;
using contract::OptimizerKind;
using contract::TensorKind;
using testing::Combine;
using testing::Combined;
using testing::FirstDifference;
using testing::kSteps;
using testing::Layout;
using testing::Limits;
using testing::MakeCase;
using testing::MakeRealCase;
using testing::RealOptions;
using testing::RunInFreshFolders;

constexpr Family kFamilies[] = {Family::kGpt2, Family::kLlama};

// Of all else, and of each of two layers.
struct Stages {
  int64_t other;
  std::vector<int64_t> layers;
};

// All 64, or those of the given stages only.
std::vector<Stages> AllStages(const std::vector<int64_t>& stages = {0, 1, 2, 3}) {
  std::vector<Stages> all;
  for (const int64_t other : stages) {
    for (const int64_t first : stages) {
      for (const int64_t second : stages) all.push_back({other, {first, second}});
    }
  }
  return all;
}

// Buckets, storage and limits of ZeRO 3 are dealt out by `turn`.
Layout LayoutOf(const Stages& stages, int64_t degree, int64_t accumulation, DType storage, size_t turn) {
  const std::vector<Limits> limits = {{true, 0, 0, 0}, {false, 300, 13, 800}, {true, 50'000'000, 61, 1'000'000'000}};
  return {degree,
          stages.other,
          accumulation,
          storage,
          std::vector<int64_t>{1, 200, testing::kNoLimit}[turn / 3 % 3],
          limits[turn % 3],
          stages.layers};
}

TEST(LayerStages, GiveFamilyExactTheDigestsOfOneRankWhateverTheyAre) {
  const CaseData plain = MakeCase({});
  const Combined expected = Combine(RunInFreshFolders(plain), plain);
  size_t turn = 0;
  for (const Stages& stages : AllStages()) {
    for (const auto& [degree, accumulation] :
         std::vector<std::pair<int64_t, int64_t>>{{2, 1}, {2, 3}, {3, 1}, {3, 2}, {4, 1}, {4, 3}}) {
      ++turn;
      const size_t round = turn + turn / 6;  // so that every pair meets every limit, bucket and storage
      const DType storage = round % 2 == 0 ? DType::kF32 : DType::kBF16;
      const Layout layout = LayoutOf(stages, degree, accumulation, storage, round);
      const CaseData data = MakeCase(layout);
      EXPECT_EQ(Combine(RunInFreshFolders(data), data), expected) << testing::Text(layout);
    }
  }
}

std::vector<std::string> ParametersOfLayer(Family family, int64_t layer) {
  std::vector<std::string> names;
  for (const contract::ParameterSpec& p : MakeRealCase({}, {.family = family}).parameters) {
    if (p.layer == layer) names.push_back(p.name);
  }
  return names;
}

// Norm and clipping, LAMB, units, the history of norms, a tied head and one that is not, a frozen layer.
std::vector<RealOptions> Variants(Family family) {
  return {{.family = family},
          {.family = family, .optimizer = OptimizerKind::kLamb, .tied_head = false},
          {.family = family, .optimizer = OptimizerKind::kAdam, .adaptive_clipping = testing::kUnitClipping},
          {.family = family, .optimizer = OptimizerKind::kSgd, .adaptive_clipping = testing::kHistoryClipping},
          {.family = family, .optimizer = OptimizerKind::kLion, .frozen = ParametersOfLayer(family, 1)},
          {.family = family,
           .optimizer = OptimizerKind::kLamb,
           .frozen = ParametersOfLayer(family, 0),
           .adaptive_clipping = testing::kUnitClipping}};
}

// One in `step` of the stages, against one stage for all: that of the first.
void ExpectSameBitsOf(const std::vector<Stages>& stages, int64_t degree, int64_t accumulation, DType storage,
                      const RealOptions& options, size_t step = 1) {
  std::vector<Layout> layouts = {LayoutOf({stages.front().other, {}}, degree, accumulation, storage, 0)};
  for (size_t i = 0; i < stages.size(); i += step) {
    layouts.push_back(LayoutOf(stages[i], degree, accumulation, storage, layouts.size()));
  }
  testing::ExpectSameBits(layouts, options);
}

TEST(LayerStages, GiveGpt2TheBitsOfStageZeroWithOneMicroBatch) {
  for (const RealOptions& options : Variants(Family::kGpt2)) {
    ExpectSameBitsOf(AllStages(), 3, 1, DType::kF32, options, 3);
    ExpectSameBitsOf(AllStages(), 2, 1, DType::kBF16, options, 5);
  }
  ExpectSameBitsOf(AllStages(), 4, 1, DType::kF16, {}, 5);
}

TEST(LayerStages, GiveLlamaTheBitsOfStageZeroWithOneMicroBatch) {
  for (const RealOptions& options : Variants(Family::kLlama)) {
    ExpectSameBitsOf(AllStages(), 3, 1, DType::kF32, options, 3);
    ExpectSameBitsOf(AllStages(), 2, 1, DType::kBF16, options, 5);
  }
}

TEST(LayerStages, OfOneOrderOfSumsGiveTheSameBitsWithThreeMicroBatches) {
  for (const Family family : kFamilies) {
    for (const RealOptions& options : Variants(family)) {
      ExpectSameBitsOf(AllStages({0, 1}), 2, 3, DType::kF32, options);
      ExpectSameBitsOf(AllStages({2, 3}), 2, 3, DType::kF32, options);
    }
  }
}

// Until the first update all weights are equal, and a gradient depends on no stage but its own.
TEST(LayerStages, AddEachGradientInTheOrderOfItsOwnStage) {
  for (const Family family : kFamilies) {
    const auto run = [&](const Stages& stages, size_t turn) {
      const CaseData data = MakeRealCase(LayoutOf(stages, 2, 3, DType::kF32, turn), {.family = family});
      return Combine(RunInFreshFolders(data), data);
    };
    const Combined late = run({0, {}}, 1), early = run({2, {}}, 1);  // the sum over ranks
    const CaseData data = MakeRealCase({}, {.family = family});
    size_t num_different = 0, turn = 0;
    for (const Stages& stages : AllStages()) {
      const Combined mixed = run(stages, turn++);
      for (const contract::ParameterSpec& p : data.parameters) {
        const int64_t stage = p.layer == contract::ParameterSpec::kNoLayer ? stages.other : stages.layers[p.layer];
        const auto key = std::tuple(int64_t{0}, TensorKind::kGradient, p.name);
        EXPECT_EQ(mixed.digests.at(key), (stage <= 1 ? late : early).digests.at(key)) << p.name;
        num_different += late.digests.at(key) != early.digests.at(key) ? 1 : 0;
      }
    }
    EXPECT_GT(num_different, 64u * data.parameters.size() / 2) << "the orders can be told apart";
  }
}

// How many of the ranks list each tensor whole, and how many a part.
TEST(LayerStages, AreWhatATraceDividesTensorsBy) {
  const RealOptions options{.frozen = {"norm.bias"}};
  const CaseData data = MakeRealCase({3, 2, 1, DType::kBF16, 200, {true, 0, 13, 0}, {0, 3}}, options);
  const fs::path out_dir = RunInFreshFolders(data);
  std::map<std::pair<TensorKind, std::string>, int64_t> elems;
  for (int64_t rank = 0; rank < 3; ++rank) {
    const contract::Trace trace = contract::ReadTrace(out_dir, rank);
    for (const TensorKind kind : contract::kTensorKinds) {
      for (const contract::SliceDigest& slice : trace.steps[0].of(kind)) {
        elems[{kind, slice.tensor}] += slice.end - slice.begin;
      }
    }
  }
  for (const contract::ParameterSpec& p : data.parameters) {
    const bool is_whole = p.frozen || p.layer == 0;
    const bool weight_is_whole = p.layer != 1 || p.numel() < 13;
    EXPECT_EQ((elems[{TensorKind::kMaster, p.name}]), (is_whole ? 3 : 1) * p.numel()) << p.name;
    EXPECT_EQ((elems[{TensorKind::kWeight, p.name}]), (weight_is_whole ? 3 : 1) * p.numel()) << p.name;
    if (p.frozen) continue;
    for (const TensorKind kind : {TensorKind::kGradient, TensorKind::kMoment, TensorKind::kSecondMoment}) {
      EXPECT_EQ((elems[{kind, p.name}]), (is_whole ? 3 : 1) * p.numel()) << p.name;
    }
  }
}

// Makes one element of the reduced gradient NaN in step 1: on every rank that holds it.
StepResult StepWithNan(Training& training, int64_t step, int64_t parameter) {
  return TrainStep(training, step, [&](std::string_view phase) {
    if (phase != "step" || step != 1) return;
    for (const ShardSlice& slice : training.shard.slices) {
      if (slice.parameter == parameter && slice.begin == 0) training.reducer->Complete(slice)[0] = NAN;
    }
  });
}

TEST(LayerStages, ANanInALayerOfAnyStageSkipsTheStepOnAllRanks) {
  for (const Stages& stages : {Stages{0, {0, 3}}, Stages{1, {2, 0}}, Stages{3, {0, 1}}, Stages{2, {3, 2}}}) {
    for (const OptimizerKind optimizer : {OptimizerKind::kAdamW, OptimizerKind::kLamb}) {
      const CaseData data = MakeRealCase(LayoutOf(stages, 3, 2, DType::kF32, 0),
                                         {.optimizer = optimizer, .adaptive_clipping = testing::kUnitClipping});
      for (const contract::ParameterSpec& p : data.parameters) {
        if (p.layer == contract::ParameterSpec::kNoLayer) continue;
        testing::RunRanks(data, [&](Training& training) {
          for (int64_t step = 0; step < 3; ++step) {
            const testing::HeldState before = testing::StateOf(training);
            const StepResult result = StepWithNan(training, step, p.tensor_id);
            EXPECT_EQ(result.skipped, step == 1) << p.name;
            EXPECT_EQ(std::isnan(result.gradient_norm), step == 1) << p.name;
            EXPECT_EQ(testing::StateOf(training) == before, step == 1) << p.name;
          }
        });
      }
    }
  }
}

// In step 0 one token alone counts: the gradients of its logits are about the scale, and numbers only below 2^16. In
// later steps they are that much less as there are more tokens.
void LeaveOneTokenInStepZero(CaseData& data) {
  const int64_t begin = data.batches.Index(0, 0, 0), end = data.batches.Index(1, 0, 0);
  std::fill(data.batches.loss_weights.begin() + begin, data.batches.loss_weights.begin() + end, 0);
  data.batches.loss_weights[begin] = 1;
}

TEST(LayerStages, GiveTheBitsAndTheScalerOfStageZeroWithADynamicLossScale) {
  const contract::DynamicLossScale settings{.initial_scale_power = 17, .hysteresis = 1};
  const auto train = [&](Family family, const Stages& stages, size_t turn) {
    CaseData data = MakeRealCase(LayoutOf(stages, 3, 1, DType::kF16, turn), {.family = family});
    LeaveOneTokenInStepZero(data);
    data.spec.config.loss_scale = 0;
    data.spec.config.dynamic_loss_scale = settings;
    data.loss_scaler = contract::InitialLossScaler(settings);
    const fs::path out_dir = RunInFreshFolders(data);
    std::vector<contract::LossScaler> scalers;
    for (int64_t rank = 0; rank < 3; ++rank) {
      for (const contract::StepRecord& record : contract::ReadTrace(out_dir, rank).steps) {
        scalers.push_back(*record.real->loss_scaler);
      }
    }
    return std::pair(Combine(out_dir, data), scalers);
  };
  for (const Family family : kFamilies) {
    const auto [expected, scalers] = train(family, {0, {}}, 0);
    EXPECT_EQ(scalers.front().last_overflow, 0);
    EXPECT_EQ(scalers[kSteps - 1].last_overflow, 0) << "all others are made";
    const std::vector<Stages> all = AllStages();
    for (size_t i = 0; i < all.size(); i += 3) {
      const auto [combined, own] = train(family, all[i], i);
      EXPECT_EQ(FirstDifference(combined, expected), "");
      EXPECT_EQ(own, scalers);
    }
  }
}

TEST(LayerStages, AllEqualAreOneStageForAllCallForCallAndByteForByte) {
  for (const int64_t stage : {0, 1, 2, 3}) {
    for (const bool is_exact : {true, false}) {
      const auto run = [&](const std::vector<int64_t>& layers) {
        const Layout layout = LayoutOf({stage, layers}, 3, 2, DType::kBF16, 4);
        return RunInFreshFolders(is_exact ? MakeCase(layout) : MakeRealCase(layout));
      };
      const fs::path once = run({}), each = run({stage, stage});
      for (int64_t rank = 0; rank < 3; ++rank) {
        const contract::Trace a = contract::ReadTrace(once, rank), b = contract::ReadTrace(each, rank);
        ASSERT_EQ(a.steps.size(), static_cast<size_t>(kSteps));
        for (size_t i = 0; i < a.steps.size(); ++i) {
          testing::ExpectSameCommAndTensors(b.steps[i], a.steps[i]);
          EXPECT_EQ(b.steps[i].memory_peak_bytes, a.steps[i].memory_peak_bytes);
        }
      }
    }
  }
}

TEST(LayerStages, AResumedCaseGoesOnWithTheTracesOfTheWholeOne) {
  for (const Stages& stages : {Stages{0, {3, 1}}, Stages{2, {0, 3}}, Stages{3, {1, 0}}}) {
    for (const bool is_exact : {true, false}) {
      const Layout layout = LayoutOf(stages, 3, 2, DType::kBF16, 4);
      CaseData data = is_exact ? MakeCase(layout) : MakeRealCase(layout, {.optimizer = OptimizerKind::kLamb});
      data.spec.save_steps = {1};
      const fs::path whole_dir = RunInFreshFolders(data);
      CaseData resumed = data;
      resumed.spec.save_steps = {};
      resumed.spec.resume = true;
      const fs::path resumed_dir = RunInFreshFolders(resumed, whole_dir / "checkpoint-000001");
      for (int64_t rank = 0; rank < 3; ++rank) {
        const contract::Trace whole = contract::ReadTrace(whole_dir, rank);
        const contract::Trace rest = contract::ReadTrace(resumed_dir, rank);
        ASSERT_EQ(rest.steps.size(), static_cast<size_t>(kSteps - 2));
        for (const contract::StepRecord& record : rest.steps) {
          EXPECT_EQ(record.loss, whole.steps[record.step].loss);
          testing::ExpectSameCommAndTensors(record, whole.steps[record.step]);
        }
      }
    }
  }
}

}  // namespace
}  // namespace plumbline::optimized
