// SPDX-License-Identifier: Apache-2.0
// The engine with ranks that are processes: the bits of threads, statuses and exit codes, and ranks that die, stop or
// fail. Every rank here is a process; nothing sleeps.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "conformance/contract/batch_source.h"
#include "conformance/contract/case_file.h"
#include "conformance/contract/engine_protocol.h"
#include "conformance/contract/file_io.h"
#include "optimized/engine/testing/case_run.h"
#include "optimized/engine/testing/process_world.h"
#include "optimized/engine/testing/real_case.h"

namespace plumbline::optimized {
namespace {

namespace fs = std::filesystem;
using contract::CaseData;
using contract::CaseStatus;
using contract::DType;
using ::testing::AnyOf;
using testing::AwaitLine;
using ::testing::HasSubstr;
using testing::Layout;
using testing::MakeCase;
using testing::MakeRealCase;
using testing::ProcessWorld;

class Processes : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string name = ::testing::UnitTest::GetInstance()->current_test_info()->name();
    root_ = fs::path(::testing::TempDir()) / name;
    fs::remove_all(root_);
    fs::create_directories(root_);
  }

  std::vector<std::string> Add(const CaseData& data) {
    const std::string number = std::to_string(num_cases_++);
    for (const char* kind : {"case", "out"}) fs::create_directories(root_ / (kind + number));
    contract::WriteCase(root_ / ("case" + number), data);
    return {"run", "--case", (root_ / ("case" + number)).string(), "--out", Out(num_cases_ - 1).string()};
  }

  std::vector<std::string> Batch() {
    std::vector<contract::BatchEntry> list;
    for (int i = 0; i < num_cases_; ++i) list.push_back({root_ / ("case" + std::to_string(i)), Out(i)});
    contract::WriteFile(root_ / "list", contract::ToJson(list));
    return {"run", "--batch", (root_ / "list").string()};
  }

  fs::path Out(int number) const { return root_ / ("out" + std::to_string(number)); }
  fs::path Trace(int64_t rank) const { return Out(0) / ("rank" + std::to_string(rank)) / "trace.jsonl"; }

  CaseStatus Status(int number = 0) const {
    const fs::path path = Out(number) / "status.json";
    return contract::ParseCaseStatus(contract::ReadFile(path), path.string());
  }

  fs::path root_;
  int num_cases_ = 0;
};

void ExpectSameAsThreads(const fs::path& out, const CaseData& data) {
  const fs::path threads = testing::RunInFreshFolders(data);
  for (int64_t rank = 0; rank < data.spec.config.data_degree; ++rank) {
    const contract::Trace got = contract::ReadTrace(out, rank), expected = contract::ReadTrace(threads, rank);
    ASSERT_EQ(got.steps.size(), expected.steps.size());
    for (size_t i = 0; i < got.steps.size(); ++i) {
      EXPECT_EQ(got.steps[i].loss, expected.steps[i].loss);
      ASSERT_EQ(got.steps[i].real.has_value(), expected.steps[i].real.has_value());
      if (got.steps[i].real) {
        EXPECT_EQ(got.steps[i].real->skipped, expected.steps[i].real->skipped) << "step " << i << ", rank " << rank;
        EXPECT_EQ(got.steps[i].real->loss_scaler, expected.steps[i].real->loss_scaler);
      }
      testing::ExpectSameCommAndTensors(got.steps[i], expected.steps[i]);
    }
  }
}

// A scale so large that the one token of step 0 overflows, which is on rank 0 alone.
CaseData CaseWithAnOverflowOnOneRank(int64_t stage, int64_t loss_scale) {
  CaseData data = MakeRealCase({3, stage, 2, DType::kF16, 200});
  contract::Batches& batches = data.batches;
  for (int64_t i = 1; i < batches.batch * batches.positions; ++i) batches.loss_weights[static_cast<size_t>(i)] = 0;
  batches.loss_weights[0] = 1;
  data.spec.config.loss_scale = loss_scale;
  if (loss_scale == 0) {
    data.spec.config.dynamic_loss_scale = {.initial_scale_power = 17, .window = 2, .hysteresis = 1};
    data.loss_scaler = contract::InitialLossScaler(data.spec.config.dynamic_loss_scale);
  }
  return data;
}

