// SPDX-License-Identifier: Apache-2.0
// A run that is saved and resumed, twice, has the bits of one that is not, in every stage.
#include "optimized/engine/training_checkpoint.h"

#include <gtest/gtest.h>

#include <map>
#include <mutex>

#include "conformance/contract/error.h"
#include "optimized/engine/testing/small_case.h"

namespace plumbline::optimized {
namespace {

namespace fs = std::filesystem;
using contract::CaseData;
using contract::DType;
using contract::OptimizerKind;
using testing::Layout;

// By rank and step: the loss of the step, and everything that the rank holds after it.
using History = std::map<std::pair<int64_t, int64_t>, std::pair<double, testing::HeldState>>;

fs::path FreshRoot() {
  static int next = 0;
  const fs::path root = fs::path(::testing::TempDir()) / ("training_checkpoint_" + std::to_string(next++));
  fs::remove_all(root);
  return root;
}

// Steps [from, to) in a new training, which resumes where from > 0 and saves at the end.
void RunPart(const CaseData& data, const fs::path& root, int64_t from, int64_t to, History& history) {
  const auto files = MakeLocalFileSystem();
  std::mutex mutex;
  testing::RunRanks(data, [&](Training& training) {
    const int64_t rank = training.communicator->rank();
    if (from > 0) {
      EXPECT_EQ(ResumeTraining(training, root / std::to_string(from), *files), from);
    }
    for (int64_t step = from; step < to; ++step) {
      const double loss = testing::Step(training, step).loss;
      testing::HeldState state = testing::StateOf(training);
      const std::lock_guard lock(mutex);
      history[{rank, step}] = {loss, std::move(state)};
    }
    SaveTraining(training, to, root / std::to_string(to), *files);
  });
}

// Wipes what the case would start from, so that only the checkpoint can give the right state.
CaseData WithoutState(CaseData data) {
  for (contract::ParameterState& state : data.state) {
    std::fill(state.weight.begin(), state.weight.end(), 0);
    std::fill(state.master.begin(), state.master.end(), 8);
    std::fill(state.moment.begin(), state.moment.end(), 3);
  }
  return data;
}

void CheckTwoCycles(const Layout& layout, OptimizerKind optimizer) {
  const CaseData data = testing::MakeCase(layout, optimizer, optimizer == OptimizerKind::kModularMomentum);
  History whole, parts;
  const fs::path root = FreshRoot();
  RunPart(data, FreshRoot(), 0, 4, whole);
  RunPart(data, root, 0, 1, parts);
  RunPart(WithoutState(data), root, 1, 3, parts);
  RunPart(WithoutState(data), root, 3, 4, parts);
  ASSERT_EQ(whole.size(), static_cast<size_t>(4 * layout.data_degree));
  EXPECT_EQ(parts, whole) << testing::Text(layout);
}

TEST(TrainingCheckpoint, TwoCyclesOfSaveAndResumeChangeNoBitInAnyStage) {
  for (const int64_t zero_stage : {0, 1, 2, 3}) {
    for (const int64_t data_degree : {1, 3}) {
      for (const DType storage : {DType::kF32, DType::kBF16}) {
        for (const int64_t bucket : {int64_t{1}, int64_t{200}, testing::kNoLimit}) {
          const Layout layout{data_degree, zero_stage, 2, storage, bucket, {true, 300, 61, 800}};
          CheckTwoCycles(layout, OptimizerKind::kModularMomentum);
        }
      }
    }
    CheckTwoCycles({2, zero_stage, 1}, OptimizerKind::kModularSgd);
    CheckTwoCycles({12, zero_stage, 1, DType::kBF16, 1, {false, 0, 0, 0}}, OptimizerKind::kModularMomentum);
  }
}

TEST(TrainingCheckpoint, ACheckpointOfAnotherLayoutIsRefused) {
  const fs::path root = FreshRoot();
  History history;
  RunPart(testing::MakeCase({2, 2, 1}), root, 0, 1, history);
  const auto files = MakeLocalFileSystem();
  for (const Layout& layout :
       {Layout{3, 2, 1}, Layout{2, 3, 1}, Layout{2, 2, 1, DType::kBF16}, Layout{2, 2, 1, DType::kF32, 97}}) {
    testing::RunRanks(testing::MakeCase(layout), [&](Training& training) {
      const testing::HeldState before = testing::StateOf(training);
      try {
        ResumeTraining(training, root / "1", *files);
        ADD_FAILURE() << "was not refused: " << testing::Text(layout);
      } catch (const contract::Error& error) {
        EXPECT_EQ(error.code(), contract::ErrorCode::kUnsupported);
      }
      EXPECT_EQ(testing::StateOf(training), before);
    });
  }
}

}  // namespace
}  // namespace plumbline::optimized
