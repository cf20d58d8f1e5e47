// SPDX-License-Identifier: Apache-2.0
// Whole cases, from folder to traces: every layout must give the digests of the plainest one, and errors must be told
// apart.
#include "optimized/engine/run_case.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <numeric>

#include "conformance/contract/case_file.h"
#include "conformance/contract/error.h"
#include "conformance/contract/file_io.h"
#include "conformance/contract/tensor_file.h"
#include "conformance/contract/trace.h"
#include "optimized/engine/testing/case_run.h"
#include "optimized/engine/testing/small_case.h"

namespace plumbline::optimized {
namespace {

namespace fs = std::filesystem;
using contract::CaseData;
using contract::CommCount;
using contract::DType;
using contract::ErrorCode;
using contract::OptimizerKind;
using contract::TensorKind;
using ::testing::HasSubstr;

using testing::Combine;
using testing::Combined;
using testing::kBatch;
using testing::kNoLimit;
using testing::kSteps;
using testing::Layout;
using testing::MakeCase;
using testing::RunInFreshFolders;

int64_t TotalElems(const CaseData& data) {
  int64_t total = 0;
  for (const auto& parameter : data.parameters) total += parameter.numel();
  return total;
}

void ExpectEqualToPlain(OptimizerKind optimizer, bool dropout, const std::vector<Layout>& layouts) {
  const CaseData plain = MakeCase({}, optimizer, dropout);
  const Combined expected = Combine(RunInFreshFolders(plain), plain);
  const size_t num_kinds = optimizer == OptimizerKind::kModularMomentum ? 4 : 3;
  ASSERT_EQ(expected.digests.size(), kSteps * plain.parameters.size() * num_kinds);
  for (const Layout& layout : layouts) {
    const CaseData data = MakeCase(layout, optimizer, dropout);
    EXPECT_EQ(Combine(RunInFreshFolders(data), data), expected) << Text(layout);
  }
}

TEST(RunCase, EveryLayoutGivesTheDigestsOfOneRankInFp32) {
  const int64_t total = TotalElems(MakeCase({}));
  std::vector<Layout> layouts;
  for (const int64_t data_degree : {1, 2, 3}) {
    for (const int64_t zero_stage : {0, 1, 2, 3}) {
      for (const int64_t accumulation : {1, 2}) {
        for (const DType storage : {DType::kF32, DType::kBF16, DType::kF16}) {
          for (const int64_t bucket :
               {int64_t{1}, int64_t{143}, int64_t{144}, int64_t{145}, total - 1, total, total + 1}) {
            layouts.push_back({data_degree, zero_stage, accumulation, storage, bucket});
          }
        }
      }
    }
  }
  ExpectEqualToPlain(OptimizerKind::kModularMomentum, true, layouts);
}

// Thresholds and limits around the sizes of parameters, groups and the whole.
TEST(RunCase, ZeroThreeGivesTheSameDigestsWhateverItsLimits) {
  const int64_t total = TotalElems(MakeCase({}));
  std::vector<Layout> layouts;
  for (const int64_t prefetch : {int64_t{0}, int64_t{150}, int64_t{700}, kNoLimit}) {
    for (const int64_t persistence : {0, 61, 133, 100000}) {
      for (const int64_t max_live : {int64_t{0}, int64_t{800}, total - 1, kNoLimit}) {
        for (const bool overlap : {false, true}) {
          layouts.push_back({3, 3, 2, DType::kBF16, 200, {overlap, prefetch, persistence, max_live}});
        }
        layouts.push_back({2, 3, 3, DType::kF32, kNoLimit, {true, prefetch, persistence, max_live}});
        layouts.push_back({1, 3, 1, DType::kF32, 1, {false, prefetch, persistence, max_live}});
      }
    }
  }
  ExpectEqualToPlain(OptimizerKind::kModularMomentum, true, layouts);
}

TEST(RunCase, OverlapOffGivesTheSameDigestsInEveryStage) {
  std::vector<Layout> layouts;
  for (const int64_t zero_stage : {0, 1, 2, 3}) {
    for (const int64_t accumulation : {1, 2}) {
      layouts.push_back({3, zero_stage, accumulation, DType::kBF16, 200, {.overlap_comm = false}});
    }
  }
  ExpectEqualToPlain(OptimizerKind::kModularMomentum, true, layouts);
}

TEST(RunCase, SgdAndNoDropoutDoToo) {
  std::vector<Layout> layouts;
  for (const int64_t zero_stage : {0, 1, 2, 3}) {
    for (const DType storage : {DType::kF32, DType::kBF16, DType::kF16}) {
      layouts.push_back({3, zero_stage, 4, storage, 97, {.persistence_threshold_elems = 100}});
    }
  }
  ExpectEqualToPlain(OptimizerKind::kModularSgd, false, layouts);
}

TEST(RunCase, MoreRanksThanAlignmentUnitsOfATensorStillCover) {
  ExpectEqualToPlain(OptimizerKind::kModularMomentum, false,
                     {{12, 2, 1, DType::kF32, 1},
                      {12, 1, 1, DType::kBF16, kNoLimit},
                      {12, 3, 1, DType::kBF16, 1, {true, 0, 0, 0}},
                      {12, 3, 1, DType::kBF16, kNoLimit, {true, 300, 0, kNoLimit}}});
}

// Padded elements of the buckets by the rule of docs/formats.md, written again.
std::vector<int64_t> PaddedBuckets(const CaseData& data) {
  std::vector<std::vector<int64_t>> buckets;
  for (size_t p = data.parameters.size(); p-- > 0;) {
    const int64_t numel = data.parameters[p].numel();
    const bool fits = !buckets.empty() && std::accumulate(buckets.back().begin(), buckets.back().end(), numel) <=
                                              data.spec.config.reduce_bucket_elems;
    if (!fits) buckets.emplace_back();
    buckets.back().push_back(numel);
  }
  std::vector<int64_t> padded;
  for (const auto& bucket : buckets) {
    int64_t elems = 0;
    for (const int64_t numel : bucket) elems = (elems + 31) / 32 * 32 + numel;
    const int64_t unit = 32 * data.spec.config.data_degree;
    padded.push_back((elems + unit - 1) / unit * unit);
  }
  return padded;
}

std::map<std::string, CommCount> ExpectedComm(const CaseData& data) {
  const contract::RunConfig& config = data.spec.config;
  std::map<std::string, CommCount> expected;
  if (config.data_degree == 1) return expected;
  expected["all_reduce"] = {2, 16};
  for (const int64_t elems : PaddedBuckets(data)) {
    if (config.zero_stage == 0) {
      expected["all_reduce"].calls += 1;
      expected["all_reduce"].bytes += 4 * elems;
      continue;
    }
    const int64_t times = config.zero_stage == 2 ? config.accumulation_steps : 1;
    expected["reduce_scatter"].calls += times;
    expected["reduce_scatter"].bytes += times * 4 * elems;
    expected["all_gather"].calls += 1;
    expected["all_gather"].bytes += contract::SizeBytes(config.storage) * elems;
  }
  return expected;
}

TEST(RunCase, TheLedgerEqualsTheFormulaInEveryStepAndTheSequenceIsEqualOnAllRanks) {
  for (const int64_t data_degree : {1, 2, 3}) {
    for (const int64_t zero_stage : {0, 1, 2}) {
      for (const int64_t bucket : {int64_t{1}, int64_t{300}, kNoLimit}) {
        const CaseData data = MakeCase({data_degree, zero_stage, 2, DType::kBF16, bucket});
        const fs::path out_dir = RunInFreshFolders(data);
        const contract::Trace first = contract::ReadTrace(out_dir, 0);
        for (int64_t rank = 0; rank < data_degree; ++rank) {
          const contract::Trace trace = contract::ReadTrace(out_dir, rank);
          for (const contract::StepRecord& record : trace.steps) {
            EXPECT_EQ(record.comm, ExpectedComm(data));
            EXPECT_EQ(record.comm_sequence, first.steps[record.step].comm_sequence);
          }
        }
      }
    }
  }
}

TEST(RunCase, DumpsHoldTheSlicesOfTheTraceAtTheStepsAskedForOnly) {
  CaseData data = MakeCase({3, 2, 1, DType::kBF16, 300});
  data.spec.dump_steps = {0, 3};
  const fs::path out_dir = RunInFreshFolders(data);
  for (int64_t rank = 0; rank < 3; ++rank) {
    const fs::path rank_dir = out_dir / ("rank" + std::to_string(rank));
    EXPECT_FALSE(fs::exists(rank_dir / "tensors-000001.safetensors"));
    const contract::Trace trace = contract::ReadTrace(out_dir, rank);
    for (const int64_t step : data.spec.dump_steps) {
      const contract::TensorFile file =
          contract::ReadTensorFile(rank_dir / ("tensors-00000" + std::to_string(step) + ".safetensors"));
      size_t num_slices = 0;
      for (const TensorKind kind : contract::kTensorKinds) {
        for (const contract::SliceDigest& slice : trace.steps[step].of(kind)) {
          ++num_slices;
          const std::vector<int64_t> values = contract::ToInt64(
              file.Find(std::string(Name(kind)) + "/" + slice.tensor + "@" + std::to_string(slice.begin)));
          contract::Digest digest;
          for (size_t i = 0; i < values.size(); ++i) digest.Add(slice.begin + static_cast<int64_t>(i), values[i]);
          EXPECT_EQ(digest.hash, slice.digest.hash) << slice.tensor;
        }
      }
      EXPECT_EQ(file.tensors.size(), num_slices);
    }
  }
}

TEST(RunCase, AResumedCaseGoesOnWithTheTracesOfTheWholeOne) {
  for (const int64_t zero_stage : {0, 1, 2, 3}) {
    CaseData data = MakeCase({3, zero_stage, 2, DType::kBF16, 200, {true, 300, 61, 800}});
    data.spec.save_steps = {0, 2};
    const fs::path whole_dir = RunInFreshFolders(data);
    for (const int64_t step : data.spec.save_steps) {
      const fs::path saved = whole_dir / ("checkpoint-00000" + std::to_string(step));
      CaseData resumed = data;
      resumed.spec.save_steps = {};
      resumed.spec.resume = true;
      const fs::path resumed_dir = RunInFreshFolders(resumed, saved);
      for (int64_t rank = 0; rank < 3; ++rank) {
        const contract::Trace whole = contract::ReadTrace(whole_dir, rank);
        const contract::Trace rest = contract::ReadTrace(resumed_dir, rank);
        EXPECT_TRUE(rest.complete);
        ASSERT_EQ(rest.steps.size(), static_cast<size_t>(kSteps - step - 1));
        for (const contract::StepRecord& record : rest.steps) {
          const contract::StepRecord& expected = whole.steps[record.step];
          EXPECT_EQ(record.loss, expected.loss);
          ASSERT_NO_FATAL_FAILURE(testing::ExpectSameCommAndTensors(record, expected));
        }
      }
    }
  }
}

TEST(RunCase, PhaseMarksAreWrittenOnlyWhenAskedFor) {
  CaseData data = MakeCase({2, 1, 2});
  const std::string without = contract::ReadFile(RunInFreshFolders(data) / "rank1" / "trace.jsonl");
  EXPECT_EQ(without.find("\"phase\""), std::string::npos);
  data.spec.phase_marks = true;
  const std::string with = contract::ReadFile(RunInFreshFolders(data) / "rank1" / "trace.jsonl");
  for (const char* phase : {"forward", "backward", "reduce", "step"}) {
    EXPECT_THAT(with, HasSubstr("\"phase\": \"" + std::string(phase) + "\""));
  }
}

void ExpectRefusal(const CaseData& data, ErrorCode code, const std::string& message) {
  try {
    RunInFreshFolders(data);
    FAIL() << "was not refused: " << message;
  } catch (const contract::Error& error) {
    EXPECT_EQ(error.code(), code);
    EXPECT_THAT(error.what(), HasSubstr(message));
  }
}

TEST(RunCase, WhatItCannotDoIsUnsupportedAndSaysWhy) {
  CaseData perturbed = MakeCase({2, 1});
  perturbed.spec.perturbation = contract::Perturbation{};
  perturbed.spec.perturbation->tensor = "pos.weight";
  ExpectRefusal(perturbed, ErrorCode::kUnsupported, "perturbation");
}

TEST(RunCase, TheErrorOfOneRankIsReportedNotItsConsequencesOnOthers) {
  // Rank 2's samples of step 1 get loss weights that are no multiple of N: its gradients are not integers. With ZeRO 0
  // every rank sees the sum, so the message names some rank; with three steps before it everybody else is inside a
  // collective.
  for (const int64_t zero_stage : {0, 1, 2, 3}) {
    CaseData data = MakeCase({3, zero_stage, 1, DType::kF32, 97, {true, 100, 0, 0}});
    for (int64_t position = 0; position < data.spec.model.positions(); ++position) {
      int32_t& weight = data.batches.loss_weights[data.batches.Index(1, 2 * kBatch / 3, position)];
      if (weight != 0) weight += 1;
    }
    ExpectRefusal(data, ErrorCode::kInternal, "not an integer");
  }
}

TEST(RunCase, ATraceThatCannotBeWrittenOnOneRankIsAnEnvironmentError) {
  const CaseData data = MakeCase({3, 1});
  const fs::path root = fs::path(::testing::TempDir()) / "run_case_blocked";
  fs::remove_all(root);
  fs::create_directories(root / "case");
  fs::create_directories(root / "out");
  contract::WriteCase(root / "case", data);
  contract::WriteFile(root / "out" / "rank1", "a file where a folder is due");
  try {
    RunCase(root / "case", root / "out");
    FAIL();
  } catch (const contract::Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kEnvironment);
    EXPECT_THAT(error.what(), HasSubstr("rank1"));
  }
}

}  // namespace
}  // namespace plumbline::optimized
