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

// Reductions of a step under stages 0 to 2: buckets in their order, in the micro-batches that have any.
void AppendReductions(Calls& calls, const contract::RunConfig& config, const std::vector<int64_t>& padded_elems) {
  const CollectiveKind kind = config.zero_stage == 0 ? CollectiveKind::kAllReduce : CollectiveKind::kReduceScatter;
  const int64_t times = config.zero_stage == 2 ? config.accumulation_steps : 1;
  for (int64_t i = 0; i < times; ++i) Append(calls, kind, padded_elems, kGradientBytes);
}

// Stage 3, from the first use of a step to the last reduction.
class UsesOfStep {
 public:
  UsesOfStep(const contract::ModelSpec& model, const contract::RunConfig& config)
      : model_(model), config_(config), units_(UnitsOf(model)), plan_(PlanGathers(model, config)) {
    for (const GatherSet& group : plan_.groups) AddSet(group);
    AddSet(plan_.persistent);
  }

  Calls Run() {
    for (int64_t micro_batch = 0; micro_batch < config_.accumulation_steps; ++micro_batch) RunMicroBatch();
    return std::move(calls_);
  }

  // Buckets of the persistent parameters: gathered after the update.
  std::vector<int64_t> PersistentElems() const {
    return PaddedBucketElems(model_, config_, plan_.persistent.parameters);
  }

 private:
  struct Set {
    std::vector<int64_t> padded_elems;    // of its buckets
    std::vector<size_t> last_parameters;  // of each bucket, the one whose gradient is finished last
  };

  void AddSet(const GatherSet& set) {
    sets_.push_back(
        {PaddedBucketElems(model_, config_, set.parameters), LastParametersOfBuckets(model_, config_, set.parameters)});
  }

  void RunMicroBatch() {
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
        for (size_t bucket = 0; bucket < set.padded_elems.size(); ++bucket) {
          if (set.last_parameters[bucket] != parameter) continue;
          calls_.push_back({CollectiveKind::kReduceScatter, set.padded_elems[bucket] * kGradientBytes});
        }
      }
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
  std::vector<Set> sets_;  // the groups, then the persistent parameters
  size_t use_ = 0;
  Calls calls_;
};

void AppendNorm(Calls& calls, const contract::ModelSpec& model, const contract::RunConfig& config) {
  for (int64_t bytes : NormReductions(model, config)) calls.push_back({CollectiveKind::kAllReduce, bytes});
}

}  // namespace

std::vector<CollectiveCall> ExpectedCalls(const contract::ModelSpec& model, const contract::RunConfig& config) {
  Calls calls;
  if (config.data_degree == 1) return calls;
  const CollectiveCall scalar{CollectiveKind::kAllReduce, kScalarBytes};
  const int64_t weight_bytes = contract::SizeBytes(config.storage);
  calls.push_back(scalar);
  if (config.zero_stage == 3) {
    UsesOfStep uses(model, config);
    const Calls used = uses.Run();
    calls.insert(calls.end(), used.begin(), used.end());
    calls.push_back(scalar);
    AppendNorm(calls, model, config);
    Append(calls, CollectiveKind::kAllGather, uses.PersistentElems(), weight_bytes);
    return calls;
  }
  const std::vector<int64_t> padded_elems = PaddedBucketElems(model, config, TrainedInReverseOrder(model));
  AppendReductions(calls, config, padded_elems);
  calls.push_back(scalar);
  AppendNorm(calls, model, config);
  if (config.zero_stage > 0) Append(calls, CollectiveKind::kAllGather, padded_elems, weight_bytes);
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
