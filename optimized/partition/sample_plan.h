// SPDX-License-Identifier: Apache-2.0
// Which samples of the global batch a micro-batch of a rank holds. Pure integer arithmetic.
// Source: docs/exact-family.md, "Who computes which sample".
#pragma once

#include <cstdint>

namespace plumbline::optimized {

// Index in the global batch of the first sample of micro-batch `accumulation_index` of data rank `rank`; the
// micro-batch's `samples` samples follow each other. InvalidArgument if an index or a size is outside its range.
int64_t FirstSample(int64_t accumulation_index, int64_t rank, int64_t data_degree, int64_t samples);

}  // namespace plumbline::optimized
