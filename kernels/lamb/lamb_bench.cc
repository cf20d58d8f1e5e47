// SPDX-License-Identifier: Apache-2.0
// Both passes of the LAMB update against a copy of the bytes that they must move.
#include <vector>

#include "kernels/bf16.h"
#include "kernels/lamb/lamb.h"
#include "kernels/testing/copy_bench.h"

namespace plumbline::kernels {
namespace {

// The first pass reads gradient, both moments, master, and writes both moments; the second reads both moments and
// master, and writes master and weight.
template <typename T>
void BM_LambStep(benchmark::State& state) {
  const auto size = static_cast<size_t>(state.range(0));
  std::vector<float> gradient(size, 0.1f), m(size), v(size), p(size, 1);
  std::vector<T> weight(size);
  LambOptions options;
  const auto bytes = static_cast<int64_t>(size * (10 * sizeof(float) + sizeof(T)));
  testing::MeasureAgainstCopy(state, bytes, [&] {
    SquareSum of_master, of_direction;
    LambMoments(options, 0, gradient, m, v, p, of_master, of_direction);
    LambStep<T>(options, 1e-3, m, v, p, std::span<T>(weight));
    ++options.t;
  });
}

BENCHMARK_TEMPLATE(BM_LambStep, float)->Arg(2304)->Arg(1 << 20);
BENCHMARK_TEMPLATE(BM_LambStep, BFloat16)->Arg(2304)->Arg(1 << 20);

}  // namespace
}  // namespace plumbline::kernels
