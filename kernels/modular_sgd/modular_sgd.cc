// SPDX-License-Identifier: Apache-2.0
// CPU implementation of modular_sgd.h: one plain loop.
#include "kernels/modular_sgd/modular_sgd.h"

#include <cstddef>

#include "kernels/arguments.h"
#include "kernels/bf16.h"
#include "kernels/fp16.h"
#include "kernels/modular_arithmetic.h"

namespace plumbline::kernels {

template <typename T>
void ModularSgdStep(int64_t weight_bound, std::span<const float> gradient, std::span<float> master,
                    std::span<T> weight) {
  const size_t n = gradient.size();
  Require(master.size() == n && weight.size() == n, "modular_sgd", "arguments must have the same size");
  Require(weight_bound >= 1 && weight_bound <= (1 << 20), "modular_sgd", "the weight bound must be in [1, 2^20]");
  const double modulus = static_cast<double>(8 * (2 * weight_bound + 1));
  for (size_t i = 0; i < n; ++i) {
    const double new_master = Mod(master[i] - Mod(gradient[i], modulus), modulus);
    master[i] = static_cast<float>(new_master);
    weight[i] = FromFloat<T>(static_cast<float>(Floor(new_master / 8) - static_cast<double>(weight_bound)));
  }
}

template void ModularSgdStep(int64_t, std::span<const float>, std::span<float>, std::span<float>);
template void ModularSgdStep(int64_t, std::span<const float>, std::span<float>, std::span<BFloat16>);
template void ModularSgdStep(int64_t, std::span<const float>, std::span<float>, std::span<Float16>);

}  // namespace plumbline::kernels
