// SPDX-License-Identifier: Apache-2.0
// The AdamW update against a copy of the bytes that it must move.
#include <vector>

#include "kernels/adamw/adamw.h"
#include "kernels/bf16.h"
#include "kernels/testing/copy_bench.h"

namespace plumbline::kernels {
namespace {

// Reads gradient, both moments, master; writes both moments, master, weight.
template <typename T>
void BM_AdamWStep(benchmark::State& state) {
  const auto size = static_cast<size_t>(state.range(0));
  std::vector<float> gradient(size, 0.1f), m(size), v(size), p(size);
  std::vector<T> weight(size);
  AdamWOptions options;
  const auto bytes = static_cast<int64_t>(size * (7 * sizeof(float) + sizeof(T)));
  testing::MeasureAgainstCopy(state, bytes, [&] {
    AdamWStep<T>(options, gradient, m, v, p, std::span<T>(weight));
    ++options.t;
  });
}

BENCHMARK_TEMPLATE(BM_AdamWStep, float)->Arg(2304)->Arg(1 << 20);
BENCHMARK_TEMPLATE(BM_AdamWStep, BFloat16)->Arg(2304)->Arg(1 << 20);

}  // namespace
}  // namespace plumbline::kernels
