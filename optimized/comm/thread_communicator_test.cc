// SPDX-License-Identifier: Apache-2.0
// Collectives of 1 to 9 ranks against naive sums, and every way in which a call can fail. Ranks are threads; nothing
// sleeps.
#include "optimized/comm/thread_communicator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <thread>

#include "conformance/contract/error.h"
#include "kernels/bf16.h"

namespace plumbline::optimized {
namespace {

using contract::DType;
using contract::Error;
using contract::ErrorCode;
using kernels::BFloat16;
using testing::HasSubstr;
using namespace std::chrono_literals;

using Ranks = std::vector<std::unique_ptr<Communicator>>;

// Runs body(rank's communicator) in one thread per rank; returns what each rank threw ("" if nothing) with its code.
struct Outcome {
  std::string message;
  ErrorCode code = ErrorCode::kInternal;
};
std::vector<Outcome> RunRanks(Ranks& ranks, const std::function<void(Communicator&)>& body) {
  std::vector<Outcome> outcomes(ranks.size());
  std::vector<std::jthread> threads;
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    threads.emplace_back([&, rank] {
      try {
        body(*ranks[rank]);
      } catch (const Error& error) {
        outcomes[rank] = {error.what(), error.code()};
      }
    });
  }
  threads.clear();
  return outcomes;
}

constexpr Progress kProgresses[] = {Progress::kLastArriver, Progress::kOwnThread};

void RunOk(Ranks& ranks, const std::function<void(Communicator&)>& body) {
  for (const Outcome& outcome : RunRanks(ranks, body)) EXPECT_EQ(outcome.message, "");
}

CallOptions Tag(const std::string& tag, int stream = 0) { return {tag, 20s, stream}; }

float Value(int64_t rank, int64_t i) { return static_cast<float>((rank * 31 + i * 7) % 23 - 11); }

template <typename T>
constexpr DType kType = DType::kF32;
template <>
constexpr DType kType<double> = DType::kF64;
template <>
constexpr DType kType<BFloat16> = DType::kBF16;

template <typename T>
T Make(float value) {
  if constexpr (std::is_same_v<T, BFloat16>) {
    return kernels::FromFloat<BFloat16>(value);
  } else {
    return value;
  }
}
double Read(double value) { return value; }
double Read(BFloat16 value) { return kernels::ToFloat(value); }

template <typename T>
std::vector<T> Inputs(int64_t rank, int64_t elems) {
  std::vector<T> values;
  for (int64_t i = 0; i < elems; ++i) values.push_back(Make<T>(Value(rank, i)));
  return values;
}

double NaiveSum(int64_t world, int64_t i) {
  double sum = 0;
  for (int64_t rank = 0; rank < world; ++rank) sum += Value(rank, i);
  return sum;
}

template <typename T>
class Collectives : public testing::Test {};
using Types = testing::Types<float, double, BFloat16>;
TYPED_TEST_SUITE(Collectives, Types);

TYPED_TEST(Collectives, AllReduceEqualsTheNaiveSumOnEveryRank) {
  for (const Progress progress : kProgresses)
    for (int64_t world = 1; world <= 9; ++world) {
      for (const int64_t elems : {0, 1, 7, 255, 256, 257, 1009}) {
        Ranks ranks = MakeThreadCommunicators(world, progress);
        RunOk(ranks, [&](Communicator& comm) {
          std::vector<TypeParam> data = Inputs<TypeParam>(comm.rank(), elems);
          comm.AllReduce({data.data(), elems, kType<TypeParam>}, Tag("sum")).Wait();
          for (int64_t i = 0; i < elems; ++i) ASSERT_EQ(Read(data[i]), NaiveSum(world, i));
        });
      }
    }
}

TYPED_TEST(Collectives, ReduceScatterGivesEachRankItsPartInPlaceAndOutOfPlace) {
  for (const Progress progress : kProgresses)
    for (int64_t world = 1; world <= 9; ++world) {
      for (const int64_t part : {0, 1, 7, 256, 301}) {
        for (const bool in_place : {false, true}) {
          Ranks ranks = MakeThreadCommunicators(world, progress);
          RunOk(ranks, [&](Communicator& comm) {
            std::vector<TypeParam> input = Inputs<TypeParam>(comm.rank(), part * world);
            std::vector<TypeParam> separate(part);
            TypeParam* output = in_place ? input.data() + comm.rank() * part : separate.data();
            comm.ReduceScatter({input.data(), part * world, kType<TypeParam>}, {output, part, kType<TypeParam>},
                               Tag("parts"))
                .Wait();
            for (int64_t i = 0; i < part; ++i) ASSERT_EQ(Read(output[i]), NaiveSum(world, comm.rank() * part + i));
          });
        }
      }
    }
}

TYPED_TEST(Collectives, AllGatherConcatenatesInRankOrderInPlaceAndOutOfPlace) {
  for (const Progress progress : kProgresses)
    for (int64_t world = 1; world <= 9; ++world) {
      for (const int64_t part : {0, 1, 7, 256, 301}) {
        for (const bool in_place : {false, true}) {
          Ranks ranks = MakeThreadCommunicators(world, progress);
          RunOk(ranks, [&](Communicator& comm) {
            std::vector<TypeParam> own = Inputs<TypeParam>(comm.rank(), part);
            std::vector<TypeParam> output(part * world);
            TypeParam* input = in_place ? output.data() + comm.rank() * part : own.data();
            std::copy(own.begin(), own.end(), input);
            comm.AllGather({input, part, kType<TypeParam>}, {output.data(), part * world, kType<TypeParam>}, Tag("all"))
                .Wait();
            for (int64_t i = 0; i < part * world; ++i) ASSERT_EQ(Read(output[i]), Value(i / part, i % part));
          });
        }
      }
    }
}

class ThreadCommunicator : public testing::TestWithParam<Progress> {};
INSTANTIATE_TEST_SUITE_P(Progress, ThreadCommunicator, testing::ValuesIn(kProgresses));

TEST_P(ThreadCommunicator, SumsInTheOrderOfRanksWhateverTheOrderOfArrival) {
  // 2^24 + 1 + 1 differs from 1 + 1 + 2^24 in float.
  for (int repetition = 0; repetition < 50; ++repetition) {
    Ranks ranks = MakeThreadCommunicators(3, GetParam());
    RunOk(ranks, [&](Communicator& comm) {
      float value = comm.rank() == 0 ? 16777216.0f : 1.0f;
      comm.AllReduce({&value, 1, DType::kF32}, Tag("order")).Wait();
      EXPECT_EQ(value, 16777216.0f);
    });
  }
}

TEST_P(ThreadCommunicator, BFloat16SumsAreRoundedOnceAtTheEnd) {
  Ranks ranks = MakeThreadCommunicators(4, GetParam());
  RunOk(ranks, [&](Communicator& comm) {
    BFloat16 value = Make<BFloat16>(comm.rank() == 0 ? 256.0f : 1.0f);
    comm.AllReduce({&value, 1, DType::kBF16}, Tag("rounding")).Wait();
    EXPECT_EQ(Read(value), 260.0);  // 259 to the nearest even; rounding after each addition would stay at 256
  });
}

TEST_P(ThreadCommunicator, PostingDoesNotWaitAndCallsOfOneStreamMatchInOrder) {
  Ranks ranks = MakeThreadCommunicators(2, GetParam());
  float a[2] = {1, 10}, b[2] = {2, 20};
  // One thread posts for both ranks: if posting waited, this would never return.
  Handle first0 = ranks[0]->AllReduce({&a[0], 1, DType::kF32}, Tag("first"));
  Handle second0 = ranks[0]->AllReduce({&a[1], 1, DType::kF32}, Tag("second"));
  Handle first1 = ranks[1]->AllReduce({&b[0], 1, DType::kF32}, Tag("first"));
  Handle second1 = ranks[1]->AllReduce({&b[1], 1, DType::kF32}, Tag("second"));
  for (Handle* handle : {&second1, &first0, &second0, &first1}) handle->Wait();
  EXPECT_EQ(a[0], 3);
  EXPECT_EQ(b[1], 30);
}

TEST_P(ThreadCommunicator, StreamsAreOrderedIndependently) {
  Ranks ranks = MakeThreadCommunicators(2, GetParam());
  float a[2] = {1, 10}, b[2] = {2, 20};
  Handle h0 = ranks[0]->AllReduce({&a[0], 1, DType::kF32}, Tag("x", 1));
  Handle h1 = ranks[0]->AllReduce({&a[1], 1, DType::kF32}, Tag("y", 2));
  Handle h2 = ranks[1]->AllReduce({&b[1], 1, DType::kF32}, Tag("y", 2));  // the other order
  Handle h3 = ranks[1]->AllReduce({&b[0], 1, DType::kF32}, Tag("x", 1));
  for (Handle* handle : {&h0, &h1, &h2, &h3}) handle->Wait();
  EXPECT_EQ(a[0], 3);
  EXPECT_EQ(a[1], 30);
}

TEST_P(ThreadCommunicator, NobodyPassesABarrierBeforeTheLastArrives) {
  for (int64_t world = 1; world <= 9; ++world) {
    Ranks ranks = MakeThreadCommunicators(world, GetParam());
    std::atomic<int64_t> arrived = 0;
    RunOk(ranks, [&](Communicator& comm) {
      for (int64_t round = 1; round <= 20; ++round) {
        ++arrived;
        comm.Barrier(Tag("barrier")).Wait();
        EXPECT_GE(arrived.load(), round * world);
      }
    });
  }
}

// Rank 1 differs from the others in one property; both must be named, and every rank must be released.
void ExpectMismatch(Progress progress, const std::function<Handle(Communicator&, float*, bool)>& call,
                    const std::string& differs) {
  Ranks ranks = MakeThreadCommunicators(3, progress);
  const std::vector<Outcome> outcomes = RunRanks(ranks, [&](Communicator& comm) {
    std::vector<float> data(12, 1.0f);
    call(comm, data.data(), comm.rank() == 1).Wait();
  });
  for (const Outcome& outcome : outcomes) {
    EXPECT_EQ(outcome.code, ErrorCode::kInternal);
    EXPECT_THAT(outcome.message, HasSubstr("mismatch"));
    EXPECT_THAT(outcome.message, HasSubstr("rank 1 calls"));
    EXPECT_THAT(outcome.message, testing::AnyOf(HasSubstr("rank 0 calls"), HasSubstr("rank 2 calls")));
    EXPECT_THAT(outcome.message, HasSubstr(differs));
  }
}

TEST_P(ThreadCommunicator, AMismatchOfKindSizeTypeOrTagNamesBothRanks) {
  ExpectMismatch(
      GetParam(),
      [](Communicator& comm, float* data, bool odd) {
        return odd ? comm.Barrier(Tag("t")) : comm.AllReduce({data, 6, DType::kF32}, Tag("t"));
      },
      "barrier");
  ExpectMismatch(
      GetParam(),
      [](Communicator& comm, float* data, bool odd) {
        return comm.AllReduce({data, odd ? 5 : 6, DType::kF32}, Tag("t"));
      },
      "all_reduce of 5 F32");
  ExpectMismatch(
      GetParam(),
      [](Communicator& comm, float* data, bool odd) {
        return comm.AllReduce({data, 6, odd ? DType::kF64 : DType::kF32}, Tag("t"));
      },
      "F64");
  ExpectMismatch(
      GetParam(),
      [](Communicator& comm, float* data, bool odd) {
        return comm.AllReduce({data, 6, DType::kF32}, Tag(odd ? "bucket 1" : "bucket 0"));
      },
      "\"bucket 1\"");
  ExpectMismatch(
      GetParam(),
      [](Communicator& comm, float* data, bool odd) {
        const int64_t part = odd ? 1 : 2;
        return comm.AllGather({data, part, DType::kF32}, {data + 3, 3 * part, DType::kF32}, Tag("t"));
      },
      "all_gather of 1 F32");
}

TEST_P(ThreadCommunicator, ATimeOutNamesTheMissingRanks) {
  Ranks ranks = MakeThreadCommunicators(4, GetParam());
  const std::vector<Outcome> outcomes = RunRanks(ranks, [](Communicator& comm) {
    float value = 0;
    if (comm.rank() % 2 == 1) return;  // ranks 1 and 3 never call
    comm.AllReduce({&value, 1, DType::kF32}, {"lonely", 50ms}).Wait();
  });
  for (const int rank : {0, 2}) {
    EXPECT_EQ(outcomes[rank].code, ErrorCode::kTimeout);
    EXPECT_THAT(outcomes[rank].message, HasSubstr("missing ranks: 1, 3"));
    EXPECT_THAT(outcomes[rank].message, HasSubstr("lonely"));
  }
}

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

TEST_P(ThreadCommunicator, AfterATimeOutALateRankIsRefused) {
  Ranks ranks = MakeThreadCommunicators(2, GetParam());
  float a = 1, b = 1;
  Handle early = ranks[0]->AllReduce({&a, 1, DType::kF32}, {"late", 1ms});
  EXPECT_THROW(early.Wait(), Error);
  EXPECT_THROW(ranks[1]->AllReduce({&b, 1, DType::kF32}, {"late", 1ms}), Error);
  EXPECT_EQ(a, 1);
  EXPECT_EQ(b, 1);
}

TEST_P(ThreadCommunicator, AbortReleasesEveryWaitingRankWithItsReason) {
  Ranks ranks = MakeThreadCommunicators(5, GetParam());
  const std::vector<Outcome> outcomes = RunRanks(ranks, [](Communicator& comm) {
    if (comm.rank() == 3) return comm.Abort("rank 3 failed: out of cheese");
    comm.Barrier(Tag("never")).Wait();
  });
  for (const int rank : {0, 1, 2, 4}) EXPECT_EQ(outcomes[rank].message, "rank 3 failed: out of cheese");
}

TEST_P(ThreadCommunicator, TheFirstReasonOfSeveralAbortsStays) {
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

TEST_P(ThreadCommunicator, AHandleDestroyedWithoutWaitingTakesItsRankOutOfTheCall) {
  Ranks ranks = MakeThreadCommunicators(2, GetParam());
  float a = 1;
  {
    auto vanishing = std::make_unique<float>(2.0f);
    const Handle forgotten = ranks[1]->AllReduce({vanishing.get(), 1, DType::kF32}, Tag("forgotten"));
  }
  try {
    ranks[0]->AllReduce({&a, 1, DType::kF32}, Tag("forgotten")).Wait();
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("rank 1 gave up"));
  }
  EXPECT_EQ(a, 1);
}

TEST_P(ThreadCommunicator, RefusesPartsThatDoNotFitAndTypesThatItCannotSum) {
  Ranks ranks = MakeThreadCommunicators(2, GetParam());
  float data[8] = {};
  EXPECT_THROW(ranks[0]->ReduceScatter({data, 5, DType::kF32}, {data, 2, DType::kF32}, Tag("t")), Error);
  EXPECT_THROW(ranks[0]->AllGather({data, 2, DType::kF32}, {data, 4, DType::kBF16}, Tag("t")), Error);
  EXPECT_THROW(ranks[0]->AllReduce({data, 2, DType::kI64}, Tag("t")), Error);
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

TEST_P(ThreadCommunicator, ManyCallsInFlightOnManyRanksKeepTheirResultsApart) {
  Ranks ranks = MakeThreadCommunicators(8, GetParam());
  RunOk(ranks, [](Communicator& comm) {
    std::vector<float> data(200);
    std::vector<Handle> handles;
    for (int round = 0; round < 10; ++round) {
      for (int i = 0; i < 200; ++i) {
        data[i] = static_cast<float>(comm.rank() + i);
        handles.push_back(comm.AllReduce({&data[i], 1, DType::kF32}, Tag(std::to_string(i), i % 3)));
      }
      for (Handle& handle : handles) handle.Wait();
      handles.clear();
      for (int i = 0; i < 200; ++i) ASSERT_EQ(data[i], static_cast<float>(28 + 8 * i));
    }
  });
}

}  // namespace
}  // namespace plumbline::optimized
