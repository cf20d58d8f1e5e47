// SPDX-License-Identifier: Apache-2.0
// Ranks as threads: the claims of all communicators (testing/communicator_claims.cc), and those of this one. Nothing
// sleeps.
#include "optimized/comm/thread_communicator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "conformance/contract/error.h"
#include "optimized/comm/testing/communicator_claims.h"

namespace plumbline::optimized {
namespace testing {

std::vector<Implementation> Implementations() {
  const auto made = [](Progress progress) {
    return [progress](int64_t world) { return MakeThreadCommunicators(world, progress); };
  };
  return {{"ThreadsLastArriver", {1, 2, 3, 4, 5, 6, 7, 8, 9}, made(Progress::kLastArriver)},
          {"ThreadsOwnThread", {1, 2, 3, 4, 5, 6, 7, 8, 9}, made(Progress::kOwnThread)}};
}

}  // namespace testing

namespace {

using contract::DType;
using contract::Error;
using ::testing::HasSubstr;
using testing::Outcome;
using testing::Ranks;
using testing::RunRanks;
using testing::Tag;
using namespace std::chrono_literals;

class ThreadCommunicator : public ::testing::TestWithParam<Progress> {};
INSTANTIATE_TEST_SUITE_P(Progress, ThreadCommunicator, ::testing::Values(Progress::kLastArriver, Progress::kOwnThread));

// Different streams, so no call mismatches: without the look at who waits, only the time-out of 20 s would end this.
TEST_P(ThreadCommunicator, RanksThatAllWaitForEachOtherLearnSoAtOnce) {
  Ranks ranks = MakeThreadCommunicators(3, GetParam());
  const auto began = std::chrono::steady_clock::now();
  const std::vector<Outcome> outcomes = RunRanks(ranks, [](Communicator& comm) {
    float value = 0;
    comm.AllReduce({&value, 1, DType::kF32}, Tag("crossed", comm.rank() == 1 ? 1 : 0)).Wait();
  });
  EXPECT_LT(std::chrono::steady_clock::now() - began, 10s);
  for (const Outcome& outcome : outcomes) {
    EXPECT_THAT(outcome.message, HasSubstr("deadlock: every rank waits: rank 0 for all_reduce of 1 F32 \"crossed\", "
                                           "missing ranks: 1; rank 1 for"));
    EXPECT_THAT(outcome.message, HasSubstr("missing ranks: 0, 2; rank 2"));
  }
}

TEST_P(ThreadCommunicator, TheFirstReasonOfAbortsOfDifferentRanksStays) {
  Ranks ranks = MakeThreadCommunicators(2, GetParam());
  ranks[0]->Abort("first");
  ranks[1]->Abort("second");
  try {
    ranks[1]->Barrier(Tag("t"));
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "first");
  }
}

TEST(ThreadCommunicatorOwnThread, CompletesACallForAllRanksAtOnce) {
  Ranks ranks = MakeThreadCommunicators(2, Progress::kOwnThread);
  std::vector<float> a(1 << 20, 1), b(1 << 20, 2);
  const auto elems = static_cast<int64_t>(a.size());
  Handle first = ranks[0]->AllReduce({a.data(), elems, DType::kF32}, Tag("large"));
  Handle second = ranks[1]->AllReduce({b.data(), elems, DType::kF32}, Tag("large"));
  first.Wait();
  EXPECT_EQ(b.back(), 3);
  second.Wait();
  EXPECT_EQ(a.front(), 3);
}

TEST(ThreadCommunicatorOwnThread, APostedCallOfAllRanksIsDoneBeforeItsBuffersMayVanish) {
  for (int repetition = 0; repetition < 200; ++repetition) {
    Ranks ranks = MakeThreadCommunicators(2, Progress::kOwnThread);
    auto a = std::make_unique<std::vector<float>>(10000, 1.0f);
    auto b = std::make_unique<std::vector<float>>(10000, 1.0f);
    {
      const Handle first = ranks[0]->AllReduce({a->data(), 10000, DType::kF32}, Tag("t"));
      const Handle second = ranks[1]->AllReduce({b->data(), 10000, DType::kF32}, Tag("t"));
      ranks[0]->Abort("enough");
    }
    EXPECT_EQ(a->back(), 2) << "all ranks had arrived: it was executed";
    a.reset();
    b.reset();
  }
}

}  // namespace
}  // namespace plumbline::optimized
