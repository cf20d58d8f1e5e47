// SPDX-License-Identifier: Apache-2.0
// The books: bytes by the definitions of docs/formats.md, and a sequence digest that sees every property of a call.
#include "optimized/comm/ledger.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "optimized/comm/thread_communicator.h"

namespace plumbline::optimized {
namespace {

using contract::CommCount;
using contract::DType;
using namespace std::chrono_literals;

// What rank 0 of `world` has in its books after all ranks made the same calls (one thread posts for all of them).
LedgerEntry BooksAfter(int64_t world, const std::function<Handle(Communicator&)>& call, int times = 1) {
  std::vector<std::unique_ptr<LedgerCommunicator>> ranks;
  for (auto& rank : MakeThreadCommunicators(world, Progress::kLastArriver)) {
    ranks.push_back(std::make_unique<LedgerCommunicator>(std::move(rank)));
  }
  for (int i = 0; i < times; ++i) {
    std::vector<Handle> handles;
    for (auto& rank : ranks) handles.push_back(call(*rank));
    for (Handle& handle : handles) handle.Wait();
  }
  return ranks[0]->Take();
}

// Contents do not matter here; large enough for every call below.
double memory[64];
Buffer F32(int64_t elems) { return {memory, elems, DType::kF32}; }
// The ranks share `memory`; each gets a part of its own.
Buffer Part(const Communicator& c) { return {reinterpret_cast<float*>(memory) + 3 * c.rank(), 3, DType::kF32}; }
CallOptions Tag(const std::string& tag, int stream = 0) { return {tag, 10s, stream}; }

TEST(Ledger, BytesAreTheWholeBufferForEveryKind) {
  const auto all_reduce = BooksAfter(
      2, [](Communicator& c) { return c.AllReduce(F32(6), Tag("t")); }, 3);
  EXPECT_EQ(all_reduce.by_kind, (std::map<std::string, CommCount>{{"all_reduce", {3, 3 * 6 * 4}}}));
  const auto scatter = BooksAfter(2, [](Communicator& c) { return c.ReduceScatter(F32(6), Part(c), Tag("t")); });
  EXPECT_EQ(scatter.by_kind, (std::map<std::string, CommCount>{{"reduce_scatter", {1, 6 * 4}}}));
  const auto gather = BooksAfter(2, [](Communicator& c) {
    return c.AllGather({memory, 3, DType::kBF16}, {memory, 6, DType::kBF16}, Tag("t"));
  });
  EXPECT_EQ(gather.by_kind, (std::map<std::string, CommCount>{{"all_gather", {1, 6 * 2}}}));
}

TEST(Ledger, WithOneRankNothingIsCounted) {
  const auto books = BooksAfter(1, [](Communicator& c) { return c.AllReduce(F32(6), Tag("t")); });
  EXPECT_TRUE(books.by_kind.empty());
  EXPECT_EQ(books.sequence, LedgerEntry{}.sequence);
}

TEST(Ledger, TheSequenceDependsOnKindBytesAndNumberOfCallsAndNotOnBarriers) {
  std::set<uint64_t> sequences;
  const auto add = [&](const std::function<Handle(Communicator&)>& call, int times = 1) {
    sequences.insert(BooksAfter(2, call, times).sequence);
  };
  add([](Communicator& c) { return c.AllReduce(F32(6), Tag("t")); });
  add([](Communicator& c) { return c.AllReduce(F32(6), Tag("t")); }, 2);
  add([](Communicator& c) { return c.AllReduce(F32(7), Tag("t")); });
  add([](Communicator& c) { return c.AllReduce({memory, 6, DType::kF64}, Tag("t")); });
  add([](Communicator& c) { return c.ReduceScatter(F32(6), Part(c), Tag("t")); });
  add([](Communicator& c) { return c.AllGather(Part(c), F32(6), Tag("t")); });
  EXPECT_EQ(sequences.size(), 6u);
  EXPECT_EQ(BooksAfter(2, [](Communicator& c) { return c.Barrier(Tag("t")); }).sequence, 0u);
}

// mix(24 * 4 + 1), then mix(that + 28 * 4 + 1), by Python from the formula of docs/formats.md.
TEST(Ledger, TheSequenceIsTheFormulaOfTheFormatsAndSeesTheOrderOfCalls) {
  const auto in_order = [](int64_t first, int64_t second) {
    int calls = 0;
    // Both ranks make call 0 with one size, then call 1 with the other.
    return BooksAfter(
        2, [&](Communicator& c) { return c.AllReduce(F32(calls++ < 2 ? first : second), Tag("t")); }, 2);
  };
  EXPECT_EQ(in_order(6, 7).sequence, 0xE51B96FF525D7D47ull);
  EXPECT_EQ(in_order(7, 6).sequence, 0x5A6C9383A78A85C7ull);
}

TEST(Ledger, TakeBeginsANewPage) {
  std::vector<std::unique_ptr<Communicator>> ranks = MakeThreadCommunicators(2, Progress::kLastArriver);
  LedgerCommunicator first(std::move(ranks[0])), second(std::move(ranks[1]));
  Handle a = first.AllReduce(F32(2), Tag("t"));
  Handle b = second.AllReduce(F32(2), Tag("t"));
  a.Wait();
  b.Wait();
  const LedgerEntry page = first.Take();
  EXPECT_EQ(page.sequence, second.Take().sequence);
  EXPECT_EQ(page.by_kind.at("all_reduce").calls, 1);
  EXPECT_TRUE(first.Take().by_kind.empty());
}

}  // namespace
}  // namespace plumbline::optimized
