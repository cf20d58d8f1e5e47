// SPDX-License-Identifier: Apache-2.0
// Whether equality of bits may be demanded of a case, and whether it would have shown a wrong unit: certificate,
// liveness and amplification of the truth. Where one of them fails the case is VACUOUS. Levels: docs/exact-family.md,
// "Certificate".
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "conformance/contract/dtype.h"
#include "conformance/contract/tensor_file.h"
#include "conformance/contract/trace.h"
#include "reports/record/record.h"

namespace plumbline::conformance {

inline constexpr double kMinLiveShare = 0.4;        // of non-zero gradients and of moving weights, mean over the run
inline constexpr double kMinAmplification = 0.4;    // of weights that differ in the end after one unit was added
inline constexpr int64_t kMinAmplifyingSteps = 40;  // between the added unit and the end

// "certificate": no operation of an engine with this storage can have rounded, and one that keeps gradients in the
// storage type instead of fp32 would show. `loss_scale` is 1 but for fp16.
reports::CheckRecord CheckCertificate(const contract::Certificate& certificate, contract::DType storage,
                                      int64_t loss_scale);

// "liveness".
reports::CheckRecord CheckLiveness(const contract::Certificate& certificate);

// The share of weights that differ between two dumps of the same step. Dumps with other tensors or shapes are refused
// (InvalidArgument): they would count as a difference, and so as sensitivity.
struct Amplification {
  std::string kind;  // what the unit was added to
  int64_t differing = 0;
  int64_t total = 0;
  double share() const { return total == 0 ? 0 : static_cast<double>(differing) / static_cast<double>(total); }
};
Amplification MeasureAmplification(const std::string& kind, const contract::TensorFile& truth,
                                   const contract::TensorFile& perturbed);

// "amplification"; `steps` lie between the added unit and the dump.
reports::CheckRecord CheckAmplification(const std::vector<Amplification>& measured, int64_t steps);

}  // namespace plumbline::conformance
