// SPDX-License-Identifier: Apache-2.0
#include "conformance/oracle/bucket_formula.h"

namespace plumbline::conformance {
namespace {

constexpr int64_t kAlignElems = 32;

int64_t RoundUp(int64_t value, int64_t multiple) { return (value + multiple - 1) / multiple * multiple; }

struct FilledBucket {
  int64_t elems = 0;          // of the parameters alone
  int64_t aligned_elems = 0;  // with each parameter at its aligned place
  size_t last_parameter = 0;
};

std::vector<FilledBucket> FilledBuckets(const contract::ModelSpec& model, const contract::RunConfig& config,
                                        const std::vector<size_t>& parameters) {
  const std::vector<contract::ParameterSpec> specs = contract::Parameters(model);
  std::vector<FilledBucket> buckets;
  for (size_t parameter : parameters) {
    const int64_t elems = specs[parameter].numel();
    const bool joins = !buckets.empty() && buckets.back().elems + elems <= config.reduce_bucket_elems;
    if (!joins) buckets.emplace_back();
    buckets.back().elems += elems;
    buckets.back().aligned_elems += RoundUp(elems, kAlignElems);
    buckets.back().last_parameter = parameter;
  }
  return buckets;
}

}  // namespace

int64_t AlignedElems(int64_t elems) { return RoundUp(elems, kAlignElems); }

std::vector<int64_t> PaddedBucketElems(const contract::ModelSpec& model, const contract::RunConfig& config,
                                       const std::vector<size_t>& parameters) {
  std::vector<int64_t> padded;
  for (const FilledBucket& bucket : FilledBuckets(model, config, parameters)) {
    padded.push_back(RoundUp(bucket.aligned_elems, kAlignElems * config.data_degree));
  }
  return padded;
}

std::vector<size_t> LastParametersOfBuckets(const contract::ModelSpec& model, const contract::RunConfig& config,
                                            const std::vector<size_t>& parameters) {
  std::vector<size_t> last;
  for (const FilledBucket& bucket : FilledBuckets(model, config, parameters)) last.push_back(bucket.last_parameter);
  return last;
}

}  // namespace plumbline::conformance
