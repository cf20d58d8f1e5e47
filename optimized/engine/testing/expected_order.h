// SPDX-License-Identifier: Apache-2.0
// The calls of a step in their order by the text of docs/formats.md, "Layers of different stages" and "The order of
// calls", written again from the config alone. Prefetch is left out.
#pragma once

#include <algorithm>
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "conformance/contract/digest.h"
#include "optimized/engine/testing/expected_books.h"

namespace plumbline::optimized::testing {

enum class CallKind : uint64_t { kAllReduce = 1, kReduceScatter = 2, kAllGather = 3 };

struct Call {
  CallKind kind;
  int64_t bytes;
};

inline uint64_t SequenceOf(const std::vector<Call>& calls) {
  uint64_t sequence = 0;
  for (const Call& call : calls) {
    sequence = contract::Mix(sequence + 4 * static_cast<uint64_t>(call.bytes) + static_cast<uint64_t>(call.kind));
  }
  return sequence;
}

class ExpectedOrder {
 public:
  explicit ExpectedOrder(const CaseData& data)
      : data_(data), config_(data.spec.config), units_(UnitsOf(data)), groups_(GroupsOf(data)) {
    FindBuckets();
  }

  std::vector<Call> Step() {
    calls_ = {{CallKind::kAllReduce, 8}};
    next_use_ = 0;
    for (int64_t a = 0; a < config_.accumulation_steps; ++a) MicroBatch(a + 1 == config_.accumulation_steps);
    Add(CallKind::kAllReduce, 8);
    for (const int64_t bytes : BytesOfSums(data_)) Add(CallKind::kAllReduce, bytes);
    for (const Bucket& bucket : buckets_) {
      if (bucket.is_gathered_after) Add(CallKind::kAllGather, WeightBytes(bucket.padded));
    }
    return calls_;
  }

 private:
  struct Bucket {
    std::set<int64_t> members;
    int64_t padded;
    int64_t stage;
    bool is_gathered_after;
    size_t missing = 0;  // gradients, of a micro-batch
  };

  void Add(CallKind kind, int64_t bytes) { calls_.push_back({kind, bytes}); }
  int64_t WeightBytes(int64_t elems) const { return contract::SizeBytes(config_.storage) * elems; }

  // Groups in descending order of their largest member, persistent ones, stages 2, 1 and 0.
  void FindBuckets() {
    std::vector<std::set<int64_t>> groups = groups_.members;
    std::ranges::sort(groups, [](const auto& a, const auto& b) { return *a.rbegin() > *b.rbegin(); });
    for (const auto& group : groups) AddBuckets(group, 3, false);
    AddBuckets(groups_.persistent, 3, true);
    AddBuckets(ParametersOfStage(data_, 2), 2, true);
    AddBuckets(ParametersOfStage(data_, 1), 1, true);
    AddBuckets(ParametersOfStage(data_, 0), 0, false);
  }

  void AddBuckets(const std::set<int64_t>& parameters, int64_t stage, bool is_gathered_after) {
    std::set<int64_t> members;
    int64_t elems = 0;
    const auto close = [&] {
      if (!members.empty())
        buckets_.push_back({members, PaddedBuckets(data_, members).at(0), stage, is_gathered_after});
      members.clear();
      elems = 0;
    };
    for (auto p = parameters.rbegin(); p != parameters.rend(); ++p) {
      const int64_t numel = data_.parameters[*p].numel();
      if (elems + numel > config_.reduce_bucket_elems) close();
      members.insert(*p);
      elems += numel;
    }
    close();
  }

  void MicroBatch(bool is_last) {
    for (Bucket& bucket : buckets_) bucket.missing = bucket.members.size();
    const int64_t layers = NumLayers(data_), head = layers + 1;
    for (int64_t unit = 0; unit <= head; ++unit) Use();
    const auto num_parameters = static_cast<int64_t>(data_.parameters.size());
    const bool has_unused = !data_.spec.model.is_exact() && data_.spec.model.real().unused;
    if (has_unused) Finish(num_parameters - 1, is_last);
    const int64_t first_of_layers = *units_[1].begin();
    for (int64_t unit = head; unit >= 1; --unit) {
      Use();
      for (auto p = units_[unit].rbegin(); p != units_[unit].rend(); ++p) {
        if (*p >= first_of_layers)
          Finish(*p, is_last);  // the tied weight and positions are not finished before the end
      }
    }
    for (int64_t p = first_of_layers - 1; p >= 0; --p) Finish(p, is_last);
  }

  // Gathers what the next use needs and nothing has kept.
  void Use() {
    std::vector<std::pair<int64_t, size_t>> due;  // in the order of the engine's numbers of groups
    for (size_t g = 0; g < groups_.members.size(); ++g) {
      if (groups_.uses[g].contains(next_use_) && !StaysTo(g, next_use_)) {
        due.emplace_back(-*groups_.members[g].rbegin(), g);
      }
    }
    std::ranges::sort(due);
    for (const auto& [key, g] : due) {
      for (const int64_t padded : PaddedBuckets(data_, groups_.members[g])) {
        Add(CallKind::kAllGather, WeightBytes(padded));
      }
    }
    ++next_use_;
  }

  // With a limit of 0 only from a use to the very next one, without a limit through the whole step. Others: not here.
  bool StaysTo(size_t group, int64_t use) const {
    const bool is_first = *groups_.uses[group].begin() == use;
    if (config_.max_live_elems > 0) return !is_first;
    return !is_first && groups_.uses[group].contains(use - 1);
  }

  void Finish(int64_t parameter, bool is_last) {
    for (Bucket& bucket : buckets_) {
      if (!bucket.members.contains(parameter) || --bucket.missing > 0) continue;
      if (bucket.stage < 2 && !is_last) continue;
      Add(bucket.stage == 0 ? CallKind::kAllReduce : CallKind::kReduceScatter, 4 * bucket.padded);
    }
  }

  const CaseData& data_;
  const contract::RunConfig& config_;
  const std::vector<std::set<int64_t>> units_;
  const Groups groups_;
  std::vector<Bucket> buckets_;
  std::vector<Call> calls_;
  int64_t next_use_ = 0;
};

}  // namespace plumbline::optimized::testing
