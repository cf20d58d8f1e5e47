// SPDX-License-Identifier: Apache-2.0
// The ceiling of a memory-bound kernel: how fast this machine copies, measured in the same run. A bench reports its
// bytes per second and their share of a copy of as many bytes.
#pragma once

#include <benchmark/benchmark.h>
#include <time.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

namespace plumbline::kernels::testing {

// Of this thread: on a shared machine the wall clock counts other people's work.
inline double ProcessorSeconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// Bytes read and written per second by memcpy of bytes / 2 to as many; the best of the repetitions in 50 ms.
inline double CopyBytesPerSecond(int64_t bytes) {
  const auto half = static_cast<size_t>(std::max<int64_t>(1, bytes / 2));
  std::vector<char> from(half, 1), to(half, 2);
  double best = 0;
  const double end = ProcessorSeconds() + 0.05;
  do {
    const double begin = ProcessorSeconds();
    int repetitions = 0;
    do {
      std::memcpy(to.data(), from.data(), half);
      benchmark::ClobberMemory();
    } while (++repetitions < 16 || ProcessorSeconds() - begin < 2e-4);
    best = std::max(best, 2.0 * static_cast<double>(half) * repetitions / (ProcessorSeconds() - begin));
  } while (ProcessorSeconds() < end);
  return best;
}

// Runs `operation`, which reads and writes `bytes`, and sets bytes_per_second and share_of_copy.
template <typename Operation>
void MeasureAgainstCopy(benchmark::State& state, int64_t bytes, Operation operation) {
  const double copy = CopyBytesPerSecond(bytes);
  const double begin = ProcessorSeconds();
  for (auto _ : state) {
    operation();
    benchmark::ClobberMemory();
  }
  const double seconds = ProcessorSeconds() - begin;
  state.SetBytesProcessed(state.iterations() * bytes);
  state.counters["share_of_copy"] = static_cast<double>(state.iterations() * bytes) / seconds / copy;
}

}  // namespace plumbline::kernels::testing
