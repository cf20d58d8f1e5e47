// SPDX-License-Identifier: Apache-2.0
// Settings of ZeRO 3 and of overlap that are not in the run's config yet.
#pragma once

#include <cstdint>

namespace plumbline::optimized {

struct EngineOptions {
  bool overlap_comm = true;
  int64_t prefetch_bucket_elems = 50'000'000;
  int64_t persistence_threshold_elems = 100'000;
  int64_t max_live_elems = 1'000'000'000;
};

}  // namespace plumbline::optimized
