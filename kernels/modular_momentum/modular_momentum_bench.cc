// SPDX-License-Identifier: Apache-2.0
// The optimizer step against a copy of the same bytes, measured in the same run: the ceiling of a memory-bound loop.
#include <benchmark/benchmark.h>

#include <cstring>
#include <vector>

#include "kernels/bf16.h"
#include "kernels/modular_momentum/modular_momentum.h"

namespace plumbline::kernels {
namespace {

// Reads gradient, moment, master; writes moment, master, weight.
template <typename T>
int64_t BytesPerElement() {
  return 5 * static_cast<int64_t>(sizeof(float)) + static_cast<int64_t>(sizeof(T));
}

template <typename T>
void BM_CopyOfTheSameBytes(benchmark::State& state) {
  const size_t half = static_cast<size_t>(state.range(0) * BytesPerElement<T>() / 2);
  std::vector<char> from(half), to(half);
  for (auto _ : state) {
    std::memcpy(to.data(), from.data(), half);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * state.range(0) * BytesPerElement<T>());
}

template <typename T>
void BM_ModularMomentumStep(benchmark::State& state) {
  std::vector<float> gradient(state.range(0), 5), moment(state.range(0)), master(state.range(0));
  std::vector<T> weight(state.range(0));
  int64_t t = 0;
  for (auto _ : state) {
    ModularMomentumStep<T>(++t, 1, gradient, moment, master, weight);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * state.range(0) * BytesPerElement<T>());
}

BENCHMARK_TEMPLATE(BM_CopyOfTheSameBytes, float)->Arg(2436)->Arg(1 << 20);
BENCHMARK_TEMPLATE(BM_ModularMomentumStep, float)->Arg(2436)->Arg(1 << 20);
BENCHMARK_TEMPLATE(BM_CopyOfTheSameBytes, BFloat16)->Arg(2436)->Arg(1 << 20);
BENCHMARK_TEMPLATE(BM_ModularMomentumStep, BFloat16)->Arg(2436)->Arg(1 << 20);

}  // namespace
}  // namespace plumbline::kernels
