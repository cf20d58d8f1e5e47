// SPDX-License-Identifier: Apache-2.0
#include "conformance/oracle/bucket_formula.h"

namespace plumbline::conformance {
namespace {

constexpr int64_t kAlignElems = 32;

int64_t RoundUp(int64_t value, int64_t multiple) { return (value + multiple - 1) / multiple * multiple; }

}  // namespace

std::vector<size_t> ReverseCanonicalOrder(const contract::ModelSpec& model) {
  std::vector<size_t> order;
  for (size_t parameter = contract::Parameters(model).size(); parameter-- > 0;) order.push_back(parameter);
  return order;
}

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
    open_aligned += RoundUp(elems, kAlignElems);
  }
  close();
  return padded;
}

}  // namespace plumbline::conformance
