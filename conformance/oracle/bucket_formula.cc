// SPDX-License-Identifier: Apache-2.0
#include "conformance/oracle/bucket_formula.h"

namespace plumbline::conformance {
namespace {

constexpr int64_t kAlignElems = 32;

int64_t RoundUp(int64_t value, int64_t multiple) { return (value + multiple - 1) / multiple * multiple; }

}  // namespace

std::vector<size_t> TrainedInReverseOrder(const contract::ModelSpec& model) {
  const std::vector<contract::ParameterSpec> parameters = contract::Parameters(model);
  std::vector<size_t> order;
  for (size_t parameter = parameters.size(); parameter-- > 0;) {
    if (!parameters[parameter].frozen) order.push_back(parameter);
  }
  return order;
}

int64_t AlignedElems(int64_t elems) { return RoundUp(elems, kAlignElems); }

std::vector<int64_t> PaddedBucketElems(const contract::ModelSpec& model, const contract::RunConfig& config,
                                       const std::vector<size_t>& parameters) {
  const std::vector<contract::ParameterSpec> specs = contract::Parameters(model);
  std::vector<int64_t> padded;
  int64_t open_elems = 0;    // of the parameters alone
  int64_t open_aligned = 0;  // with each parameter at its aligned place
  const auto close = [&] {
    if (open_elems > 0) padded.push_back(RoundUp(open_aligned, kAlignElems * config.data_degree));
    open_elems = open_aligned = 0;
  };
  for (size_t parameter : parameters) {
    const int64_t elems = specs[parameter].numel();
    if (open_elems + elems > config.reduce_bucket_elems) close();
    open_elems += elems;
    open_aligned += AlignedElems(elems);
  }
  close();
  return padded;
}

}  // namespace plumbline::conformance