std::vector<CaseData> CasesOfThreeRanks() {
  return {MakeCase({3, 0, 2, DType::kF32, 145}),
          MakeCase({3, 1, 1, DType::kF16, 300}),
          MakeCase({3, 2, 2, DType::kBF16, 1}),
          MakeCase({3, 3, 1, DType::kF32, 145, {true, 150, 60, 500}}),
          MakeRealCase({3, 1, 2, DType::kF32, 200}),
          MakeRealCase({3, 2, 1, DType::kBF16, 300}),
          MakeRealCase({3, 3, 1, DType::kBF16, 200, {true, 300, 13, 800}}),
          MakeCase({3, 1, 2, DType::kBF16, 145, {true, 0, 0, 0}, {0, 3}}),
          MakeRealCase({3, 2, 2, DType::kF32, 200, {true, 300, 13, 800}, {3, 0}})};
}

TEST_F(Processes, OneStartRunsManyCasesWithTheBitsAndTheBooksOfThreads) {
  const std::vector<CaseData> cases = CasesOfThreeRanks();
  for (const CaseData& data : cases) Add(data);
  ProcessWorld world(3, Batch(), root_);
  for (int rank = 0; rank < 3; ++rank) EXPECT_EQ(world.Wait(rank), 0) << world.Errors(rank);
  for (size_t i = 0; i < cases.size(); ++i) {
    EXPECT_EQ(Status(static_cast<int>(i)).kind, CaseStatus::Kind::kOk);
    ExpectSameAsThreads(Out(static_cast<int>(i)), cases[i]);
  }
}

TEST_F(Processes, AnOverflowThatOneRankSeesSkipsTheStepOnAllWithAFixedAndWithADynamicScale) {
  std::vector<CaseData> cases;
  for (const int64_t stage : {0, 1, 2, 3}) {
    for (const int64_t loss_scale : {int64_t{0}, int64_t{1} << 17}) {
      cases.push_back(CaseWithAnOverflowOnOneRank(stage, loss_scale));
      Add(cases.back());
    }
  }
  ProcessWorld world(3, Batch(), root_);
  for (int rank = 0; rank < 3; ++rank) EXPECT_EQ(world.Wait(rank), 0) << world.Errors(rank);
  for (size_t i = 0; i < cases.size(); ++i) {
    const fs::path out = Out(static_cast<int>(i));
    ExpectSameAsThreads(out, cases[i]);
    for (int64_t rank = 0; rank < 3; ++rank) {
      const contract::Trace trace = contract::ReadTrace(out, rank);
      EXPECT_TRUE(trace.steps[0].real->skipped) << "case " << i << ", rank " << rank;
      EXPECT_EQ(trace.steps[0].real->loss_scaler.has_value(), cases[i].spec.config.loss_scale == 0);
    }
  }
}

TEST_F(Processes, OneRankNeedsNobodyToMeet) {
  const CaseData data = MakeCase({1, 1, 2});
  ProcessWorld world(1, Add(data), root_);
  EXPECT_EQ(world.Wait(0), 0) << world.Errors(0);
  ExpectSameAsThreads(Out(0), data);
}

TEST_F(Processes, AnUnsupportedCaseEndsAllRanksWithThatAndTheNextCaseIsRun) {
  CaseData odd = MakeCase({2, 0, 1});
  odd.spec.perturbation = contract::Perturbation{};
  odd.spec.perturbation->tensor = odd.parameters.front().name;
  const CaseData good = MakeCase({2, 2, 1});
  const std::vector<std::string> alone = Add(odd);
  Add(good);
  {
    ProcessWorld world(2, Batch(), root_);
    for (int rank = 0; rank < 2; ++rank) EXPECT_EQ(world.Wait(rank), 0) << world.Errors(rank);
    EXPECT_EQ(Status(0).kind, CaseStatus::Kind::kUnsupported);
    EXPECT_THAT(Status(0).message, HasSubstr("perturbation"));
    EXPECT_EQ(Status(1).kind, CaseStatus::Kind::kOk);
    ExpectSameAsThreads(Out(1), good);
  }
  fs::remove_all(Out(0));
  fs::create_directories(Out(0));
  ProcessWorld world(2, alone, root_);
  for (int rank = 0; rank < 2; ++rank) EXPECT_EQ(world.Wait(rank), 3) << world.Errors(rank);
}

TEST_F(Processes, AnErrorOfOneRankIsTheStatusInItsOwnWordsAndTheNextCaseIsRun) {
  const CaseData data = MakeCase({3, 1, 1});
  Add(data);
  Add(data);
  contract::WriteFile(Out(0) / "rank2", "a file where rank 2 needs a folder");
  ProcessWorld world(3, Batch(), root_);
  for (int rank = 0; rank < 3; ++rank) EXPECT_EQ(world.Wait(rank), 0) << world.Errors(rank);
  EXPECT_NE(Status(0).kind, CaseStatus::Kind::kOk);
  EXPECT_THAT(Status(0).message, HasSubstr("out0/rank2"));
  EXPECT_EQ(Status(1).kind, CaseStatus::Kind::kOk) << Status(1).message;
}

