// SPDX-License-Identifier: Apache-2.0
// The whole witness on small cases, from a case folder to the trace: all storage types must agree in every digest,
// every tensor must live, dumps must say what digests say, and what the engine does not do must be refused.
#include "conformance/engines/torch_eager/run_case.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "conformance/contract/error.h"
#include "conformance/contract/file_io.h"
#include "conformance/contract/tensor_file.h"
#include "conformance/contract/trace.h"
#include "conformance/engines/torch_eager/test_case.h"

namespace plumbline::conformance::torch_eager {
namespace {

using contract::OptimizerKind;
using contract::TensorKind;

constexpr int64_t kSteps = 20;

contract::CaseData MakeCase(const contract::ExactSpec& model, OptimizerKind optimizer, contract::DType storage) {
  return MakeTestCase(model, optimizer, storage, kSteps);
}

class RunCaseTest : public testing::Test {
 protected:
  void SetUp() override {
    const testing::TestInfo& info = *testing::UnitTest::GetInstance()->current_test_info();
    root_ = std::filesystem::path(testing::TempDir()) / (std::string(info.test_suite_name()) + "." + info.name());
    std::filesystem::remove_all(root_);
    std::filesystem::create_directories(root_);
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  std::filesystem::path NewFolder(const std::string& name) const {
    std::filesystem::create_directories(root_ / name);
    return root_ / name;
  }

  // Writes the case, runs it, and returns OUT_DIR.
  std::filesystem::path Run(const contract::CaseData& data, const std::string& name) const {
    const std::filesystem::path case_dir = NewFolder(name + ".case"), out_dir = NewFolder(name + ".out");
    contract::WriteCase(case_dir, data);
    RunCase(case_dir, out_dir);
    return out_dir;
  }

  std::filesystem::path root_;
};

void ExpectEqualSteps(const contract::Trace& a, const contract::Trace& b) {
  ASSERT_EQ(a.steps.size(), b.steps.size());
  for (size_t s = 0; s < a.steps.size(); ++s) {
    EXPECT_EQ(a.steps[s].loss, b.steps[s].loss) << "step " << s;
    EXPECT_EQ(a.steps[s].tokens, b.steps[s].tokens) << "step " << s;
    for (const TensorKind kind : contract::kTensorKinds) {
      const auto& left = a.steps[s].of(kind);
      const auto& right = b.steps[s].of(kind);
      ASSERT_EQ(left.size(), right.size());
      for (size_t i = 0; i < left.size(); ++i) {
        EXPECT_EQ(left[i].tensor, right[i].tensor);
        EXPECT_EQ(left[i].digest, right[i].digest) << left[i].tensor << ", " << Name(kind) << ", step " << s;
      }
    }
  }
}

// Every parameter is there once, whole, in canonical order, for every kind.
void ExpectWholeTensors(const contract::Trace& trace, const contract::CaseData& data) {
  ASSERT_TRUE(trace.complete);
  ASSERT_EQ(trace.steps.size(), static_cast<size_t>(kSteps));
  const bool momentum = data.spec.config.optimizer == OptimizerKind::kModularMomentum;
  for (const contract::StepRecord& step : trace.steps) {
    for (const TensorKind kind : contract::kTensorKinds) {
      const bool absent = kind == TensorKind::kSecondMoment || (kind == TensorKind::kMoment && !momentum);
      ASSERT_EQ(step.of(kind).size(), absent ? 0 : data.parameters.size());
      for (size_t i = 0; i < step.of(kind).size(); ++i) {
        EXPECT_EQ(step.of(kind)[i].tensor, data.parameters[i].name);
        EXPECT_EQ(step.of(kind)[i].begin, 0);
        EXPECT_EQ(step.of(kind)[i].end, data.parameters[i].numel());
      }
    }
  }
}

std::filesystem::path DumpFile(const std::filesystem::path& out_dir, int64_t step) {
  char name[64];
  std::snprintf(name, sizeof name, "rank0/tensors-%06d.safetensors", static_cast<int>(step));
  return out_dir / name;
}

double NonzeroShare(const std::vector<int64_t>& values) {
  int64_t count = 0;
  for (const int64_t v : values) count += v != 0;
  return static_cast<double>(count) / static_cast<double>(values.size());
}

double MovingShare(const std::vector<int64_t>& before, const std::vector<int64_t>& after) {
  int64_t count = 0;
  for (size_t i = 0; i < before.size(); ++i) count += before[i] != after[i];
  return static_cast<double>(count) / static_cast<double>(before.size());
}

struct Narrow {
  contract::DType storage;
  int64_t loss_scale;
};
constexpr Narrow kNarrow[] = {
    {contract::DType::kBF16, 1}, {contract::DType::kF16, 1}, {contract::DType::kF16, 64}, {contract::DType::kF16, 256}};

TEST_F(RunCaseTest, NarrowStorageOfAnyLossScaleHasTheDigestsOfFp32InAllStepsAndTensors) {
  for (const contract::ExactSpec& model : {Dense(), GroupedWithDropout()}) {
    for (const OptimizerKind optimizer : {OptimizerKind::kModularMomentum, OptimizerKind::kModularSgd}) {
      const std::string name = (model.dropout ? "grouped-" : "dense-") + std::string(Name(optimizer));
      const contract::CaseData fp32 = MakeCase(model, optimizer, contract::DType::kF32);
      const contract::Trace fp32_trace = contract::ReadTrace(Run(fp32, name + "-fp32"), 0);
      ExpectWholeTensors(fp32_trace, fp32);
      for (const auto& [storage, loss_scale] : kNarrow) {
        contract::CaseData data = MakeCase(model, optimizer, storage);
        data.spec.config.loss_scale = loss_scale;
        const std::string narrow = std::string(Name(storage)) + "-" + std::to_string(loss_scale);
        SCOPED_TRACE(name + "-" + narrow);
        const contract::Trace trace = contract::ReadTrace(Run(data, name + "-" + narrow), 0);
        EXPECT_EQ(trace.config.storage, storage);
        EXPECT_EQ(trace.config.loss_scale, loss_scale);
        ExpectEqualSteps(fp32_trace, trace);
      }
    }
  }
}

TEST_F(RunCaseTest, EveryTensorLivesByTheMeasureOfTheDocument) {
  contract::CaseData data = MakeCase(GroupedWithDropout(), OptimizerKind::kModularMomentum, contract::DType::kF32);
  for (int64_t s = 0; s < kSteps; ++s) data.spec.dump_steps.push_back(s);
  const std::filesystem::path out_dir = Run(data, "live");
  std::vector<std::vector<int64_t>> weights;
  for (const contract::ParameterState& state : data.state) weights.push_back(state.weight);
  std::vector<double> nonzero(weights.size()), moving(weights.size());
  for (int64_t s = 0; s < kSteps; ++s) {
    const contract::TensorFile dump = contract::ReadTensorFile(DumpFile(out_dir, s));
    for (size_t i = 0; i < weights.size(); ++i) {
      const std::string suffix = "/" + data.parameters[i].name + "@0";
      const std::vector<int64_t> weight = contract::ToInt64(dump.Find("weight" + suffix));
      nonzero[i] += NonzeroShare(contract::ToInt64(dump.Find("gradient" + suffix))) / kSteps;
      moving[i] += MovingShare(weights[i], weight) / kSteps;
      weights[i] = weight;
    }
  }
  for (size_t i = 0; i < weights.size(); ++i) {
    EXPECT_GE(nonzero[i], 0.4) << data.parameters[i].name;
    EXPECT_GE(moving[i], 0.4) << data.parameters[i].name;
  }
}

TEST_F(RunCaseTest, DumpsHoldExactlyWhatTheDigestsSayAndOnlyInTheStepsAskedFor) {
  contract::CaseData data = MakeCase(Dense(), OptimizerKind::kModularMomentum, contract::DType::kBF16);
  data.spec.dump_steps = {0, 13};
  const std::filesystem::path out_dir = Run(data, "dump");
  const contract::Trace trace = contract::ReadTrace(out_dir, 0);
  for (int64_t s = 0; s < kSteps; ++s) {
    ASSERT_EQ(std::filesystem::exists(DumpFile(out_dir, s)), s == 0 || s == 13) << s;
  }
  for (const int64_t s : data.spec.dump_steps) {
    const contract::TensorFile dump = contract::ReadTensorFile(DumpFile(out_dir, s));
    EXPECT_EQ(dump.tensors.size(), 4 * data.parameters.size());
    for (const TensorKind kind : contract::kTensorKinds) {
      for (const contract::SliceDigest& slice : trace.steps[s].of(kind)) {
        const std::vector<int64_t> values =
            contract::ToInt64(dump.Find(std::string(Name(kind)) + "/" + slice.tensor + "@0"));
        contract::Digest digest;
        for (size_t i = 0; i < values.size(); ++i) digest.Add(static_cast<int64_t>(i), values[i]);
        EXPECT_EQ(digest.hash, slice.digest.hash) << slice.tensor;
      }
    }
  }
}

TEST_F(RunCaseTest, TheOptimizersTrainDifferentModels) {
  const contract::CaseData momentum = MakeCase(Dense(), OptimizerKind::kModularMomentum, contract::DType::kF32);
  const contract::CaseData sgd = MakeCase(Dense(), OptimizerKind::kModularSgd, contract::DType::kF32);
  const contract::Trace a = contract::ReadTrace(Run(momentum, "momentum"), 0);
  const contract::Trace b = contract::ReadTrace(Run(sgd, "sgd"), 0);
  EXPECT_EQ(a.steps[0].of(TensorKind::kGradient)[0].digest, b.steps[0].of(TensorKind::kGradient)[0].digest);
  EXPECT_NE(a.steps[0].of(TensorKind::kMaster)[0].digest, b.steps[0].of(TensorKind::kMaster)[0].digest);
}

TEST_F(RunCaseTest, MarksThePhasesOfEachStepWhenAsked) {
  contract::CaseData data = MakeCase(Dense(), OptimizerKind::kModularMomentum, contract::DType::kF32);
  data.spec.phase_marks = true;
  const std::string text = contract::ReadFile(Run(data, "phases") / "rank0" / "trace.jsonl");
  size_t position = 0;
  for (int64_t s = 0; s < kSteps; ++s) {
    for (const char* phase : {"forward", "backward", "step"}) {
      const std::string mark = "\"phase\": \"" + std::string(phase) + "\"";
      const std::string compact_mark = "\"phase\":\"" + std::string(phase) + "\"";
      const size_t found = std::min(text.find(mark, position), text.find(compact_mark, position));
      ASSERT_NE(found, std::string::npos) << phase << ", step " << s;
      position = found + 1;
    }
  }
}

// The norms of the state are counted on, and the trace holds them with all their digits.
TEST_F(RunCaseTest, TheHistoryOfNormsGoesOnFromTheStateIntoTheTrace) {
  contract::RunConfig config;
  config.optimizer = OptimizerKind::kLion;
  config.adaptive_clipping.kind = contract::AdaptiveClipping::Kind::kHistory;
  contract::CaseData data = MakeRealCase(Tiny(), config, /*steps=*/2);
  data.norm_history = {3, 0.1, 1.0 / 3};
  const contract::Trace trace = contract::ReadTrace(Run(data, "history"), 0);
  double mean = 0.1, variance = 1.0 / 3;
  for (int64_t step = 0; step < 2; ++step) {
    const contract::RealStep& real = trace.steps.at(step).real.value();
    ASSERT_TRUE(real.norm_history.has_value());
    const auto n = static_cast<double>(3 + step);
    const double delta = real.gradient_norm - mean;
    mean += delta / (n + 1);
    variance = (n * variance + delta * (real.gradient_norm - mean)) / (n + 1);
    EXPECT_EQ(real.norm_history->count, 4 + step);
    EXPECT_NEAR(real.norm_history->mean, mean, 1e-15);
    EXPECT_NEAR(real.norm_history->variance, variance, 1e-15);
  }
}

// From 2^40, which overflows, to a scale that does not, one overflow at a time: a step either is skipped, halves the
// scale and leaves the weights, or trains and keeps it, for the window is never full.
TEST_F(RunCaseTest, ADynamicLossScaleGoesOnFromTheStateIntoTheTrace) {
  contract::RunConfig config;
  config.optimizer = OptimizerKind::kSgd;
  config.storage = contract::DType::kF16;
  config.loss_scale = 0;
  config.dynamic_loss_scale = {.window = 1000, .hysteresis = 1};
  contract::CaseData data = MakeRealCase(Tiny(), config, /*steps=*/40);
  data.loss_scaler = {0x1p40, 7, 3, 1};
  const contract::Trace trace = contract::ReadTrace(Run(data, "scaler"), 0);
  contract::LossScaler expected = data.loss_scaler;
  int64_t num_skipped = 0;
  for (int64_t step = 0; step < 40; ++step) {
    const contract::RealStep& real = trace.steps.at(step).real.value();
    num_skipped += real.skipped;
    if (real.skipped) expected.scale /= 2, expected.last_overflow = expected.steps;
    ++expected.steps;
    EXPECT_EQ(real.loss_scaler, expected) << step;
    const auto& masters = trace.steps[step].of(TensorKind::kMaster);
    if (step > 0) {
      EXPECT_EQ(masters[0].digest == trace.steps[step - 1].of(TensorKind::kMaster)[0].digest, real.skipped) << step;
    }
  }
  EXPECT_GE(num_skipped, 20);
  EXPECT_LT(num_skipped, 40);
}

TEST_F(RunCaseTest, AStaticLossScaleIsInNoTrace) {
  contract::RunConfig config;
  config.optimizer = OptimizerKind::kSgd;
  config.storage = contract::DType::kF16;
  config.loss_scale = 256;
  const contract::Trace trace = contract::ReadTrace(Run(MakeRealCase(Tiny(), config, /*steps=*/1), "static"), 0);
  EXPECT_FALSE(trace.steps.at(0).real.value().loss_scaler.has_value());
  EXPECT_FALSE(trace.steps.at(0).real.value().skipped);
}

TEST(CheckSupported, RefusesWhatTheDescriptionDoesNotOffer) {
  const contract::Case plain = MakeCase(Dense(), OptimizerKind::kModularSgd, contract::DType::kF32).spec;
  EXPECT_NO_THROW(CheckSupported(plain));
  const std::vector<std::function<void(contract::Case&)>> edits = {
      [](contract::Case& c) { c.config.data_degree = 2, c.config.micro_batch_size = 3; },
      [](contract::Case& c) { c.config.accumulation_steps = 2, c.config.micro_batch_size = 3; },
      [](contract::Case& c) { c.config.zero_stage = 1; },
      [](contract::Case& c) { c.config.storage = contract::DType::kU16; },
      [](contract::Case& c) { c.config.storage = contract::DType::kF64; },
      [](contract::Case& c) { c.perturbation.emplace(); },
      [](contract::Case& c) { c.resume = true; },
      [](contract::Case& c) { c.save_steps = {3}; },
  };
  for (size_t i = 0; i < edits.size(); ++i) {
    contract::Case spec = plain;
    edits[i](spec);
    try {
      CheckSupported(spec);
      ADD_FAILURE() << "edit " << i << " was accepted";
    } catch (const contract::Error& error) {
      EXPECT_EQ(error.code(), contract::ErrorCode::kUnsupported) << i;
    }
  }
}

// A schedule that sets one lr for all gives a group its share of the optimizer's, which 0 has not.
TEST(CheckSupported, RefusesTheLr0OfAnOptimizerWhereGroupsAreSharesOfIt) {
  using Kind = contract::Schedule::Kind;
  contract::RunConfig config;
  config.optimizer = OptimizerKind::kAdamW;
  config.params.lr = 0;
  config.groups = {{"*", std::nullopt, 0.5}};
  for (const Kind kind : {Kind::kWarmup, Kind::kWarmupDecay, Kind::kOneCycle}) {
    config.schedule.kind = kind;
    contract::Case spec = MakeRealCase(Tiny(), config, /*steps=*/1).spec;
    EXPECT_NO_THROW(CheckSupported(spec)) << static_cast<int>(kind);
    spec.config.groups[0].lr = 0.5;
    EXPECT_THROW(CheckSupported(spec), contract::Error) << static_cast<int>(kind);
  }
  config.groups[0].lr = 0.5;
  for (const Kind kind : {Kind::kConstant, Kind::kWarmupCosine}) {
    config.schedule.kind = kind;
    EXPECT_NO_THROW(CheckSupported(MakeRealCase(Tiny(), config, /*steps=*/1).spec)) << static_cast<int>(kind);
  }
}

TEST(CheckSupported, TakesAccumulationInTheRealFamilies) {
  contract::RunConfig config;
  config.optimizer = OptimizerKind::kAdamW;
  for (const contract::ModelSpec& model : {contract::ModelSpec(Tiny()), contract::ModelSpec(UnequalLlama())}) {
    EXPECT_NO_THROW(CheckSupported(MakeRealCase(model, config, /*steps=*/1, /*batch=*/6, /*accumulation=*/3).spec));
  }
}

TEST(Describe, OffersTheFamiliesAndWhatTheirModelsNeed) {
  const contract::EngineDescription description = Describe();
  EXPECT_EQ(description.families, (std::vector<std::string>{"exact", "gpt2", "llama"}));
  for (const char* feature : {"dropout", "grouped_heads", "unequal_lengths"}) EXPECT_TRUE(description.Has(feature));
}

TEST(CheckSupported, TakesFp16InAllFamiliesWithAnyScaleThatACaseMayHave) {
  EXPECT_NO_THROW(CheckSupported(MakeCase(Dense(), OptimizerKind::kModularSgd, contract::DType::kF16).spec));
  contract::RunConfig config;
  config.optimizer = OptimizerKind::kAdamW;
  config.storage = contract::DType::kF16;
  for (const int64_t loss_scale : {0, 1, 1 << 24}) {
    config.loss_scale = loss_scale;
    EXPECT_NO_THROW(CheckSupported(MakeRealCase(Tiny(), config, /*steps=*/1).spec));
    EXPECT_NO_THROW(CheckSupported(MakeRealCase(UnequalLlama(), config, /*steps=*/1).spec));
  }
  EXPECT_TRUE(Describe().Has("loss_scaler"));
}

TEST_F(RunCaseTest, WritesNoTraceForACaseItRefuses) {
  contract::CaseData data = MakeCase(Dense(), OptimizerKind::kModularSgd, contract::DType::kF32);
  data.spec.config.zero_stage = 2;
  EXPECT_THROW(Run(data, "refused"), contract::Error);
  EXPECT_TRUE(std::filesystem::is_empty(root_ / "refused.out"));
}

}  // namespace
}  // namespace plumbline::conformance::torch_eager
