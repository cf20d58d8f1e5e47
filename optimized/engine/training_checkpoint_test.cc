// SPDX-License-Identifier: Apache-2.0
// A run that is saved and resumed, twice, has the bits of one that is not, in every stage.
#include "optimized/engine/training_checkpoint.h"

#include <gtest/gtest.h>

#include <map>
#include <mutex>

#include "conformance/contract/error.h"
#include "optimized/engine/testing/real_case.h"
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
  data.num_updates = 77;
  data.norm_history = {5, 1e6, 1};
  for (contract::RealParameterState& state : data.real_state) {
    std::fill(state.master.begin(), state.master.end(), 8.0f);
    std::fill(state.moment.begin(), state.moment.end(), 3.0f);
    std::fill(state.second_moment.begin(), state.second_moment.end(), 2.0f);
  }
  for (contract::ParameterState& state : data.state) {
    std::fill(state.weight.begin(), state.weight.end(), 0);
    std::fill(state.master.begin(), state.master.end(), 8);
    std::fill(state.moment.begin(), state.moment.end(), 3);
  }
  return data;
}

void CheckTwoCycles(const CaseData& data, const std::string& what) {
  History whole, parts;
  const fs::path root = FreshRoot();
  RunPart(data, FreshRoot(), 0, 4, whole);
  RunPart(data, root, 0, 1, parts);
  RunPart(WithoutState(data), root, 1, 3, parts);
  RunPart(WithoutState(data), root, 3, 4, parts);
  ASSERT_EQ(whole.size(), static_cast<size_t>(4 * data.spec.config.data_degree));
  EXPECT_TRUE(parts == whole) << what;  // not EXPECT_EQ: it would print every byte
}

