// SPDX-License-Identifier: Apache-2.0
#include "conformance/oracle/memory_formula.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "conformance/contract/case_file.h"
#include "conformance/contract/dtype.h"
#include "conformance/oracle/activation_formula.h"
#include "conformance/oracle/bucket_formula.h"
#include "conformance/oracle/gather_formula.h"

namespace plumbline::conformance {
namespace {

constexpr int64_t kF32Bytes = 4;

// Padded elements of buckets, in sums over those of a kind (docs/zero3.md, "Memory").
struct PaddedElems {
  int64_t all = 0;            // T
  int64_t whole = 0;          // of weights that every rank keeps whole
  int64_t gathered = 0;       // T_g
  int64_t peak_gathered = 0;  // the largest sum of groups that are gathered at one time
  int64_t sharded = 0;        // from stage 1 on
  int64_t arriving = 0;       // of stages 2 and 3
};

int64_t Padded(const contract::ModelSpec& model, const contract::RunConfig& config, const GatherSet& set) {
  const std::vector<int64_t> buckets = PaddedBucketElems(model, config, set.parameters);
  return std::accumulate(buckets.begin(), buckets.end(), int64_t{0});
}

PaddedElems SumsOver(const contract::ModelSpec& model, const contract::RunConfig& config) {
  const GatherPlan plan = PlanGathers(model, config);
  PaddedElems elems;
  const auto add = [&](const GatherSet& set) {
    const int64_t padded = Padded(model, config, set);
    elems.all += padded;
    if (set.stage >= 1) elems.sharded += padded;
    if (set.stage >= 2) elems.arriving += padded;
    return padded;
  };
  for (const GatherSet& set : plan.resident) elems.whole += add(set);
  std::vector<int64_t> of_group;
  for (const GatherSet& group : plan.groups) of_group.push_back(add(group));
  elems.gathered = std::accumulate(of_group.begin(), of_group.end(), int64_t{0});
  for (const std::vector<size_t>& live : plan.live) {
    int64_t at_once = 0;
    for (size_t group : live) at_once += of_group[group];
    elems.peak_gathered = std::max(elems.peak_gathered, at_once);
  }
  return elems;
}

// fp32 numbers that the optimizer keeps for each element: the master weight and the moments.
int64_t StatesOfAnElement(const contract::RunConfig& config) {
  return 1 + (contract::HasMoment(config) ? 1 : 0) + (contract::HasSecondMoment(config) ? 1 : 0);
}

// Working weights of frozen parameters, which are in no bucket (F).
int64_t FrozenElems(const contract::ModelSpec& model) {
  int64_t elems = 0;
  for (const contract::ParameterSpec& parameter : contract::Parameters(model)) {
    if (parameter.frozen) elems += AlignedElems(parameter.numel());
  }
  return elems;
}

}  // namespace

std::map<std::string, int64_t> ExpectedMemoryPeak(const contract::ModelSpec& model, const contract::RunConfig& config) {
  const int64_t storage_bytes = contract::SizeBytes(config.storage);
  const PaddedElems elems = SumsOver(model, config);
  const int64_t shard = elems.sharded / config.data_degree;
  const int64_t part = elems.all - elems.sharded + shard;  // S
  const int64_t arriving = config.accumulation_steps > 1 ? elems.arriving / config.data_degree : 0;
  return {
      {"weights", storage_bytes * (elems.whole + elems.gathered / config.data_degree + FrozenElems(model))},
      {"gathered_weights", storage_bytes * elems.peak_gathered},
      {"gradients", kF32Bytes * (elems.all + shard)},
      {"optimizer_state", kF32Bytes * StatesOfAnElement(config) * part},
      {"communication", kF32Bytes * arriving},
      {"activations", ActivationBytes(model, config)},
  };
}

}  // namespace plumbline::conformance
