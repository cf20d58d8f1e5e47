// SPDX-License-Identifier: Apache-2.0
// Ranges as a tool sees them: domain, names and categories are identities of metrics, so they are spelt out here again.
#include "conformance/contract/instrumentation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "conformance/contract/testing/nvtx_collector.h"

namespace plumbline::contract {
namespace {

using testing::NvtxCollector;
using testing::NvtxRange;

// Each test begins with what it marks itself.
class Instrumentation : public ::testing::Test {
 protected:
  Instrumentation() : collector_(NvtxCollector::Install()) { collector_.Take(); }
  NvtxCollector& collector_;
};

using Seen = std::tuple<std::string, uint32_t, int>;  // name, category, depth

std::vector<Seen> Names(const std::vector<NvtxRange>& ranges) {
  std::vector<Seen> seen;
  for (const NvtxRange& range : ranges) seen.emplace_back(range.name, range.category, range.depth);
  return seen;
}

TEST_F(Instrumentation, MarksEveryListedRangeInTheDomainUnderItsOwnName) {
  const std::pair<const char*, std::string> kNames[] = {{range::kStep, "step"},
                                                        {range::kForward, "forward"},
                                                        {range::kBackward, "backward"},
                                                        {range::kReduce, "reduce_gradients"},
                                                        {range::kOptimizerStep, "optimizer_step"},
                                                        {range::kGatherWeights, "gather_weights"},
                                                        {range::kAllReduce, "all_reduce"},
                                                        {range::kReduceScatter, "reduce_scatter"},
                                                        {range::kAllGather, "all_gather"},
                                                        {range::kTrace, "trace"}};
  for (const auto& [name, expected] : kNames) {
    { const ScopedRange range(Category::kCompute, name); }
    const std::vector<NvtxRange> ranges = collector_.Take();
    ASSERT_EQ(ranges.size(), 1u) << expected;
    EXPECT_EQ(ranges[0].domain, "plumbline");
    EXPECT_EQ(ranges[0].name, expected);
  }
}

TEST_F(Instrumentation, NamesItsCategoriesAndPassesThemOn) {
  { const ScopedRange range(Category::kCompute, range::kForward); }
  { const ScopedRange range(Category::kComm, range::kAllReduce); }
  { const ScopedRange range(Category::kOptimizer, range::kOptimizerStep); }
  { const ScopedRange range(Category::kIo, range::kTrace); }
  EXPECT_EQ(Names(collector_.Take()),
            (std::vector<Seen>{{"forward", 1, 0}, {"all_reduce", 2, 0}, {"optimizer_step", 3, 0}, {"trace", 4, 0}}));
  EXPECT_EQ(collector_.Categories("plumbline"),
            (std::map<uint32_t, std::string>{{1, "compute"}, {2, "comm"}, {3, "optimizer"}, {4, "io"}}));
  EXPECT_TRUE(collector_.Categories("another").empty());
}

TEST_F(Instrumentation, NestsAndEndsInnerRangesFirst) {
  {
    const ScopedRange step(Category::kCompute, range::kStep);
    { const ScopedRange forward(Category::kCompute, range::kForward); }
    {
      const ScopedRange backward(Category::kCompute, range::kBackward);
      const ScopedRange reduce(Category::kComm, range::kReduce);
      EXPECT_EQ(collector_.Take().size(), 1u) << "open ranges are not listed";
    }
  }
  const std::vector<NvtxRange> ranges = collector_.Take();
  EXPECT_EQ(Names(ranges), (std::vector<Seen>{{"reduce_gradients", 2, 2}, {"backward", 1, 1}, {"step", 1, 0}}));
  ASSERT_EQ(ranges.size(), 3u);
  for (size_t i = 0; i + 1 < ranges.size(); ++i) {
    EXPECT_LE(ranges[i + 1].begin, ranges[i].begin);
    EXPECT_LE(ranges[i].begin, ranges[i].end);
    EXPECT_LE(ranges[i].end, ranges[i + 1].end);
  }
}

TEST_F(Instrumentation, EndsARangeThatAnExceptionLeaves) {
  try {
    const ScopedRange step(Category::kCompute, range::kStep);
    throw std::runtime_error("out");
  } catch (const std::runtime_error&) {
  }
  { const ScopedRange forward(Category::kCompute, range::kForward); }
  EXPECT_EQ(Names(collector_.Take()), (std::vector<Seen>{{"step", 1, 0}, {"forward", 1, 0}}));
  EXPECT_EQ(collector_.NumUnmatchedPops(), 0);
}

TEST_F(Instrumentation, KeepsThreadsApart) {
  {
    const ScopedRange step(Category::kCompute, range::kStep);
    std::vector<std::thread> ranks;
    for (int rank = 0; rank < 4; ++rank) {
      ranks.emplace_back([] {
        for (int i = 0; i < 50; ++i) {
          const ScopedRange forward(Category::kCompute, range::kForward);
          const ScopedRange reduce(Category::kComm, range::kAllReduce);
        }
      });
    }
    for (std::thread& rank : ranks) rank.join();
  }
  const std::vector<NvtxRange> ranges = collector_.Take();
  ASSERT_EQ(ranges.size(), 401u);
  const auto count = [&](const Seen& seen) {
    const std::vector<Seen> all = Names(ranges);
    return std::count(all.begin(), all.end(), seen);
  };
  EXPECT_EQ(count({"forward", 1, 0}), 200);
  EXPECT_EQ(count({"all_reduce", 2, 1}), 200);
  EXPECT_EQ(count({"step", 1, 0}), 1);
  EXPECT_EQ(collector_.NumUnmatchedPops(), 0);
}

TEST_F(Instrumentation, CollectorIsOneForTheProcess) { EXPECT_EQ(&NvtxCollector::Install(), &collector_); }

}  // namespace
}  // namespace plumbline::contract
