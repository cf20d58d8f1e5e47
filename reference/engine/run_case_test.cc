// SPDX-License-Identifier: Apache-2.0
// One case from its folder to OUT_DIR, read back with the contract's readers.
#include "reference/engine/run_case.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "conformance/contract/case_file.h"
#include "conformance/contract/error.h"
#include "conformance/contract/file_io.h"
#include "conformance/contract/tensor_file.h"
#include "conformance/contract/trace.h"
#include "reference/testing/small_case.h"

namespace plumbline::reference {
namespace {

using contract::ErrorCode;
using contract::OptimizerKind;
using contract::TensorKind;

struct Folders {
  std::filesystem::path case_dir;
  std::filesystem::path out_dir;
};

// New folders of the running test, with the case written.
Folders Write(const contract::CaseData& data) {
  const auto* info = testing::UnitTest::GetInstance()->current_test_info();
  std::string name = std::string(info->test_suite_name()) + "." + info->name();
  for (char& c : name)
    if (c == '/') c = '_';
  const std::filesystem::path root = std::filesystem::path(testing::TempDir()) / name;
  std::filesystem::remove_all(root);
  std::filesystem::create_directories(root / "case");
  std::filesystem::create_directories(root / "out");
  contract::WriteCase(root / "case", data);
  return {root / "case", root / "out"};
}

contract::Certificate ReadCertificate(const Folders& folders) {
  return contract::ParseCertificate(contract::ReadFile(folders.out_dir / "certificate.json"), "certificate.json");
}

struct Setting {
  const char* name;
  contract::ExactSpec model;
  OptimizerKind optimizer;
};

class RunCaseOn : public testing::TestWithParam<Setting> {};

TEST_P(RunCaseOn, WritesACompleteTraceWithEveryTensorWhole) {
  constexpr int64_t kSteps = 5;
  const contract::CaseData data = MakeCase(GetParam().model, GetParam().optimizer, 24, kSteps);
  const Folders folders = Write(data);
  RunCase(folders.case_dir, folders.out_dir);
  const contract::Trace trace = contract::ReadTrace(folders.out_dir, 0);
  EXPECT_TRUE(trace.complete);
  EXPECT_EQ(trace.engine, "reference");
  EXPECT_EQ(trace.world, 1);
  EXPECT_EQ(trace.config, data.spec.config);
  ASSERT_EQ(trace.steps.size(), static_cast<size_t>(kSteps));
  for (const contract::StepRecord& record : trace.steps) {
    EXPECT_EQ(record.tokens, contract::NumWeightedTokens(24, GetParam().model.positions, record.step));
    EXPECT_GT(record.loss, 0);
    for (const TensorKind kind : contract::kTensorKinds) {
      const bool absent = kind == TensorKind::kSecondMoment ||
                          (kind == TensorKind::kMoment && GetParam().optimizer == OptimizerKind::kModularSgd);
      ASSERT_EQ(record.of(kind).size(), absent ? 0 : data.parameters.size());
      for (size_t i = 0; i < record.of(kind).size(); ++i) {
        EXPECT_EQ(record.of(kind)[i].tensor, data.parameters[i].name);
        EXPECT_EQ(record.of(kind)[i].begin, 0);
        EXPECT_EQ(record.of(kind)[i].end, data.parameters[i].numel());
      }
    }
  }
}

TEST_P(RunCaseOn, IsAliveAndCertifiedForBf16) {
  const contract::CaseData data = MakeCase(GetParam().model, GetParam().optimizer, 24, 20);
  const Folders folders = Write(data);
  RunCase(folders.case_dir, folders.out_dir);
  const contract::Certificate certificate = ReadCertificate(folders);
  ASSERT_EQ(certificate.liveness.size(), data.parameters.size());
  for (size_t i = 0; i < data.parameters.size(); ++i) {
    EXPECT_EQ(certificate.liveness[i].tensor, data.parameters[i].name);
    EXPECT_GE(certificate.liveness[i].nonzero_gradient_share, 0.4) << data.parameters[i].name;
    EXPECT_GE(certificate.liveness[i].moving_weight_share, 0.4) << data.parameters[i].name;
  }
  const double fp32 = 16777216;
  const std::map<std::string, double> largest = {
      {"activation_sum", fp32 - 1}, {"gradient_sum", fp32 - 1}, {"stored", 256},
      {"fold_input", fp32 - 1},     {"gradient", fp32},         {"state", fp32}};
  ASSERT_EQ(certificate.quantities.size(), largest.size());
  for (const auto& [name, bound] : largest) {
    EXPECT_LE(certificate.quantities.at(name).max, bound) << name;
    EXPECT_GT(certificate.quantities.at(name).max, 0) << name << " was not measured";
    EXPECT_NE(certificate.quantities.at(name).where.find(", step "), std::string::npos) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Settings, RunCaseOn,
                         testing::Values(Setting{"dense_momentum", kDense, OptimizerKind::kModularMomentum},
                                         Setting{"dense_sgd", kDense, OptimizerKind::kModularSgd},
                                         Setting{"grouped_dropout_momentum", kGroupedDropout,
                                                 OptimizerKind::kModularMomentum},
                                         Setting{"grouped_dropout_sgd", kGroupedDropout, OptimizerKind::kModularSgd}),
                         [](const auto& info) { return info.param.name; });

TEST(RunCase, DumpsTensorsWhoseDigestsAreThoseOfTheTrace) {
  contract::CaseData data = MakeCase(kDense, OptimizerKind::kModularMomentum, 24, 4);
  data.spec.dump_steps = {0, 2};
  const Folders folders = Write(data);
  RunCase(folders.case_dir, folders.out_dir);
  const contract::Trace trace = contract::ReadTrace(folders.out_dir, 0);
  for (const int64_t step : data.spec.dump_steps) {
    const contract::TensorFile file =
        contract::ReadTensorFile(folders.out_dir / "rank0" / ("tensors-00000" + std::to_string(step) + ".safetensors"));
    EXPECT_EQ(file.tensors.size(), 4 * data.parameters.size());
    for (const TensorKind kind : contract::kTensorKinds) {
      for (const contract::SliceDigest& slice : trace.steps[static_cast<size_t>(step)].of(kind)) {
        const contract::HostTensor& tensor = file.Find(std::string(contract::Name(kind)) + "/" + slice.tensor + "@0");
        EXPECT_EQ(tensor.shape, std::vector<int64_t>{slice.end});
        contract::Digest digest;
        int64_t index = 0;
        for (const int64_t value : contract::ToInt64(tensor)) digest.Add(index++, value);
        EXPECT_EQ(digest.hash, slice.digest.hash) << contract::Name(kind) << " " << slice.tensor;
        if (kind != TensorKind::kGradient) continue;
        EXPECT_EQ(digest, slice.digest) << slice.tensor;
      }
    }
  }
  EXPECT_FALSE(std::filesystem::exists(folders.out_dir / "rank0" / "tensors-000001.safetensors"));
}

TEST(RunCase, DumpsWeightsThatAreTheWorkingWeightsOfTheDumpedMasters) {
  contract::CaseData data = MakeCase(kDense, OptimizerKind::kModularMomentum, 24, 1);
  data.spec.dump_steps = {0};
  const Folders folders = Write(data);
  RunCase(folders.case_dir, folders.out_dir);
  const contract::TensorFile file = contract::ReadTensorFile(folders.out_dir / "rank0" / "tensors-000000.safetensors");
  for (size_t i = 0; i < data.parameters.size(); ++i) {
    const auto values = [&](const std::string& kind) {
      return contract::ToInt64(file.Find(kind + "/" + data.parameters[i].name + "@0"));
    };
    const std::vector<int64_t> gradient = values("gradient"), moment = values("moment");
    const std::vector<int64_t> master = values("master"), weight = values("weight");
    for (size_t element = 0; element < weight.size(); ++element) {
      // M was 0 and t is 1.
      EXPECT_EQ((gradient[element] + 1 - moment[element]) % 29, 0);
      EXPECT_EQ((data.state[i].master[element] - moment[element] - 1 - master[element]) % 24, 0);
      EXPECT_EQ(weight[element], master[element] / 8 - 1);
    }
  }
}

TEST(RunCase, TracesThePerturbedGradientAsTheOneThatTheOptimizerConsumed) {
  contract::CaseData data = MakeCase(kDense, OptimizerKind::kModularMomentum, 24, 3);
  const Folders plain = Write(data);
  RunCase(plain.case_dir, plain.out_dir);
  const contract::Trace before = contract::ReadTrace(plain.out_dir, 0);
  data.spec.perturbation = contract::Perturbation{contract::Perturbation::Kind::kGradient, "pos.weight", 3, 1, 5};
  const Folders perturbed = Write(data);
  RunCase(perturbed.case_dir, perturbed.out_dir);
  const contract::Trace after = contract::ReadTrace(perturbed.out_dir, 0);
  const auto gradient = [](const contract::Trace& trace, size_t step) {
    return trace.steps[step].of(TensorKind::kGradient)[1];
  };
  EXPECT_EQ(gradient(after, 0).digest, gradient(before, 0).digest);
  EXPECT_EQ(gradient(after, 1).digest.sum, gradient(before, 1).digest.sum + 5);
  EXPECT_EQ(gradient(after, 1).digest.sum_indexed,
            (gradient(before, 1).digest.sum_indexed + 4 * 5) % contract::kIndexedModulus);
}

TEST(RunCase, MarksThePhasesOfEachStepWhenAsked) {
  contract::CaseData data = MakeCase(kDense, OptimizerKind::kModularSgd, 24, 2);
  data.spec.phase_marks = true;
  const Folders folders = Write(data);
  RunCase(folders.case_dir, folders.out_dir);
  const std::string text = contract::ReadFile(folders.out_dir / "rank0" / "trace.jsonl");
  size_t at = 0;
  for (const int step : {0, 1}) {
    for (const char* phase : {"forward", "backward", "reduce", "step"}) {
      at = text.find("{\"record\": \"phase\", \"step\": " + std::to_string(step) + ", \"phase\": \"" + phase + "\"}",
                     at);
      ASSERT_NE(at, std::string::npos) << phase << " of step " << step << " is absent or out of order";
    }
  }
  EXPECT_TRUE(contract::ReadTrace(folders.out_dir, 0).complete);
}

TEST(RunCase, GivesTheSameTraceWhateverStorageStageAndBucketTheConfigAsksFor) {
  contract::CaseData data = MakeCase(kDense, OptimizerKind::kModularMomentum, 24, 2);
  const Folders plain = Write(data);
  RunCase(plain.case_dir, plain.out_dir);
  const contract::Trace expected = contract::ReadTrace(plain.out_dir, 0);
  data.spec.config.storage = contract::DType::kBF16;
  data.spec.config.zero_stage = 2;
  data.spec.config.reduce_bucket_elems = 7;
  const Folders other = Write(data);
  RunCase(other.case_dir, other.out_dir);
  const contract::Trace trace = contract::ReadTrace(other.out_dir, 0);
  for (size_t step = 0; step < 2; ++step) {
    EXPECT_EQ(trace.steps[step].loss, expected.steps[step].loss);
    for (size_t i = 0; i < data.parameters.size(); ++i)
      EXPECT_EQ(trace.steps[step].of(TensorKind::kWeight)[i].digest,
                expected.steps[step].of(TensorKind::kWeight)[i].digest);
  }
}

struct Refusal {
  const char* name;
  std::function<void(contract::CaseData&)> change;
  ErrorCode code;
  const char* message;
};

class RunCaseRefuses : public testing::TestWithParam<Refusal> {};

TEST_P(RunCaseRefuses, WithACodeAndAMessageThatNamesTheField) {
  contract::CaseData data = MakeCase(kDense, OptimizerKind::kModularSgd, 24, 2);
  GetParam().change(data);
  const Folders folders = Write(data);
  try {
    RunCase(folders.case_dir, folders.out_dir);
    FAIL() << "accepted";
  } catch (const contract::Error& error) {
    EXPECT_EQ(error.code(), GetParam().code);
    EXPECT_NE(std::string(error.what()).find(GetParam().message), std::string::npos) << error.what();
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, RunCaseRefuses,
                         testing::Values(Refusal{"data_degree",
                                                 [](contract::CaseData& data) {
                                                   data.spec.config.data_degree = 2;
                                                   data.spec.config.micro_batch_size = 12;
                                                 },
                                                 ErrorCode::kUnsupported, "mesh.data is 2"},
                                         Refusal{"accumulation",
                                                 [](contract::CaseData& data) {
                                                   data.spec.config.accumulation_steps = 3;
                                                   data.spec.config.micro_batch_size = 8;
                                                 },
                                                 ErrorCode::kUnsupported, "gradient_accumulation_steps is 3"},
                                         Refusal{"save", [](contract::CaseData& data) { data.spec.save_steps = {1}; },
                                                 ErrorCode::kUnsupported, "save_steps"},
                                         Refusal{"resume", [](contract::CaseData& data) { data.spec.resume = true; },
                                                 ErrorCode::kUnsupported, "resume"},
                                         Refusal{"no_weighted_token",
                                                 [](contract::CaseData& data) {
                                                   for (int32_t& weight : data.batches.loss_weights) weight = 0;
                                                 },
                                                 ErrorCode::kInvalidArgument, "loss_weights"}),
                         [](const auto& info) { return info.param.name; });

TEST(Description, SaysWhatRunCaseAccepts) {
  const contract::EngineDescription description = Description();
  EXPECT_EQ(description.name, "reference");
  EXPECT_TRUE(description.starts_itself);
  EXPECT_TRUE(description.batch);
  EXPECT_EQ(description.families, (std::vector<std::string>{"exact", "gpt2", "llama"}));
  EXPECT_EQ(description.dtypes, std::vector<std::string>{"fp64"});
  EXPECT_EQ(description.optimizers,
            (std::vector<std::string>{"ModularMomentum", "ModularSGD", "AdamW", "SGD", "Adam", "Lion", "Lamb"}));
  EXPECT_EQ(description.max_data_degree, 1);
  EXPECT_FALSE(description.Has("accumulation"));
  for (const char* feature : {"dropout", "grouped_heads", "dump", "perturbation", "certificate", "unit_clipping",
                              "norm_history", "unequal_lengths"})
    EXPECT_TRUE(description.Has(feature)) << feature;
  const contract::EngineDescription parsed =
      contract::ParseEngineDescription(contract::ToJson(description), "describe");
  EXPECT_EQ(contract::ToJson(parsed), contract::ToJson(description));
}

}  // namespace
}  // namespace plumbline::reference
