// SPDX-License-Identifier: Apache-2.0
// CPU implementation of modular_momentum.h: one plain loop.
#include "kernels/modular_momentum/modular_momentum.h"

#include <cstddef>

#include "kernels/arguments.h"
#include "kernels/bf16.h"
#include "kernels/fp16.h"
#include "kernels/modular_arithmetic.h"

namespace plumbline::kernels {

template <typename T>
void ModularMomentumStep(int64_t t, int64_t weight_bound, std::span<const float> gradient, std::span<float> moment,
                         std::span<float> master, std::span<T> weight) {
  const size_t n = gradient.size();
  Require(moment.size() == n && master.size() == n && weight.size() == n, "modular_momentum",
          "arguments must have the same size");
  Require(t >= 1, "modular_momentum", "the step counter must be at least 1");
  Require(weight_bound >= 1 && weight_bound <= (1 << 20), "modular_momentum", "the weight bound must be in [1, 2^20]");
  constexpr int64_t kMomentBound = 14;
  constexpr int64_t kMomentModulus = 2 * kMomentBound + 1;
  const int64_t master_modulus = 8 * (2 * weight_bound + 1);
  const double counter_for_moment = static_cast<double>(t % kMomentModulus);
  const double counter_for_master = static_cast<double>(t % master_modulus);
  for (size_t i = 0; i < n; ++i) {
    const double reduced_gradient = Mod(gradient[i], kMomentModulus);
    const double sum = moment[i] + reduced_gradient + counter_for_moment;
    const double new_moment = Mod(sum + kMomentBound, kMomentModulus) - kMomentBound;
    const double new_master = Mod(master[i] - new_moment - counter_for_master, static_cast<double>(master_modulus));
    moment[i] = static_cast<float>(new_moment);
    master[i] = static_cast<float>(new_master);
    weight[i] = FromFloat<T>(static_cast<float>(Floor(new_master / 8) - static_cast<double>(weight_bound)));
  }
}

template void ModularMomentumStep(int64_t, int64_t, std::span<const float>, std::span<float>, std::span<float>,
                                  std::span<float>);
template void ModularMomentumStep(int64_t, int64_t, std::span<const float>, std::span<float>, std::span<float>,
                                  std::span<BFloat16>);
template void ModularMomentumStep(int64_t, int64_t, std::span<const float>, std::span<float>, std::span<float>,
                                  std::span<Float16>);

}  // namespace plumbline::kernels