void CheckTwoCycles(const Layout& layout, OptimizerKind optimizer) {
  CheckTwoCycles(testing::MakeCase(layout, optimizer, optimizer == OptimizerKind::kModularMomentum),
                 testing::Text(layout));
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

// With dropout, clipping, two groups, a schedule, frozen and unused parameters. The number of updates is not that of
// steps: in the first one (t = 1) SGD starts its momentum, and AdamW corrects its moments by t.
TEST(TrainingCheckpoint, TwoCyclesChangeNoBitOfGpt2InAnyStage) {
  for (const int64_t zero_stage : {0, 1, 2, 3}) {
    for (const OptimizerKind optimizer : {OptimizerKind::kAdamW, OptimizerKind::kSgd, OptimizerKind::kLamb}) {
      for (const double momentum : {0.0, 0.9}) {
        for (const DType storage : {DType::kF32, DType::kBF16}) {
          for (const int64_t num_updates : {0, 5}) {
            const Layout layout{3, zero_stage, 2, storage, 200, {true, 300, 13, 800}};
            const testing::RealOptions options{.optimizer = optimizer,
                                               .momentum = momentum,
                                               .tied_head = num_updates == 0,
                                               .frozen = {"pos.weight", "layers.0.mlp.up.weight", "norm.bias"}};
            CaseData data = testing::MakeRealCase(layout, options);
            data.spec.config.schedule = testing::MakeShortCycle();
            data.num_updates = num_updates;
            CheckTwoCycles(data, testing::Text(layout) + " " + Text(options));
          }
        }
      }
    }
  }
}

TEST(TrainingCheckpoint, TwoCyclesChangeNoBitOfLlamaInAnyStage) {
  for (const int64_t zero_stage : {0, 1, 2, 3}) {
    for (const DType storage : {DType::kF32, DType::kBF16, DType::kF16}) {
      for (const bool unequal_lengths : {false, true}) {
        const Layout layout{3, zero_stage, 2, storage, 200, {true, 300, 13, 800}};
        const testing::RealOptions options{.family = contract::Family::kLlama,
                                           .kv_heads = unequal_lengths ? 3 : 1,
                                           .unequal_lengths = unequal_lengths,
                                           .frozen = {"layers.0.mlp.up.weight", "norm.weight"}};
        CaseData data = testing::MakeRealCase(layout, options);
        data.spec.config.schedule = testing::MakeShortCycle();
        CheckTwoCycles(data, testing::Text(layout) + " " + Text(options));
      }
    }
  }
}

TEST(TrainingCheckpoint, TwoCyclesChangeNoBitWithAdaptiveClipping) {
  for (const int64_t zero_stage : {0, 1, 2, 3}) {
    for (const auto& clipping : {testing::kHistoryClipping, testing::kUnitClipping}) {
      const Layout layout{3, zero_stage, 2, DType::kF32, 200, {true, 300, 13, 800}};
      const testing::RealOptions options{.optimizer = OptimizerKind::kLamb, .adaptive_clipping = clipping};
      CheckTwoCycles(testing::MakeRealCase(layout, options), testing::Text(layout) + " " + Text(options));
    }
  }
}

TEST(TrainingCheckpoint, TwoCyclesChangeNoBitWhereLayersHaveStagesOfTheirOwn) {
  for (const std::vector<int64_t>& layers : {std::vector<int64_t>{0, 3}, {3, 1}, {2, 0}}) {
    for (const int64_t zero_stage : {0, 2, 3}) {
      const Layout layout{3, zero_stage, 2, DType::kBF16, 200, {true, 300, 13, 800}, layers};
      CheckTwoCycles(layout, OptimizerKind::kModularMomentum);
      for (const contract::Family family : {contract::Family::kGpt2, contract::Family::kLlama}) {
        const testing::RealOptions options{.family = family, .frozen = {"layers.0.mlp.up.weight", "norm.weight"}};
        CheckTwoCycles(testing::MakeRealCase(layout, options), testing::Text(layout) + " " + Text(options));
      }
    }
  }
}

// Two ranks of stage 2 saved it.
TEST(TrainingCheckpoint, OneOfTheSameStagesIsResumedHoweverTheyAreWritten) {
  const fs::path root = FreshRoot();
  History history;
  RunPart(testing::MakeCase({2, 2, 1}), root, 0, 1, history);
  RunPart(testing::MakeCase({.data_degree = 2, .zero_stage = 2, .layer_stages = {2, 2}}), root, 1, 2, history);
  RunPart(testing::MakeCase({2, 2, 1}), root, 2, 3, history);
}

void ExpectRefused(const CaseData& data, const fs::path& checkpoint, const std::string& what) {
  const auto files = MakeLocalFileSystem();
  testing::RunRanks(data, [&](Training& training) {
    try {
      ResumeTraining(training, checkpoint, *files);
      ADD_FAILURE() << "was not refused: " << what;
    } catch (const contract::Error& error) {
      EXPECT_EQ(error.code(), contract::ErrorCode::kUnsupported);
    }
  });
}

TEST(TrainingCheckpoint, ACheckpointOfAnotherGpt2ModelIsRefused) {
  const fs::path root = FreshRoot();
  const Layout layout{2, 2, 1};
  History history;
  RunPart(testing::MakeRealCase(layout), root, 0, 1, history);
  for (const testing::RealOptions& options :
       {testing::RealOptions{.dropout = 0.2}, testing::RealOptions{.frozen = {"norm.bias"}},
        testing::RealOptions{.tied_head = false}, testing::RealOptions{.unused = false}}) {
    ExpectRefused(testing::MakeRealCase(layout, options), root / "1", Text(options));
  }
}

// Of the same shapes throughout, but for the first.
TEST(TrainingCheckpoint, ACheckpointOfAnotherLlamaModelIsRefused) {
  const fs::path root = FreshRoot();
  const Layout layout{2, 2, 1};
  History history;
  const CaseData saved = testing::MakeRealCase(layout, {.family = contract::Family::kLlama});
  RunPart(saved, root, 0, 1, history);
  ExpectRefused(testing::MakeRealCase(layout, {.family = contract::Family::kLlama, .kv_heads = 3}), root / "1",
                "kv_heads");
  ExpectRefused(testing::MakeRealCase(layout, {.family = contract::Family::kLlama, .unequal_lengths = false}),
                root / "1", "unequal_lengths");
  CaseData other = saved;
  other.spec.model.llama().rope_theta = 101;
  ExpectRefused(other, root / "1", "rope_theta");
  other = saved;
  other.spec.model.llama().heads = 6;
  other.spec.model.llama().kv_heads = 2;
  ExpectRefused(other, root / "1", "heads");
}

TEST(TrainingCheckpoint, ACheckpointOfAnotherLayoutIsRefused) {
  const fs::path root = FreshRoot();
  History history;
  RunPart(testing::MakeCase({2, 2, 1}), root, 0, 1, history);
  const auto files = MakeLocalFileSystem();
  for (const Layout& layout :
       {Layout{3, 2, 1}, Layout{2, 3, 1}, Layout{2, 2, 1, DType::kBF16}, Layout{2, 2, 1, DType::kF32, 97},
        Layout{.data_degree = 2, .zero_stage = 2, .layer_stages = {2, 1}},
        Layout{.data_degree = 2, .zero_stage = 2, .layer_stages = {3, 2}}}) {
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
