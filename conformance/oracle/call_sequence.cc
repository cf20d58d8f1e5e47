// SPDX-License-Identifier: Apache-2.0
#include "conformance/oracle/call_sequence.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "conformance/contract/digest.h"
#include "conformance/contract/dtype.h"
#include "conformance/oracle/bucket_formula.h"
#include "conformance/oracle/gather_formula.h"
#include "conformance/oracle/norm_reductions.h"
#include "conformance/oracle/unit_formula.h"

namespace plumbline::conformance {
namespace {

constexpr int64_t kScalarBytes = 8;
constexpr int64_t kGradientBytes = 4;

using Calls = std::vector<CollectiveCall>;

void Append(Calls& calls, CollectiveKind kind, const std::vector<int64_t>& padded_elems, int64_t elem_bytes) {
  for (const int64_t elems : padded_elems) calls.push_back({kind, elems * elem_bytes});
}

// From the first use of a step to its last reduction.
class UsesOfStep {
 public:
  UsesOfStep(const contract::ModelSpec& model, const contract::RunConfig& config)
      : model_(model), config_(config), units_(UnitsOf(model)), plan_(PlanGathers(model, config)) {
    for (const GatherSet& group : plan_.groups) AddSet(group);
    for (const GatherSet& set : plan_.resident) AddSet(set);
  }

  Calls Run() {
    for (int64_t left = config_.accumulation_steps; left-- > 0;) RunMicroBatch(left == 0);
    return std::move(calls_);
  }

  // What is gathered after the update.
  Calls Publish() const {
    Calls calls;
    for (const GatherSet& set : plan_.resident) {
      if (set.gathers_per_step == 0) continue;
      Append(calls, CollectiveKind::kAllGather, PaddedBucketElems(model_, config_, set.parameters),
             contract::SizeBytes(config_.storage));
    }
    return calls;
  }

 private:
  struct Set {
    int64_t stage;
    std::vector<int64_t> padded_elems;    // of its buckets
    std::vector<size_t> last_parameters;  // of each bucket, the one whose gradient is finished last
  };

  void AddSet(const GatherSet& set) {
    sets_.push_back({set.stage, PaddedBucketElems(model_, config_, set.parameters),
                     LastParametersOfBuckets(model_, config_, set.parameters)});
  }

  void RunMicroBatch(bool is_last) {
    is_last_ = is_last;
    const size_t num_forward = units_.uses.size() / 2 + 1;
    for (size_t i = 0; i < units_.uses.size(); ++i) {
      if (i == num_forward) Reduce([&](size_t parameter) { return !IsUsed(parameter); });
      Gather();
      if (i >= num_forward) {
        Reduce([&](size_t parameter) { return IsUsed(parameter) && FirstReader(parameter) == units_.uses[i]; });
      }
    }
    Reduce([&](size_t parameter) { return IsUsed(parameter) && FirstReader(parameter) == units_.uses.front(); });
  }

  void Gather() {
    for (const size_t group : plan_.posted[use_]) {
      Append(calls_, CollectiveKind::kAllGather, sets_[group].padded_elems, contract::SizeBytes(config_.storage));
    }
    ++use_;
  }

  // Reductions of the buckets that the gradients of these parameters, finished in reverse canonical order, complete.
  template <typename Finished>
  void Reduce(Finished finished) {
    for (size_t parameter = contract::Parameters(model_).size(); parameter-- > 0;) {
      if (!finished(parameter)) continue;
      for (const Set& set : sets_) {
        if (set.stage >= 2 || is_last_) ReduceBucketOf(parameter, set);
      }
    }
  }

  void ReduceBucketOf(size_t parameter, const Set& set) {
    const CollectiveKind kind = set.stage == 0 ? CollectiveKind::kAllReduce : CollectiveKind::kReduceScatter;
    for (size_t bucket = 0; bucket < set.padded_elems.size(); ++bucket) {
      if (set.last_parameters[bucket] == parameter) calls_.push_back({kind, set.padded_elems[bucket] * kGradientBytes});
    }
  }

  bool Reads(size_t unit, size_t parameter) const {
    return std::find(units_.reads[unit].begin(), units_.reads[unit].end(), parameter) != units_.reads[unit].end();
  }

  // Backward comes to this unit last.
  size_t FirstReader(size_t parameter) const {
    size_t unit = 0;
    while (!Reads(unit, parameter)) ++unit;
    return unit;
  }

  bool IsUsed(size_t parameter) const {
    return std::any_of(units_.uses.begin(), units_.uses.end(), [&](size_t unit) { return Reads(unit, parameter); });
  }

  const contract::ModelSpec& model_;
  const contract::RunConfig& config_;
  const ModelUnits units_;
  const GatherPlan plan_;
  std::vector<Set> sets_;  // the groups, then what is resident
  size_t use_ = 0;
  bool is_last_ = false;  // of the step's micro-batches
  Calls calls_;
};

}  // namespace

std::vector<CollectiveCall> ExpectedCalls(const contract::ModelSpec& model, const contract::RunConfig& config) {
  Calls calls;
  if (config.data_degree == 1) return calls;
  const CollectiveCall scalar{CollectiveKind::kAllReduce, kScalarBytes};
  calls.push_back(scalar);
  UsesOfStep uses(model, config);
  const Calls used = uses.Run();
  calls.insert(calls.end(), used.begin(), used.end());
  calls.push_back(scalar);
  for (int64_t bytes : NormReductions(model, config)) calls.push_back({CollectiveKind::kAllReduce, bytes});
  const Calls published = uses.Publish();
  calls.insert(calls.end(), published.begin(), published.end());
  return calls;
}

uint64_t SequenceOf(std::span<const CollectiveCall> calls) {
  uint64_t sequence = 0;
  for (const CollectiveCall& call : calls) {
    sequence = contract::Mix(sequence + 4 * static_cast<uint64_t>(call.bytes) + static_cast<uint64_t>(call.kind));
  }
  return sequence;
}

}  // namespace plumbline::conformance
