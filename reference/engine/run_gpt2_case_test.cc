// SPDX-License-Identifier: Apache-2.0
// Cases of family gpt2 from their folder to OUT_DIR, read back with the contract's readers; and training on a real
// text.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "conformance/contract/batch_source.h"
#include "conformance/contract/case_file.h"
#include "conformance/contract/tensor_file.h"
#include "conformance/contract/trace.h"
#include "reference/testing/real_case.h"
#include "reference/testing/run_real_case.h"

namespace plumbline::reference {
namespace {

using contract::OptimizerKind;
using contract::TensorKind;

constexpr int64_t kBatch = 6;
constexpr int64_t kSteps = 4;

contract::Gpt2Spec FullModel() {
  contract::Gpt2Spec model = SmallGpt2();
  model.tied_head = false;
  model.unused = true;
  model.dropout = 0.25;
  model.frozen = {"pos.weight", "layers.0.norm2.bias"};
  return model;
}

struct Setting {
  const char* name;
  OptimizerKind optimizer;
  double momentum;
  bool moment, second_moment;
};

class RunGpt2CaseWith : public testing::TestWithParam<Setting> {};

TEST_P(RunGpt2CaseWith, WritesEveryTensorWholeIntoTraceAndDumpWithEqualHashes) {
  contract::RunConfig config = RealConfig(GetParam().optimizer, kBatch);
  config.params.momentum = GetParam().momentum;
  config.groups = {{"*.bias", 0.5, std::nullopt}};
  constexpr int64_t kFirst = 7;
  contract::CaseData data = MakeRealCase(FullModel(), config, kSteps, kFirst);
  data.num_updates = 5;
  data.spec.dump_steps = {8};
  const std::filesystem::path out = OutDirOf(data);
  EXPECT_FALSE(std::filesystem::exists(out / "certificate.json"));
  EXPECT_FALSE(std::filesystem::exists(out / "rank0" / "tensors-000007.safetensors"));
  const contract::Trace trace = contract::ReadTrace(out, 0);
  EXPECT_TRUE(trace.complete);
  EXPECT_EQ(trace.config, config);
  ASSERT_EQ(trace.steps.size(), static_cast<size_t>(kSteps));
  const contract::TensorFile dump = contract::ReadTensorFile(out / "rank0" / "tensors-000008.safetensors");
  size_t num_dumped = 0;
  for (size_t step = 0; step < trace.steps.size(); ++step) {
    const contract::StepRecord& record = trace.steps[step];
    EXPECT_EQ(record.step, kFirst + static_cast<int64_t>(step));
    ASSERT_TRUE(record.real);
    EXPECT_EQ(record.real->lr, (std::vector<double>{config.params.lr, 0.5}));
    EXPECT_GT(record.real->gradient_norm, 0);
    EXPECT_FALSE(record.real->skipped);
    EXPECT_FALSE(record.real->norm_history);
    for (const TensorKind kind : contract::kTensorKinds) {
      const bool state = kind == TensorKind::kMaster || kind == TensorKind::kWeight;
      const bool kept = state || kind == TensorKind::kGradient || (kind == TensorKind::kMoment && GetParam().moment) ||
                        (kind == TensorKind::kSecondMoment && GetParam().second_moment);
      std::vector<std::string> expected;
      for (const contract::ParameterSpec& parameter : data.parameters)
        if (kept && (state || !parameter.frozen)) expected.push_back(parameter.name);
      ASSERT_EQ(record.of(kind).size(), expected.size()) << contract::Name(kind);
      for (size_t i = 0; i < expected.size(); ++i) {
        const contract::SliceDigest& slice = record.of(kind)[i];
        EXPECT_EQ(slice.tensor, expected[i]);
        EXPECT_EQ(slice.begin, 0);
        if (record.step != 8) continue;
        ++num_dumped;
        const contract::HostTensor& tensor = dump.Find(std::string(contract::Name(kind)) + "/" + slice.tensor + "@0");
        EXPECT_EQ(tensor.dtype, contract::DType::kF64);
        EXPECT_EQ(tensor.shape, std::vector<int64_t>{slice.end});
        contract::Digest digest;
        int64_t index = 0;
        for (const double value : Doubles(tensor)) digest.AddBits(index++, std::bit_cast<uint64_t>(value));
        EXPECT_EQ(digest.hash, slice.digest.hash) << contract::Name(kind) << " " << slice.tensor;
      }
    }
  }
  EXPECT_EQ(dump.tensors.size(), num_dumped);
}

INSTANTIATE_TEST_SUITE_P(Optimizers, RunGpt2CaseWith,
                         testing::Values(Setting{"adamw", OptimizerKind::kAdamW, 0, true, true},
                                         Setting{"adam", OptimizerKind::kAdam, 0, true, true},
                                         Setting{"lion", OptimizerKind::kLion, 0, true, false},
                                         Setting{"lamb", OptimizerKind::kLamb, 0, true, true},
                                         Setting{"sgd_momentum", OptimizerKind::kSgd, 0.9, true, false},
                                         Setting{"sgd", OptimizerKind::kSgd, 0, false, false}),
                         [](const auto& info) { return info.param.name; });

TEST(RunGpt2Case, GivesTheSameBitsInEveryRunAndOthersWithAnotherSeed) {
  contract::CaseData data = MakeRealCase(FullModel(), RealConfig(OptimizerKind::kAdamW, kBatch), kSteps);
  const contract::Trace first = contract::ReadTrace(OutDirOf(data), 0);
  const contract::Trace second = contract::ReadTrace(OutDirOf(data), 0);
  data.spec.seed = 2;
  const contract::Trace other = contract::ReadTrace(OutDirOf(data), 0);
  for (size_t i = 0; i < first.steps[3].of(TensorKind::kWeight).size(); ++i) {
    const contract::SliceDigest& slice = first.steps[3].of(TensorKind::kWeight)[i];
    EXPECT_EQ(slice.digest, second.steps[3].of(TensorKind::kWeight)[i].digest) << slice.tensor;
    EXPECT_EQ(slice.digest == other.steps[3].of(TensorKind::kWeight)[i].digest,
              data.parameters[i].frozen || slice.tensor == "unused.weight")
        << slice.tensor << ": the seed is in the dropout masks";
  }
}

contract::Schedule FullSchedule(contract::Schedule::Kind kind) {
  contract::Schedule schedule;
  schedule.kind = kind;
  schedule.warmup_min_lr = 1e-4;
  schedule.warmup_max_lr = 1e-3;
  schedule.warmup_num_steps = 2;
  schedule.total_num_steps = 5;
  schedule.cycle.min_lr = 1e-4;
  schedule.cycle.max_lr = 1e-3;
  schedule.cycle.first_steps = 2;
  schedule.cycle.second_steps = 3;
  return schedule;
}

std::string DumpOf(int64_t step) { return "rank0/tensors-00000" + std::to_string(step) + ".safetensors"; }

// What a run of four steps dumps after two, rounded to F32 as a state's file holds it.
contract::CaseData GoOnFrom(const contract::TensorFile& dump, const contract::RunConfig& config) {
  contract::CaseData rest = MakeRealCase(SmallGpt2(), config, 2, 2);
  rest.num_updates = 2;
  for (size_t i = 0; i < rest.parameters.size(); ++i) {
    const auto values = [&](const char* kind) {
      const std::vector<double> found = Doubles(dump.Find(kind + rest.parameters[i].name + "@0"));
      return std::vector<float>(found.begin(), found.end());
    };
    rest.real_state[i] = {values("master/"), values("moment/"), values("second_moment/")};
  }
  return rest;
}

void ExpectNear(const contract::TensorFile& a, const contract::TensorFile& b, double tolerance) {
  ASSERT_EQ(a.tensors.size(), b.tensors.size());
  for (const contract::HostTensor& tensor : a.tensors) {
    const std::vector<double> values = Doubles(tensor);
    const std::vector<double> others = Doubles(b.Find(tensor.name));
    ASSERT_EQ(values.size(), others.size());
    for (size_t i = 0; i < values.size(); ++i) ASSERT_NEAR(values[i], others[i], tolerance) << tensor.name;
  }
}

// Injected state: a run that begins in the middle goes on like the one that came there, in the schedule too.
TEST(RunGpt2Case, GoesOnFromADumpedStateWithinTheRoundingOfItsFile) {
  using Kind = contract::Schedule::Kind;
  for (const Kind kind : {Kind::kWarmup, Kind::kWarmupDecay, Kind::kWarmupCosine, Kind::kOneCycle}) {
    SCOPED_TRACE(static_cast<int>(kind));
    contract::RunConfig config = RealConfig(OptimizerKind::kAdamW, kBatch);
    config.schedule = FullSchedule(kind);
    contract::CaseData data = MakeRealCase(SmallGpt2(), config, kSteps);
    data.spec.dump_steps = {1, 3};
    std::filesystem::path out = OutDirOf(data);
    const contract::Trace whole = contract::ReadTrace(out, 0);
    const contract::TensorFile end = contract::ReadTensorFile(out / DumpOf(3));
    contract::CaseData rest = GoOnFrom(contract::ReadTensorFile(out / DumpOf(1)), config);
    rest.spec.dump_steps = {3};
    out = OutDirOf(rest);
    const contract::Trace continued = contract::ReadTrace(out, 0);
    for (size_t step = 0; step < 2; ++step) {
      EXPECT_NEAR(continued.steps[step].loss, whole.steps[step + 2].loss, 1e-6);
      EXPECT_NEAR(continued.steps[step].real->gradient_norm, whole.steps[step + 2].real->gradient_norm, 1e-6);
      EXPECT_EQ(continued.steps[step].real->lr, whole.steps[step + 2].real->lr);
    }
    ExpectNear(contract::ReadTensorFile(out / DumpOf(3)), end, 1e-6);
  }
}

// From case.json to the trace: what the folder holds of a schedule is what the rates come from.
TEST(RunGpt2Case, WritesTheRatesOfEachScheduleByGroup) {
  const double decayed[] = {0, 0, 0.5, 1, 2.0 / 3};      // 0 before and at k = 0; 1/2; (5 − 2) / 3, (5 − 3) / 3
  const double cosine[] = {0, 0.25, 0.625, 0.75, 0.25};  // 1/4 + 3/4 · 1/2; 0 + (1 + cos(π / 3)) / 2, 2 π / 3
  const double cycled[] = {0, 0.5, 1, 2.0 / 3, 1.0 / 3};
  const struct {
    contract::Schedule::Kind kind;
    const double (&factors)[5];
    double min_lr;
    double max_lr;
  } rows[] = {{contract::Schedule::Kind::kWarmupDecay, decayed, 1e-4, 1e-3},
              {contract::Schedule::Kind::kWarmupCosine, cosine, 0, 0.5},
              {contract::Schedule::Kind::kOneCycle, cycled, 1e-4, 1e-3}};
  for (const auto& row : rows) {
    contract::RunConfig config = RealConfig(OptimizerKind::kAdamW, kBatch);
    config.params.lr = 0.5;
    config.groups = {{"*.bias", 1.5, std::nullopt}};
    config.schedule = FullSchedule(row.kind);
    config.schedule.linear = true;
    config.schedule.warmup_min_ratio = 0.25;
    config.schedule.cos_min_ratio = 0;
    const contract::Trace trace = contract::ReadTrace(OutDirOf(MakeRealCase(SmallGpt2(), config, 5)), 0);
    for (size_t step = 0; step < 5; ++step) {
      const double lr = row.min_lr + (row.max_lr - row.min_lr) * row.factors[step];
      ASSERT_EQ(trace.steps[step].real->lr.size(), 2u);
      EXPECT_NEAR(trace.steps[step].real->lr[0], lr, 1e-15) << static_cast<int>(row.kind) << ", step " << step;
      EXPECT_NEAR(trace.steps[step].real->lr[1], 3 * lr, 1e-15) << static_cast<int>(row.kind) << ", step " << step;
    }
  }
}

// From the state's file to the trace, in numbers that have no short decimal form.
TEST(RunGpt2Case, GoesOnFromTheHistoryOfNormsOfTheStateAndWritesItAfterEachStep) {
  contract::RunConfig config = RealConfig(OptimizerKind::kAdamW, kBatch);
  config.adaptive_clipping.kind = contract::AdaptiveClipping::Kind::kHistory;
  config.adaptive_clipping.warmup_steps = 7;
  contract::CaseData data = MakeRealCase(SmallGpt2(), config, 3, 5);
  data.norm_history = {7, 1.0 / 3, 0.1};
  const contract::Trace trace = contract::ReadTrace(OutDirOf(data), 0);
  contract::NormHistory expected = data.norm_history;
  for (const contract::StepRecord& record : trace.steps) {
    const double x = std::min(record.real->gradient_norm, expected.mean + 2.5 * std::sqrt(expected.variance));
    ++expected.count;
    expected.mean = 0.97 * expected.mean + 0.03 * x;
    expected.variance = 0.97 * expected.variance + 0.03 * (x - expected.mean) * (x - expected.mean);
    ASSERT_TRUE(record.real->norm_history);
    EXPECT_EQ(record.real->norm_history->count, expected.count);
    EXPECT_NEAR(record.real->norm_history->mean, expected.mean, 1e-15);
    EXPECT_NEAR(record.real->norm_history->variance, expected.variance, 1e-15);
  }
}

// The repository's licence as bytes. Batches are drawn anew in every step, so the loss is compared by means of five.
TEST(RunGpt2Case, LearnsARealTextInTwentySteps) {
  contract::Gpt2Spec model;
  model.layers = 2;
  model.width = 24;
  model.heads = 3;
  model.positions = 16;
  model.hidden = 96;
  model.vocab = 61;
  const contract::TokenSource text = contract::ReadTokenSource("LICENSE");
  for (const bool adamw : {true, false}) {
    SCOPED_TRACE(adamw ? "AdamW" : "SGD");
    contract::RunConfig config = RealConfig(adamw ? OptimizerKind::kAdamW : OptimizerKind::kSgd, 12);
    config.params.lr = adamw ? 1e-2 : 1e-1;
    contract::CaseData data = MakeRealCase(model, config, 20);
    data.batches = contract::MakeBatches(text, model, {1, 0, 20, 12});
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
}

}  // namespace
}  // namespace plumbline::reference
