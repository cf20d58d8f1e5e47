// SPDX-License-Identifier: Apache-2.0
// See sample_plan.h.
#include "optimized/partition/sample_plan.h"

#include <string>

#include "conformance/contract/error.h"

namespace plumbline::optimized {

int64_t FirstSample(int64_t accumulation_index, int64_t rank, int64_t data_degree, int64_t samples) {
  if (accumulation_index < 0 || rank < 0 || rank >= data_degree || samples < 1) {
    contract::Fail(contract::ErrorCode::kInvalidArgument, "micro-batch " + std::to_string(accumulation_index) + " of " +
                                                              std::to_string(samples) + " samples on rank " +
                                                              std::to_string(rank) + " of " +
                                                              std::to_string(data_degree) + " does not exist");
  }
  return (accumulation_index * data_degree + rank) * samples;
}

}  // namespace plumbline::optimized
