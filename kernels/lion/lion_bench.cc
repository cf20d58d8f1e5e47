// SPDX-License-Identifier: Apache-2.0
// The Lion update against a copy of the bytes that it must move.
#include <vector>

#include "kernels/bf16.h"
#include "kernels/lion/lion.h"
#include "kernels/testing/copy_bench.h"

namespace plumbline::kernels {
namespace {

// Reads gradient, moment, master; writes moment, master, weight.
template <typename T>
void BM_LionStep(benchmark::State& state) {
  const auto size = static_cast<size_t>(state.range(0));
  std::vector<float> gradient(size), m(size), p(size);
  for (size_t i = 0; i < size; ++i) gradient[i] = i % 3 == 0 ? 0.1f : -0.1f;  // signs that no branch predicts for free
  std::vector<T> weight(size);
  const auto bytes = static_cast<int64_t>(size * (5 * sizeof(float) + sizeof(T)));
  testing::MeasureAgainstCopy(state, bytes, [&] { LionStep<T>({}, gradient, m, p, std::span<T>(weight)); });
}

BENCHMARK_TEMPLATE(BM_LionStep, float)->Arg(2304)->Arg(1 << 20);
BENCHMARK_TEMPLATE(BM_LionStep, BFloat16)->Arg(2304)->Arg(1 << 20);

}  // namespace
}  // namespace plumbline::kernels
