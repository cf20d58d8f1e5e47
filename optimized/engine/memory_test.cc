// SPDX-License-Identifier: Apache-2.0
// Peaks of memory and calls of ZeRO 3 against the text of docs/zero3.md, written again from the config alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <set>

#include "optimized/comm/ledger.h"
#include "optimized/engine/testing/small_case.h"

namespace plumbline::optimized {
namespace {

using contract::CaseData;
using contract::CommCount;
using contract::DType;
using testing::Layout;
using Peaks = std::map<std::string, int64_t>;

int64_t RoundUp(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }

// Padded elements of the buckets of one set of parameters.
std::vector<int64_t> PaddedBuckets(const CaseData& data, const std::set<int64_t>& parameters) {
  std::vector<int64_t> padded;
  int64_t own_elems = 0, end = 0;
  bool is_open = false;
  const auto close = [&] {
    if (is_open) padded.push_back(RoundUp(end, 32 * data.spec.config.data_degree));
    own_elems = end = 0;
  };
  for (auto p = parameters.rbegin(); p != parameters.rend(); ++p) {
    const int64_t numel = data.parameters[*p].numel();
    if (is_open && own_elems + numel > data.spec.config.reduce_bucket_elems) close();
    is_open = true;
    own_elems += numel;
    end = RoundUp(end, 32) + numel;
  }
  close();
  return padded;
}

int64_t Sum(const std::vector<int64_t>& values) {
  int64_t sum = 0;
  for (const int64_t value : values) sum += value;
  return sum;
}

// Activations of family exact, element by element of docs/zero3.md.
int64_t ActivationBytes(const CaseData& data) {
  const contract::ExactSpec& m = data.spec.model.exact();
  const int64_t s = contract::SizeBytes(data.spec.config.storage);
  const int64_t n = data.spec.config.micro_batch_size * m.positions;
  const int64_t d = m.width, e = m.kv_width(), f = m.hidden, v = m.vocab, scores = m.heads * m.positions;
  const int64_t scratch = s * n * (4 * d + scores + f) + 4 * n * d;
  const int64_t head = s * n * (d + 2 * v);
  const int64_t stream = s * n * d * (2 * m.layers + 2);
  const int64_t attention = s * n * (2 * d + 4 * e + 4 * d + 2 * scores);
  const int64_t mlp = s * n * (2 * d + 2 * f);
  const int64_t masks = m.dropout ? 2 * n * d : 0;
  return scratch + head + stream + m.layers * (attention + mlp + masks);
}

// The groups of a layout: sets of parameters, and for each the uses of a step in which it is needed.
struct Groups {
  std::set<int64_t> persistent;
  std::vector<std::set<int64_t>> members;
  std::vector<std::set<int64_t>> uses;
  int64_t num_uses = 0;
};

Groups GroupsOf(const CaseData& data) {
  const int64_t layers = data.spec.model.exact().layers;
  const auto is_persistent = [&](int64_t p) {
    return data.parameters[p].numel() < data.spec.config.persistence_threshold_elems;
  };
  std::vector<std::set<int64_t>> units = {{0, 1}};
  for (int64_t layer = 0; layer < layers; ++layer) {
    units.emplace_back();
    for (int64_t i = 0; i < 6; ++i) units.back().insert(2 + 6 * layer + i);
  }
  units.push_back({0});
  Groups groups;
  std::vector<std::set<int64_t>> all = {{0}, {1}};
  all.insert(all.end(), units.begin() + 1, units.end() - 1);
  for (std::set<int64_t> group : all) {
    for (const int64_t p : std::set<int64_t>(group)) {
      if (!is_persistent(p)) continue;
      groups.persistent.insert(p);
      group.erase(p);
    }
    if (!group.empty()) groups.members.push_back(group);
  }
  groups.uses.resize(groups.members.size());
  for (int64_t a = 0; a < data.spec.config.accumulation_steps; ++a) {
    std::vector<int64_t> order;
    for (int64_t unit = 0; unit <= layers + 1; ++unit) order.push_back(unit);
    for (int64_t unit = layers + 1; unit >= 1; --unit) order.push_back(unit);
    for (const int64_t unit : order) {
      for (size_t g = 0; g < groups.members.size(); ++g) {
        if (units[unit].contains(*groups.members[g].begin())) groups.uses[g].insert(groups.num_uses);
      }
      ++groups.num_uses;
    }
  }
  return groups;
}

int64_t OwnElems(const CaseData& data, const std::set<int64_t>& group) {
  int64_t elems = 0;
  for (const int64_t p : group) elems += data.parameters[p].numel();
  return elems;
}

// Without prefetch. Number of gathers of each group, and the largest number of bytes gathered at once.
std::pair<std::vector<int64_t>, int64_t> GathersAndPeak(const CaseData& data, const Groups& groups) {
  const size_t num_groups = groups.members.size();
  std::vector<std::vector<bool>> live(num_groups, std::vector<bool>(groups.num_uses, false));
  const auto live_elems = [&](int64_t use) {
    int64_t elems = 0;
    for (size_t g = 0; g < num_groups; ++g) elems += live[g][use] ? OwnElems(data, groups.members[g]) : 0;
    return elems;
  };
  std::vector<int64_t> gathers(num_groups);
  // (length, begin, largest first as the engine numbers groups)
  std::set<std::tuple<int64_t, int64_t, int64_t>> waits;
  for (size_t g = 0; g < num_groups; ++g) {
    int64_t previous = -1;
    for (const int64_t use : groups.uses[g]) {
      live[g][use] = true;
      ++gathers[g];
      if (previous >= 0) waits.insert({use - previous, previous, -*groups.members[g].rbegin()});
      previous = use;
    }
  }
  for (const auto& [length, begin, key] : waits) {
    for (size_t g = 0; g < num_groups; ++g) {
      if (-*groups.members[g].rbegin() != key) continue;
      bool fits = true;
      for (int64_t use = begin + 1; use < begin + length; ++use) {
        fits &= live_elems(use) + OwnElems(data, groups.members[g]) <= data.spec.config.max_live_elems;
      }
      if (!fits) continue;
      --gathers[g];
      for (int64_t use = begin + 1; use < begin + length; ++use) live[g][use] = true;
    }
  }
  int64_t peak_elems = 0;
  for (int64_t use = 0; use < groups.num_uses; ++use) {
    int64_t elems = 0;
    for (size_t g = 0; g < num_groups; ++g) {
      elems += live[g][use] ? Sum(PaddedBuckets(data, groups.members[g])) : 0;
    }
    peak_elems = std::max(peak_elems, elems);
  }
  return {gathers, peak_elems * contract::SizeBytes(data.spec.config.storage)};
}

Peaks ExpectedPeaks(const CaseData& data) {
  const contract::RunConfig& config = data.spec.config;
  const int64_t s = contract::SizeBytes(config.storage), r = config.data_degree;
  std::set<int64_t> all;
  for (size_t p = 0; p < data.parameters.size(); ++p) all.insert(static_cast<int64_t>(p));
  int64_t total = Sum(PaddedBuckets(data, all)), weights = s * total, gathered = 0;
  if (config.zero_stage == 3) {
    const Groups groups = GroupsOf(data);
    const int64_t persistent = Sum(PaddedBuckets(data, groups.persistent));
    int64_t sharded = 0;
    for (const auto& members : groups.members) sharded += Sum(PaddedBuckets(data, members));
    total = persistent + sharded;
    weights = s * (persistent + sharded / r);
    gathered = GathersAndPeak(data, groups).second;
  }
  const int64_t shard = config.zero_stage == 0 ? total : total / r;
  return {{"weights", weights},
          {"gathered_weights", gathered},
          {"gradients", 4 * total + (config.zero_stage >= 1 ? 4 * shard : 0)},
          {"optimizer_state", 8 * shard},
          {"activations", ActivationBytes(data)},
          {"communication", config.zero_stage >= 2 && config.accumulation_steps > 1 ? 4 * shard : 0}};
}

struct Observed {
  Peaks peaks;
  int64_t gathered_between_steps = 0;
  std::map<std::string, CommCount> comm;
};

// After the last step, by rank; every step must give the same.
std::vector<Observed> Observe(const CaseData& data) {
  std::vector<Observed> ranks(data.spec.config.data_degree);
  testing::RunRanks(
      data,
      [&](Training& training) {
        auto& ledger = dynamic_cast<LedgerCommunicator&>(*training.communicator);
        for (int64_t step = 0; step < testing::kSteps; ++step) {
          ledger.Take();
          testing::Step(training, step);
          Observed now;
          now.comm = ledger.Take().by_kind;
          for (const MemoryCategory category : kMemoryCategories) {
            now.peaks[std::string(Name(category))] = training.memory_ledger.of(category).peak_bytes;
          }
          now.gathered_between_steps = training.memory_ledger.of(MemoryCategory::kGatheredWeights).current_bytes;
          Observed& first = ranks[ledger.rank()];
          if (step == 0) first = now;
          EXPECT_EQ(now.peaks, first.peaks);
          EXPECT_EQ(now.comm, first.comm);
        }
      },
      [](std::unique_ptr<Communicator> inner) { return std::make_unique<LedgerCommunicator>(std::move(inner)); });
  return ranks;
}

TEST(Memory, PeaksEqualTheFormulaInEveryStage) {
  for (const int64_t zero_stage : {0, 1, 2, 3}) {
    for (const int64_t data_degree : {1, 2, 3}) {
      for (const int64_t accumulation : {1, 2}) {
        for (const DType storage : {DType::kF32, DType::kBF16}) {
          for (const int64_t bucket : {int64_t{1}, int64_t{200}, testing::kNoLimit}) {
            const Layout layout{data_degree, zero_stage, accumulation, storage, bucket, {true, 0, 61, 0}};
            const CaseData data = testing::MakeCase(layout);
            for (const Observed& rank : Observe(data)) {
              EXPECT_EQ(rank.peaks, ExpectedPeaks(data)) << testing::Text(layout);
            }
          }
        }
      }
    }
  }
}

TEST(Memory, GathersOfZeroThreeEqualTheFormulaForAllThresholdsAndLimits) {
  for (const int64_t persistence : {0, 61, 133, 157}) {
    for (const int64_t max_live : {0, 300, 572, 573, 728, 729, 1300, 5000}) {
      for (const int64_t accumulation : {1, 2}) {
        const Layout layout{2, 3, accumulation, DType::kBF16, 300, {true, 0, persistence, max_live}};
        const CaseData data = testing::MakeCase(layout);
        const Groups groups = GroupsOf(data);
        const std::vector<int64_t> gathers = GathersAndPeak(data, groups).first;
        std::map<std::string, CommCount> expected;
        expected["all_reduce"] = {2, 16};
        const auto add = [&](const std::set<int64_t>& parameters, int64_t times) {
          for (const int64_t elems : PaddedBuckets(data, parameters)) {
            expected["all_gather"].calls += times;
            expected["all_gather"].bytes += times * 2 * elems;
            expected["reduce_scatter"].calls += accumulation;
            expected["reduce_scatter"].bytes += accumulation * 4 * elems;
          }
        };
        for (size_t g = 0; g < groups.members.size(); ++g) add(groups.members[g], gathers[g]);
        add(groups.persistent, 1);
        for (const Observed& rank : Observe(data)) {
          EXPECT_EQ(rank.comm, expected) << testing::Text(layout);
          EXPECT_EQ(rank.peaks, ExpectedPeaks(data)) << testing::Text(layout);
          EXPECT_EQ(rank.gathered_between_steps, 0) << "gathered weights do not outlive the step";
        }
      }
    }
  }
}

TEST(Memory, PrefetchMovesGathersWithoutAddingAnyAndRaisesThePeakWithinTheLimit) {
  const Observed without = Observe(testing::MakeCase({2, 3, 1, DType::kBF16, 300, {true, 0, 0, 900}}))[0];
  const Observed with = Observe(testing::MakeCase({2, 3, 1, DType::kBF16, 300, {true, 700, 0, 900}}))[0];
  EXPECT_EQ(with.comm, without.comm);
  EXPECT_GT(with.peaks.at("gathered_weights"), without.peaks.at("gathered_weights"));
}

}  // namespace
}  // namespace plumbline::optimized
