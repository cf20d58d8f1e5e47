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

// Padded elements of all buckets: of what every rank keeps whole, of what is gathered, and the largest sum of groups
// that are gathered at one time.
struct PaddedElems {
  int64_t whole = 0;  // T_p, and T outside stage 3
  int64_t gathered = 0;
  int64_t peak_gathered = 0;

  int64_t all() const { return whole + gathered; }
};

int64_t Padded(const contract::ModelSpec& model, const contract::RunConfig& config,
               const std::vector<size_t>& parameters) {
  const std::vector<int64_t> buckets = PaddedBucketElems(model, config, parameters);
  return std::accumulate(buckets.begin(), buckets.end(), int64_t{0});
}

PaddedElems OfWholeModel(const contract::ModelSpec& model, const contract::RunConfig& config) {
  return {Padded(model, config, TrainedInReverseOrder(model)), 0, 0};
}

PaddedElems OfGatherPlan(const contract::ModelSpec& model, const contract::RunConfig& config) {
  const GatherPlan plan = PlanGathers(model, config);
  PaddedElems elems{Padded(model, config, plan.persistent.parameters), 0, 0};
  std::vector<int64_t> of_group;
  for (const GatherSet& group : plan.groups) of_group.push_back(Padded(model, config, group.parameters));
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
  const PaddedElems elems = config.zero_stage == 3 ? OfGatherPlan(model, config) : OfWholeModel(model, config);
  const int64_t part = config.zero_stage == 0 ? elems.all() : elems.all() / config.data_degree;  // S
  const bool arrives_apart = config.zero_stage >= 2 && config.accumulation_steps > 1;
  return {
      {"weights", storage_bytes * (elems.whole + elems.gathered / config.data_degree + FrozenElems(model))},
      {"gathered_weights", storage_bytes * elems.peak_gathered},
      {"gradients", kF32Bytes * (elems.all() + (config.zero_stage == 0 ? 0 : part))},
      {"optimizer_state", kF32Bytes * StatesOfAnElement(config) * part},
      {"communication", arrives_apart ? kF32Bytes * part : 0},
      {"activations", ActivationBytes(model, config)},
  };
}

}  // namespace plumbline::conformance
