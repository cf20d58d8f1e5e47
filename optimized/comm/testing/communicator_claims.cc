// SPDX-License-Identifier: Apache-2.0
// See communicator_claims.h: collectives against naive sums, and every way in which a call can fail. Ranks are threads;
// nothing sleeps.
#include "optimized/comm/testing/communicator_claims.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <ostream>

#include "kernels/bf16.h"
#include "kernels/fp16.h"

namespace plumbline::optimized::testing {

void PrintTo(const Implementation& implementation, std::ostream* out) { *out << implementation.name; }

namespace {

using contract::DType;
using contract::Error;
using contract::ErrorCode;
using kernels::BFloat16;
using kernels::Float16;
using ::testing::HasSubstr;
using namespace std::chrono_literals;

// Integers of at most two digits: their sums are exact in every type.
float Value(int64_t rank, int64_t i) { return static_cast<float>((rank * 31 + i * 7) % 23 - 11); }

template <typename T>
constexpr DType kType = DType::kF32;
template <>
constexpr DType kType<double> = DType::kF64;
template <>
constexpr DType kType<BFloat16> = DType::kBF16;
template <>
constexpr DType kType<Float16> = DType::kF16;

template <typename T>
T Make(float value) {
  if constexpr (std::is_same_v<T, BFloat16> || std::is_same_v<T, Float16>) {
    return kernels::FromFloat<T>(value);
  } else {
    return value;
  }
}
double Read(double value) { return value; }
double Read(BFloat16 value) { return kernels::ToFloat(value); }
double Read(Float16 value) { return kernels::ToFloat(value); }

template <typename Visit>
void ForEachType(Visit visit) {
  visit(float{});
  visit(double{});
  visit(BFloat16{});
  visit(Float16{});
}

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

class CommunicatorClaims : public ::testing::TestWithParam<Implementation> {
 protected:
  static Ranks Group(int64_t world) { return GetParam().make(world); }

