// SPDX-License-Identifier: Apache-2.0
// Layer normalisation against a copy of the bytes that it must move.
#include <vector>

#include "kernels/bf16.h"
#include "kernels/layer_norm/layer_norm.h"
#include "kernels/testing/copy_bench.h"

namespace plumbline::kernels {
namespace {

template <typename T>
struct Memory {
  explicit Memory(const benchmark::State& state)
      : sizes{state.range(0), state.range(1)},
        x(sizes.rows * sizes.width, FromFloat<T>(0.5f)),
        y(x),
        weight(sizes.width, FromFloat<T>(1.0f)),
        mean(sizes.rows, 0.25f),
        rstd(sizes.rows, 1.0f),
        dweight(sizes.width),
        dbias(sizes.width) {}

  int64_t MatrixBytes() const { return static_cast<int64_t>(x.size() * sizeof(T)); }

  LayerNormSizes sizes;
  std::vector<T> x, y, weight;
  std::vector<float> mean, rstd, dweight, dbias;
};

// Reads x; writes y.
template <typename T>
void BM_LayerNormForward(benchmark::State& state) {
  Memory<T> m(state);
  testing::MeasureAgainstCopy(state, 2 * m.MatrixBytes(), [&] {
    LayerNormForward<T>(m.sizes, m.x, m.weight, m.weight, 1e-5f, m.y, m.mean, m.rstd);
  });
}

// Reads dy, x; writes dx.
template <typename T>
void BM_LayerNormBackward(benchmark::State& state) {
  Memory<T> m(state);
  testing::MeasureAgainstCopy(state, 3 * m.MatrixBytes(),
                              [&] { LayerNormBackward<T>(m.sizes, m.y, m.x, m.weight, m.mean, m.rstd, {}, m.y); });
}

// Reads dy, x.
template <typename T>
void BM_LayerNormWeightBackward(benchmark::State& state) {
  Memory<T> m(state);
  testing::MeasureAgainstCopy(state, 2 * m.MatrixBytes(), [&] {
    LayerNormWeightBackward<T>(m.sizes, m.y, m.x, m.mean, m.rstd, m.dweight, m.dbias);
  });
}

BENCHMARK_TEMPLATE(BM_LayerNormForward, float)->Args({64, 48})->Args({4096, 768});
BENCHMARK_TEMPLATE(BM_LayerNormForward, BFloat16)->Args({64, 48})->Args({4096, 768});
BENCHMARK_TEMPLATE(BM_LayerNormBackward, float)->Args({64, 48})->Args({4096, 768});
BENCHMARK_TEMPLATE(BM_LayerNormBackward, BFloat16)->Args({64, 48})->Args({4096, 768});
BENCHMARK_TEMPLATE(BM_LayerNormWeightBackward, float)->Args({64, 48})->Args({4096, 768});

}  // namespace
}  // namespace plumbline::kernels
