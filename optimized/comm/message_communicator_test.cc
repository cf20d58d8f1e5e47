// SPDX-License-Identifier: Apache-2.0
// The claims of all communicators over a wire within the process, the bits of threads, and peers that are lost. Nothing
// sleeps.
#include "optimized/comm/message_communicator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "kernels/bf16.h"
#include "kernels/fp16.h"
#include "optimized/comm/message_format.h"
#include "optimized/comm/testing/communicator_claims.h"
#include "optimized/comm/testing/memory_wire.h"
#include "optimized/comm/thread_communicator.h"

namespace plumbline::optimized {
namespace testing {

Ranks OverMemory(int64_t world) {
  Ranks ranks;
  for (auto& wire : MakeMemoryWires(world)) ranks.push_back(MakeMessageCommunicator(std::move(wire)));
  return ranks;
}

std::vector<Implementation> Implementations() { return {{"Messages", {1, 2, 3, 4, 5, 6, 7, 8, 9}, &OverMemory}}; }

}  // namespace testing

namespace {

using contract::DType;
using contract::Error;
using ::testing::HasSubstr;
using testing::Outcome;
using testing::OverMemory;
using testing::Ranks;
using testing::RunOk;
using testing::RunRanks;
using testing::Tag;
using namespace std::chrono_literals;

template <typename T>
std::vector<T> RoundingInputs(int64_t rank, int64_t elems) {
  std::mt19937 generator(static_cast<unsigned>(rank) + 1);
  std::vector<T> values;
  for (int64_t i = 0; i < elems; ++i) {
    const float value =
        std::ldexp(static_cast<float>(generator() % 65536) - 32768.0f, static_cast<int>(generator() % 9) - 12);
    if constexpr (std::is_arithmetic_v<T>) {
      values.push_back(static_cast<T>(value));
    } else {
      values.push_back(kernels::FromFloat<T>(value));
    }
  }
  return values;
}

// What all_reduce and reduce_scatter leave on each rank.
template <typename T>
std::vector<std::vector<T>> Sums(Ranks ranks, DType dtype, int64_t part) {
  const auto world = static_cast<int64_t>(ranks.size());
  std::vector<std::vector<T>> results(world);
  RunOk(ranks, [&](Communicator& comm) {
    std::vector<T> sums = RoundingInputs<T>(comm.rank(), part * world + 1);
    std::vector<T> input = RoundingInputs<T>(comm.rank(), part * world);
    comm.AllReduce({sums.data(), part * world + 1, dtype}, Tag("sum")).Wait();
    sums.resize(sums.size() + part);
    comm.ReduceScatter({input.data(), part * world, dtype}, {sums.data() + sums.size() - part, part, dtype},
                       Tag("part"))
        .Wait();
    results[comm.rank()] = sums;
  });
  return results;
}

template <typename T>
void ExpectBitsOfThreads(DType dtype) {
  for (const int64_t world : {2, 3, 4, 7}) {
    const auto messages = Sums<T>(OverMemory(world), dtype, 331);
    const auto threads = Sums<T>(MakeThreadCommunicators(world, Progress::kLastArriver), dtype, 331);
    for (int64_t rank = 0; rank < world; ++rank) {
      ASSERT_EQ(messages[rank].size(), threads[rank].size());
      EXPECT_EQ(std::memcmp(messages[rank].data(), threads[rank].data(), threads[rank].size() * sizeof(T)), 0)
          << contract::Name(dtype) << ", rank " << rank << " of " << world;
    }
  }
}

TEST(MessageCommunicator, SumsThatRoundHaveTheBitsOfThreadsInEveryType) {
  ExpectBitsOfThreads<float>(DType::kF32);
  ExpectBitsOfThreads<double>(DType::kF64);
  ExpectBitsOfThreads<kernels::BFloat16>(DType::kBF16);
  ExpectBitsOfThreads<kernels::Float16>(DType::kF16);
}

// Ranks, and the wire of the last of them, which can be cut.
struct Fragile {
  explicit Fragile(int64_t world) {
    auto wires = testing::MakeMemoryWires(world);
    last = wires.back().get();
    for (auto& wire : wires) ranks.push_back(MakeMessageCommunicator(std::move(wire)));
  }
  Ranks ranks;
  testing::MemoryWire* last;
};

TEST(MessageCommunicator, APeerThatIsLostEndsWaitingCallsAtOnceAndIsNamed) {
  Fragile world(3);
  const auto began = std::chrono::steady_clock::now();
  const std::vector<Outcome> outcomes = RunRanks(world.ranks, [&](Communicator& comm) {
    if (comm.rank() == 2) return world.last->Cut();
    float value = 1;
    comm.AllReduce({&value, 1, DType::kF32}, Tag("needed")).Wait();
  });
  EXPECT_LT(std::chrono::steady_clock::now() - began, 10s);
  for (const int rank : {0, 1}) {
    EXPECT_EQ(outcomes[rank].message, "rank 2 is gone (cut); all_reduce of 1 F32 \"needed\" needs it");
  }
}

TEST(MessageCommunicator, APeerThatEndedAfterItsLastCallIsMissedOnlyByTheNext) {
  Ranks ranks = OverMemory(2);
  float a = 1, b = 2;
  Handle first = ranks[0]->AllReduce({&a, 1, DType::kF32}, Tag("last"));
  ranks[1]->AllReduce({&b, 1, DType::kF32}, Tag("last")).Wait();
  ranks[1].reset();
  first.Wait();
  EXPECT_EQ(a, 3);
  try {
    ranks[0]->Barrier(Tag("one more")).Wait();
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("rank 1 is gone"));
  }
}

TEST(MessageCommunicator, TheReasonOfARankThatAbortsAndEndsIsHeardBeforeItsEnd) {
  for (int repetition = 0; repetition < 100; ++repetition) {
    Ranks ranks = OverMemory(4);
    const std::vector<Outcome> outcomes = RunRanks(ranks, [&](Communicator& comm) {
      if (comm.rank() == 3) {
        comm.Abort("rank 3 failed: no more");
        return ranks[3].reset();
      }
      const int64_t rank = comm.rank();
      std::string reason;
      try {
        comm.Barrier(Tag("t")).Wait();
      } catch (const Error& error) {
        reason = error.what();
      }
      ranks[rank].reset();
      contract::Fail(contract::ErrorCode::kInternal, reason);
    });
    for (const int rank : {0, 1, 2}) ASSERT_EQ(outcomes[rank].message, "rank 3 failed: no more");
  }
}

// Rank 2, of which there is only the wire, tells rank 1 alone.
TEST(MessageCommunicator, AReasonIsPassedOnByEveryRankThatHearsIt) {
  auto wires = testing::MakeMemoryWires(3);
  const std::unique_ptr<Wire> teller = std::move(wires[2]);
  Ranks ranks;
  for (const int rank : {0, 1}) ranks.push_back(MakeMessageCommunicator(std::move(wires[rank])));
  const std::string reason = "rank 2 failed: no more";
  teller->Send(1, std::make_shared<const Message>(
                      MakeMessage({.type = MessageType::kAbort}, reason.data(), static_cast<int64_t>(reason.size()))));
  for (const Outcome& outcome : RunRanks(ranks, [](Communicator& comm) { comm.Barrier(Tag("t")).Wait(); })) {
    EXPECT_EQ(outcome.message, reason);
  }
}

// Inputs belong to the caller again once Wait has returned, also while the network still sends of them.
TEST(MessageCommunicator, InputsMayChangeAsSoonAsTheOwnWaitIsOver) {
  Ranks ranks = OverMemory(2);
  for (int repetition = 0; repetition < 200; ++repetition) {
    RunOk(ranks, [](Communicator& comm) {
      std::vector<float> own(1000, static_cast<float>(comm.rank() + 1)), all(2000);
      comm.AllGather({own.data(), 1000, DType::kF32}, {all.data(), 2000, DType::kF32}, Tag("t")).Wait();
      own.assign(1000, -1.0f);
      for (int64_t i = 0; i < 2000; ++i) ASSERT_EQ(all[i], i < 1000 ? 1 : 2);
    });
  }
}

TEST(MessageCommunicator, ACallWhoseHandleIsDroppedAfterAllHaveMadeItIsStillMade) {
  Ranks ranks = OverMemory(2);
  float a = 1, b = 2;
  Handle kept = ranks[0]->AllReduce({&a, 1, DType::kF32}, Tag("kept"));
  {
    const Handle dropped = ranks[1]->AllReduce({&b, 1, DType::kF32}, Tag("kept"));
    // All have made it here once a later call of the same ranks is over.
    Handle later = ranks[0]->Barrier(Tag("later", 1));
    ranks[1]->Barrier(Tag("later", 1)).Wait();
    later.Wait();
  }
  kept.Wait();
  EXPECT_EQ(a, 3);
  EXPECT_EQ(b, 2) << "nobody waited for it";
}

}  // namespace
}  // namespace plumbline::optimized
