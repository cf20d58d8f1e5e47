// SPDX-License-Identifier: Apache-2.0
// Fold forward and backward against a copy of the same bytes, measured in the same run: the ceiling of a memory-bound
// loop.
#include <benchmark/benchmark.h>

#include <cstring>
#include <vector>

#include "kernels/bf16.h"
#include "kernels/fold/fold.h"

namespace plumbline::kernels {
namespace {

template <typename T>
void BM_Copy(benchmark::State& state) {
  std::vector<T> x(state.range(0)), y(state.range(0));
  for (auto _ : state) {
    std::memcpy(static_cast<void*>(y.data()), x.data(), x.size() * sizeof(T));
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * state.range(0) * 2 * static_cast<int64_t>(sizeof(T)));
}

template <typename T>
void BM_FoldForward(benchmark::State& state) {
  std::vector<T> x(state.range(0)), y(state.range(0));
  for (auto _ : state) {
    FoldForward<T, T>(x, 2, y);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * state.range(0) * 2 * static_cast<int64_t>(sizeof(T)));
}

template <typename T>
void BM_FoldBackward(benchmark::State& state) {
  std::vector<T> x(state.range(0)), dy(state.range(0)), dx(state.range(0));
  for (auto _ : state) {
    FoldBackward<T>(dy, x, 2, dx);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * state.range(0) * 3 * static_cast<int64_t>(sizeof(T)));
}

BENCHMARK_TEMPLATE(BM_Copy, float)->Arg(2304)->Arg(1 << 20);
BENCHMARK_TEMPLATE(BM_FoldForward, float)->Arg(2304)->Arg(1 << 20);
BENCHMARK_TEMPLATE(BM_FoldBackward, float)->Arg(2304)->Arg(1 << 20);
BENCHMARK_TEMPLATE(BM_Copy, BFloat16)->Arg(2304)->Arg(1 << 20);
BENCHMARK_TEMPLATE(BM_FoldForward, BFloat16)->Arg(2304)->Arg(1 << 20);
BENCHMARK_TEMPLATE(BM_FoldBackward, BFloat16)->Arg(2304)->Arg(1 << 20);

}  // namespace
}  // namespace plumbline::kernels