TEST_F(Processes, AWorldOfAnotherSizeThanTheCasesIsRefused) {
  ProcessWorld world(2, Add(MakeCase({3, 1, 1})), root_);
  for (int rank = 0; rank < 2; ++rank) EXPECT_NE(world.Wait(rank), 0);
  EXPECT_THAT(Status().message, HasSubstr("WORLD_SIZE is 2"));
}

TEST_F(Processes, AVariableThatIsMissingIsABadUsage) {
  ProcessWorld world(1, Add(MakeCase({1, 0, 1})), root_, {{"MASTER_PORT", ""}});
  EXPECT_EQ(world.Wait(0), 2);
  EXPECT_THAT(world.Errors(0), HasSubstr("MASTER_PORT is not set"));
}

// So long that only its end by others can end it.
CaseData LongCase(double timeout_s) {
  CaseData data = MakeCase({3, 1, 1}, contract::OptimizerKind::kModularMomentum, false);
  data.spec.steps = 20000;
  data.spec.timeout_s = timeout_s;
  contract::TokenSource text;
  text.reduce_modulo_vocab = true;
  for (int i = 0; i < 997; ++i) text.tokens.push_back(i * i % 251);
  data.batches = contract::MakeBatches(text, data.spec.model, {data.spec.seed, 0, data.spec.steps, testing::kBatch});
  return data;
}

TEST_F(Processes, ARankThatIsKilledEndsTheOthersAtOnceAndIsNamed) {
  ProcessWorld world(3, Add(LongCase(600)), root_);
  ASSERT_TRUE(AwaitLine(Trace(1), "\"step\": 1,")) << world.Errors(1);
  const auto began = std::chrono::steady_clock::now();
  world.Signal(1, SIGKILL);
  for (const int rank : {0, 2}) {
    EXPECT_GT(world.Wait(rank), 0);
    EXPECT_THAT(world.Errors(rank), HasSubstr("rank 1 is gone")) << rank;
  }
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(60));
  EXPECT_EQ(Status().kind, CaseStatus::Kind::kError);
  EXPECT_THAT(Status().message, HasSubstr("rank 1 is gone"));
}

TEST_F(Processes, RankZeroThatIsKilledIsNamedThoughTheStoreGoesWithIt) {
  ProcessWorld world(3, Add(LongCase(600)), root_);
  ASSERT_TRUE(AwaitLine(Trace(0), "\"step\": 1,")) << world.Errors(0);
  world.Signal(0, SIGKILL);
  for (const int rank : {1, 2}) {
    EXPECT_GT(world.Wait(rank), 0);
    EXPECT_THAT(world.Errors(rank), HasSubstr("rank 0 is gone")) << rank;
  }
  EXPECT_FALSE(fs::exists(Out(0) / "status.json"));
}

TEST_F(Processes, ARankThatStopsEndsTheOthersWithinTheTimeOutAndIsNamed) {
  ProcessWorld world(3, Add(LongCase(4)), root_);
  ASSERT_TRUE(AwaitLine(Trace(1), "\"step\": 1,")) << world.Errors(1);
  const auto began = std::chrono::steady_clock::now();
  world.Signal(1, SIGSTOP);
  for (const int rank : {0, 2}) {
    EXPECT_GT(world.Wait(rank), 0);
    EXPECT_THAT(world.Errors(rank), HasSubstr("timed out after 4")) << rank;
    EXPECT_THAT(world.Errors(rank), HasSubstr("missing ranks: 1")) << rank;
  }
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(30));
  EXPECT_THAT(Status().message, HasSubstr("missing ranks: 1"));
  // When it goes on, it hears what became of the others.
  world.Signal(1, SIGCONT);
  EXPECT_GT(world.Wait(1), 0);
  EXPECT_THAT(world.Errors(1), AnyOf(HasSubstr("missing ranks"), HasSubstr("is gone")));
}

TEST_F(Processes, ARankThatIsLostCostsTheOthersTheRestOfTheBatch) {
  Add(LongCase(600));
  Add(MakeCase({3, 1, 1}));
  ProcessWorld world(3, Batch(), root_);
  ASSERT_TRUE(AwaitLine(Trace(1), "\"step\": 1,")) << world.Errors(1);
  world.Signal(1, SIGKILL);
  for (const int rank : {0, 2}) EXPECT_EQ(world.Wait(rank), 0);
  EXPECT_THAT(Status(0).message, HasSubstr("rank 1 is gone"));
  EXPECT_THAT(Status(1).message, HasSubstr("rank 1 did not end case 0"));
}

}  // namespace
}  // namespace plumbline::optimized
