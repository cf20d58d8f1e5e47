// SPDX-License-Identifier: Apache-2.0
// Equality with the truth, digest by digest, and the first place where it ends. No tolerance: a value that differs is a
// failure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "conformance/contract/model_spec.h"
#include "conformance/contract/trace.h"
#include "conformance/oracle/run_digest.h"
#include "reports/record/record.h"

namespace plumbline::conformance {

// The first difference in the order in which a step computes: tokens, loss, gradients, moments, master weights,
// weights.
struct Divergence {
  int64_t step = 0;
  std::string quantity;     // "tokens", "loss", "gradient", "moment", "master", "weight"
  std::string tensor;       // the first in canonical order; of gradients the last, where backward came first
  int64_t num_tensors = 0;  // that differ in this quantity and step
  std::string detail;       // both values
};

struct ExactResult {
  reports::CheckRecord check;  // "exact"; compared counts digests and scalars; vacuous if it is 0
  std::optional<Divergence> divergence;
};

ExactResult CompareExactly(const contract::ModelSpec& model, const RunDigest& truth, const RunDigest& candidate);

}  // namespace plumbline::conformance
