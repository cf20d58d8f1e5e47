// SPDX-License-Identifier: Apache-2.0
// A run as the oracle sees it: the digests of whole tensors, step by step, put together from the traces of all ranks.
// Putting them together checks the traces on the way: that they are complete, that slices cover each tensor, that
// replicas agree.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "conformance/contract/case_file.h"
#include "conformance/contract/digest.h"
#include "conformance/contract/model_spec.h"
#include "conformance/contract/trace.h"
#include "reports/record/record.h"

namespace plumbline::conformance {

struct StepDigest {
  double loss = 0;
  int64_t tokens = 0;
  std::optional<contract::RealStep> real;  // the real families
  // [TensorKind][tensor in canonical order]; empty where the optimizer keeps no such thing.
  std::vector<contract::Digest> tensors[contract::kNumTensorKinds];
};

struct RunDigest {
  std::vector<StepDigest> steps;
};

struct MergedRun {
  // "trace": files complete and of this case, slices cover every tensor, and every rank lists
  // whole what its ZeRO stage does not shard. "replicas": equal slices have equal digests,
  // and all ranks state the same loss and tokens. "collectives": the same sequence on all ranks.
  std::vector<reports::CheckRecord> checks;
  // Valid only where the trace check passes.
  RunDigest run;
};

// One trace per rank, in the order of ranks.
MergedRun MergeTraces(const contract::Case& spec, std::span<const contract::Trace> ranks);

}  // namespace plumbline::conformance
