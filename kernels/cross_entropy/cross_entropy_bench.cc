// SPDX-License-Identifier: Apache-2.0
// Cross-entropy against a copy of the bytes that it must move.
#include <vector>

#include "kernels/bf16.h"
#include "kernels/cross_entropy/cross_entropy.h"
#include "kernels/testing/copy_bench.h"

namespace plumbline::kernels {
namespace {

// Reads logits; writes their gradient.
template <typename T>
void BM_CrossEntropy(benchmark::State& state) {
  const int64_t tokens = state.range(0), vocab = state.range(1);
  std::vector<float> logits(tokens * vocab, 0.5f);
  std::vector<T> dlogits(tokens * vocab);
  const std::vector<int32_t> label(tokens, 0), weight(tokens, 1);
  const auto bytes = tokens * vocab * static_cast<int64_t>(sizeof(float) + sizeof(T));
  testing::MeasureAgainstCopy(state, bytes, [&] {
    benchmark::DoNotOptimize(CrossEntropy<T>(vocab, logits, label, weight, 0.5f, 1, std::span<T>(dlogits)));
  });
}

BENCHMARK_TEMPLATE(BM_CrossEntropy, float)->Args({64, 256})->Args({512, 8192});
BENCHMARK_TEMPLATE(BM_CrossEntropy, BFloat16)->Args({64, 256})->Args({512, 8192});

}  // namespace
}  // namespace plumbline::kernels