  // body(communicator, type) on every rank of every world, for every type.
  template <typename Body>
  static void InEveryWorldAndType(Body body) {
    for (const int64_t world : GetParam().worlds) {
      Ranks ranks = Group(world);
      ForEachType([&](auto type) { RunOk(ranks, [&](Communicator& comm) { body(comm, type); }); });
    }
  }
};

INSTANTIATE_TEST_SUITE_P(Of, CommunicatorClaims, ::testing::ValuesIn(Implementations()),
                         [](const auto& info) { return info.param.name; });

TEST_P(CommunicatorClaims, AllReduceEqualsTheNaiveSumOnEveryRank) {
  InEveryWorldAndType([](Communicator& comm, auto type) {
    using T = decltype(type);
    for (const int64_t elems : {0, 1, 7, 255, 256, 257, 1009}) {
      std::vector<T> data = Inputs<T>(comm.rank(), elems);
      comm.AllReduce({data.data(), elems, kType<T>}, Tag("sum")).Wait();
      for (int64_t i = 0; i < elems; ++i) ASSERT_EQ(Read(data[i]), NaiveSum(comm.size(), i)) << elems;
    }
  });
}

TEST_P(CommunicatorClaims, ReduceScatterGivesEachRankItsPartInPlaceAndOutOfPlace) {
  InEveryWorldAndType([](Communicator& comm, auto type) {
    using T = decltype(type);
    const int64_t world = comm.size();
    for (const int64_t part : {0, 1, 7, 256, 301}) {
      for (const bool in_place : {false, true}) {
        std::vector<T> input = Inputs<T>(comm.rank(), part * world);
        std::vector<T> separate(part);
        T* output = in_place ? input.data() + comm.rank() * part : separate.data();
        comm.ReduceScatter({input.data(), part * world, kType<T>}, {output, part, kType<T>}, Tag("parts")).Wait();
        for (int64_t i = 0; i < part; ++i) ASSERT_EQ(Read(output[i]), NaiveSum(world, comm.rank() * part + i)) << part;
      }
    }
  });
}

TEST_P(CommunicatorClaims, AllGatherConcatenatesInRankOrderInPlaceAndOutOfPlace) {
  InEveryWorldAndType([](Communicator& comm, auto type) {
    using T = decltype(type);
    const int64_t world = comm.size();
    for (const int64_t part : {0, 1, 7, 256, 301}) {
      for (const bool in_place : {false, true}) {
        std::vector<T> own = Inputs<T>(comm.rank(), part);
        std::vector<T> output(part * world);
        T* input = in_place ? output.data() + comm.rank() * part : own.data();
        std::copy(own.begin(), own.end(), input);
        comm.AllGather({input, part, kType<T>}, {output.data(), part * world, kType<T>}, Tag("all")).Wait();
        for (int64_t i = 0; i < part * world; ++i) ASSERT_EQ(Read(output[i]), Value(i / part, i % part)) << part;
      }
    }
  });
}

TEST_P(CommunicatorClaims, SumsInTheOrderOfRanksWhateverTheOrderOfArrival) {
  // 2^24 + 1 + 1 differs from 1 + 1 + 2^24 in float. Several elements, which different ranks may sum.
  Ranks ranks = Group(3);
  for (int repetition = 0; repetition < 50; ++repetition) {
    RunOk(ranks, [](Communicator& comm) {
      std::vector<float> values(5, comm.rank() == 0 ? 16777216.0f : 1.0f);
      comm.AllReduce({values.data(), 5, DType::kF32}, Tag("order")).Wait();
      for (const float value : values) EXPECT_EQ(value, 16777216.0f);
    });
  }
}

TEST_P(CommunicatorClaims, SumsOfNarrowTypesAreRoundedOnceAtTheEnd) {
  Ranks ranks = Group(4);
  RunOk(ranks, [](Communicator& comm) {
    BFloat16 brain = Make<BFloat16>(comm.rank() == 0 ? 256.0f : 1.0f);
    comm.AllReduce({&brain, 1, DType::kBF16}, Tag("bf16")).Wait();
    EXPECT_EQ(Read(brain), 260.0);  // 259 to the nearest even; rounding after each addition would stay at 256
    Float16 half = Make<Float16>(comm.rank() == 0 ? 2048.0f : 1.0f);
    comm.AllReduce({&half, 1, DType::kF16}, Tag("fp16")).Wait();
    EXPECT_EQ(Read(half), 2052.0);  // 2051, likewise
  });
}

TEST_P(CommunicatorClaims, PostingDoesNotWaitAndCallsOfOneStreamMatchInOrder) {
  Ranks ranks = Group(2);
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

TEST_P(CommunicatorClaims, StreamsAreOrderedIndependently) {
  Ranks ranks = Group(2);
  float a[2] = {1, 10}, b[2] = {2, 20};
  Handle h0 = ranks[0]->AllReduce({&a[0], 1, DType::kF32}, Tag("x", 1));
  Handle h1 = ranks[0]->AllReduce({&a[1], 1, DType::kF32}, Tag("y", 2));
  Handle h2 = ranks[1]->AllReduce({&b[1], 1, DType::kF32}, Tag("y", 2));  // the other order
  Handle h3 = ranks[1]->AllReduce({&b[0], 1, DType::kF32}, Tag("x", 1));
  for (Handle* handle : {&h0, &h1, &h2, &h3}) handle->Wait();
  EXPECT_EQ(a[0], 3);
  EXPECT_EQ(a[1], 30);
}

TEST_P(CommunicatorClaims, NobodyPassesABarrierBeforeTheLastArrives) {
  for (const int64_t world : GetParam().worlds) {
    Ranks ranks = Group(world);
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
void ExpectMismatch(const Implementation& implementation,
                    const std::function<Handle(Communicator&, float*, bool)>& call, const std::string& differs) {
  Ranks ranks = implementation.make(3);
  const std::vector<Outcome> outcomes = RunRanks(ranks, [&](Communicator& comm) {
    std::vector<float> data(12, 1.0f);
    call(comm, data.data(), comm.rank() == 1).Wait();
  });
  for (const Outcome& outcome : outcomes) {
    EXPECT_EQ(outcome.code, ErrorCode::kInternal);
    EXPECT_THAT(outcome.message, HasSubstr("mismatch"));
    EXPECT_THAT(outcome.message, HasSubstr("rank 1 calls"));
    EXPECT_THAT(outcome.message, ::testing::AnyOf(HasSubstr("rank 0 calls"), HasSubstr("rank 2 calls")));
    EXPECT_THAT(outcome.message, HasSubstr(differs));
  }
}

TEST_P(CommunicatorClaims, AMismatchOfKindSizeTypeOrTagNamesBothRanks) {
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

TEST_P(CommunicatorClaims, ATagOfAnyLengthIsCompared) {
  for (const size_t length : {0, 1, 400, 1000, 5000}) {
    const std::string tag(length, 'a');
    Ranks ranks = Group(2);
    RunOk(ranks, [&](Communicator& comm) { comm.Barrier(Tag(tag)).Wait(); });
    for (const Outcome& outcome :
         RunRanks(ranks, [&](Communicator& comm) { comm.Barrier(Tag(tag + (comm.rank() == 0 ? "b" : "c"))).Wait(); })) {
      EXPECT_THAT(outcome.message, HasSubstr("mismatch")) << length;
    }
  }
}

TEST_P(CommunicatorClaims, ATimeOutNamesTheMissingRanks) {
  Ranks ranks = Group(4);
  std::atomic<int> num_posted = 0;
  const std::vector<Outcome> outcomes = RunRanks(ranks, [&](Communicator& comm) {
    float value = 0;
    if (comm.rank() % 2 == 1) return;  // ranks 1 and 3 never call
    Handle handle = comm.AllReduce({&value, 1, DType::kF32}, {"lonely", 500ms});
    for (++num_posted; num_posted < 2;) std::this_thread::yield();  // or one could wait before the other has called
    handle.Wait();
  });
  for (const int rank : {0, 2}) {
    EXPECT_EQ(outcomes[rank].code, ErrorCode::kTimeout);
    EXPECT_THAT(outcomes[rank].message, HasSubstr("missing ranks: 1, 3"));
    EXPECT_THAT(outcomes[rank].message, HasSubstr("lonely"));
  }
}

TEST_P(CommunicatorClaims, AfterATimeOutALateRankIsRefused) {
  Ranks ranks = Group(2);
  float a = 1, b = 1;
  Handle early = ranks[0]->AllReduce({&a, 1, DType::kF32}, {"late", 1ms});
  EXPECT_THROW(early.Wait(), Error);
  EXPECT_THROW(ranks[1]->AllReduce({&b, 1, DType::kF32}, {"late", 20s}).Wait(), Error);
  EXPECT_EQ(a, 1);
  EXPECT_EQ(b, 1);
}

TEST_P(CommunicatorClaims, AbortReleasesEveryWaitingRankWithItsReason) {
  Ranks ranks = Group(5);
  const std::vector<Outcome> outcomes = RunRanks(ranks, [](Communicator& comm) {
    if (comm.rank() == 3) return comm.Abort("rank 3 failed: out of cheese");
    comm.Barrier(Tag("never")).Wait();
  });
  for (const int rank : {0, 1, 2, 4}) EXPECT_EQ(outcomes[rank].message, "rank 3 failed: out of cheese");
}

TEST_P(CommunicatorClaims, TheFirstReasonOfSeveralAbortsStays) {
  Ranks ranks = Group(2);
  ranks[0]->Abort("first");
  ranks[0]->Abort("second");
  for (const Outcome& outcome : RunRanks(ranks, [](Communicator& comm) { comm.Barrier(Tag("t")).Wait(); })) {
    EXPECT_EQ(outcome.message, "first");
  }
}

TEST_P(CommunicatorClaims, AHandleDestroyedWithoutWaitingTakesItsRankOutOfTheCall) {
  Ranks ranks = Group(2);
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

TEST_P(CommunicatorClaims, RefusesPartsThatDoNotFitAndTypesThatItCannotSum) {
  Ranks ranks = Group(2);
  float data[8] = {};
  EXPECT_THROW(ranks[0]->ReduceScatter({data, 5, DType::kF32}, {data, 2, DType::kF32}, Tag("t")), Error);
  EXPECT_THROW(ranks[0]->AllGather({data, 2, DType::kF32}, {data, 4, DType::kBF16}, Tag("t")), Error);
  EXPECT_THROW(ranks[0]->AllReduce({data, 2, DType::kI64}, Tag("t")), Error);
}

TEST_P(CommunicatorClaims, RanksMayEndBeforeTheyHaveDoneAnything) {
  for (int repetition = 0; repetition < 10; ++repetition) {
    Ranks ranks = Group(3);
    ranks[repetition % 3]->Abort("at once");
  }
}

TEST_P(CommunicatorClaims, ManyCallsInFlightOnManyRanksKeepTheirResultsApart) {
  const int64_t world = GetParam().worlds.back();
  Ranks ranks = Group(world);
  RunOk(ranks, [&](Communicator& comm) {
    std::vector<float> data(200);
    std::vector<Handle> handles;
    for (int round = 0; round < 4; ++round) {
      for (int i = 0; i < 200; ++i) {
        data[i] = static_cast<float>(comm.rank() + i);
        handles.push_back(comm.AllReduce({&data[i], 1, DType::kF32}, Tag(std::to_string(i), i % 3)));
      }
      for (Handle& handle : handles) handle.Wait();
      handles.clear();
      for (int i = 0; i < 200; ++i) ASSERT_EQ(data[i], static_cast<float>(world * (world - 1) / 2 + world * i));
    }
  });
}

TEST_P(CommunicatorClaims, LargeBuffersArriveWhole) {
  const int64_t world = 3, elems = 1'000'003;
  Ranks ranks = Group(world);
  RunOk(ranks, [&](Communicator& comm) {
    std::vector<float> data = Inputs<float>(comm.rank(), elems);
    comm.AllReduce({data.data(), elems, DType::kF32}, Tag("large")).Wait();
    for (int64_t i = 0; i < elems; ++i) ASSERT_EQ(data[i], NaiveSum(world, i)) << i;
  });
}

}  // namespace
}  // namespace plumbline::optimized::testing
