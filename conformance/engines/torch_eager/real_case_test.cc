// SPDX-License-Identifier: Apache-2.0
// The real families from a case folder to the trace, on a real text (the file in argv[1]): they learn, in all storage
// types, and the trace says what the dump holds.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <string>
#include <tuple>

#include "conformance/contract/batch_source.h"
#include "conformance/contract/tensor_file.h"
#include "conformance/contract/trace.h"
#include "conformance/engines/torch_eager/real_step.h"
#include "conformance/engines/torch_eager/run_case.h"
#include "conformance/engines/torch_eager/test_case.h"

namespace plumbline::conformance::torch_eager {
namespace {

std::filesystem::path text_path;

// One parameter is frozen.
contract::ModelSpec MakeModel(contract::Family family) {
  contract::RealSpec sizes = {
      .layers = 2, .width = 32, .heads = 4, .positions = 16, .hidden = 64, .vocab = 128, .frozen = {}};
  sizes.dropout = 0.1;
  sizes.unused = true;
  if (family == contract::Family::kGpt2) {
    sizes.frozen = {"layers.0.norm1.bias"};
    return contract::Gpt2Spec{sizes};
  }
  sizes.frozen = {"layers.0.attn.v.weight"};
  contract::LlamaSpec llama = {sizes, /*kv_heads=*/2};
  llama.unequal_lengths = true;
  return llama;
}

contract::CaseData MakeTextCase(const contract::ModelSpec& model, contract::DType storage) {
  contract::RunConfig config;
  config.optimizer = contract::OptimizerKind::kAdamW;
  config.storage = storage;
  if (storage == contract::DType::kF16) config.loss_scale = 0;
  config.params.lr = config.schedule.warmup_max_lr = 0.01;
  config.schedule.kind = contract::Schedule::Kind::kWarmup;
  config.schedule.warmup_num_steps = 4;
  config.gradient_clipping = 1;
  contract::CaseData data = MakeRealCase(model, config, /*steps=*/20, /*batch=*/8, /*accumulation=*/2);
  data.spec.first_step = 5;
  data.spec.dump_steps = {24};
  data.batches = contract::MakeBatches(contract::ReadTokenSource(text_path), model, {data.spec.seed, 5, 20, 8});
  return data;
}

contract::Trace RunIn(const contract::CaseData& data, const std::filesystem::path& root) {
  std::filesystem::remove_all(root);
  std::filesystem::create_directories(root / "case");
  std::filesystem::create_directories(root / "out");
  contract::WriteCase(root / "case", data);
  RunCase(root / "case", root / "out");
  return contract::ReadTrace(root / "out", 0);
}

class RealCase : public testing::TestWithParam<std::tuple<contract::Family, contract::DType>> {};

TEST_P(RealCase, LearnsTheTextAndReportsEveryTensor) {
  const auto [family, storage] = GetParam();
  const contract::CaseData data = MakeTextCase(MakeModel(family), storage);
  const std::filesystem::path root = std::filesystem::path(testing::TempDir()) /
                                     (std::string(data.spec.model.family()) + "_case_" + std::string(Name(storage)));
  const contract::Trace trace = RunIn(data, root);
  ASSERT_TRUE(trace.complete);
  ASSERT_EQ(trace.steps.size(), 20u);
  EXPECT_NEAR(trace.steps[0].loss, std::log(128.0), 0.3);
  EXPECT_LT(trace.steps[19].loss, trace.steps[0].loss - 0.8);
  RecordProperty("loss", std::to_string(trace.steps[0].loss) + " to " + std::to_string(trace.steps[19].loss));
  const contract::TensorFile dump = contract::ReadTensorFile(root / "out" / "rank0" / "tensors-000024.safetensors");
  const contract::StepRecord& last = trace.steps[19];
  size_t num_slices = 0;
  for (const contract::TensorKind kind : contract::kTensorKinds) {
    const bool held = kind == contract::TensorKind::kMaster || kind == contract::TensorKind::kWeight;
    EXPECT_EQ(last.of(kind).size(), data.parameters.size() - (held ? 0 : 1)) << Name(kind);
    for (const contract::SliceDigest& slice : last.of(kind)) {
      const contract::HostTensor& tensor = dump.Find(std::string(Name(kind)) + "/" + slice.tensor + "@0");
      EXPECT_EQ(tensor.dtype, kind == contract::TensorKind::kWeight ? storage : contract::DType::kF32);
      EXPECT_EQ(tensor.numel(), slice.end);
      EXPECT_EQ(DigestOfBits(tensor).hash, slice.digest.hash) << slice.tensor;
      ++num_slices;
    }
  }
  EXPECT_EQ(dump.tensors.size(), num_slices);
  ASSERT_TRUE(last.real.has_value());
  EXPECT_EQ(last.real->lr, std::vector<double>{0.01});
  EXPECT_FALSE(last.real->skipped);
  std::filesystem::remove_all(root);
}

INSTANTIATE_TEST_SUITE_P(FamilyAndStorage, RealCase,
                         testing::Combine(testing::Values(contract::Family::kGpt2, contract::Family::kLlama),
                                          testing::Values(contract::DType::kF32, contract::DType::kBF16,
                                                          contract::DType::kF16)));

}  // namespace
}  // namespace plumbline::conformance::torch_eager

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (argc != 2) return 2;
  plumbline::conformance::torch_eager::text_path = argv[1];
  return RUN_ALL_TESTS();
}
