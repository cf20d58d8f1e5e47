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

// What a rank states or holds otherwise than the first rank that does: the replicas check fails then, and this says
// what was wrong in which step.
struct RankScalars {
  int64_t rank = 0;
  double loss = 0;
  int64_t tokens = 0;
  std::optional<contract::RealStep> real;
};
struct RankDigest {
  int64_t rank = 0;
  contract::TensorKind kind = contract::TensorKind::kGradient;
  size_t tensor = 0;
  contract::Digest digest;  // of the whole tensor, with this rank's slice in the first one's place
};

struct StepDigest {
  int64_t step = 0;
  double loss = 0;
  int64_t tokens = 0;
  std::optional<contract::RealStep> real;  // the real families
  // [TensorKind][tensor in canonical order]; empty where the optimizer keeps no such thing, and the digest of nothing
  // for what a frozen parameter does not have.
  std::vector<contract::Digest> tensors[contract::kNumTensorKinds];
  std::vector<RankScalars> other_scalars;
  std::vector<RankDigest> other_digests;
};

struct RunDigest {
  std::vector<StepDigest> steps;

  std::vector<double> Losses() const;  // one a step
};

struct MergedRun {
  // "trace": files complete and of this case, slices cover every tensor, and every rank lists whole what its ZeRO stage
  // does not shard, and no other rank's part of what it does. "replicas": equal slices have equal digests, and all
  // ranks state the same loss, tokens, lr, norm and skipped. "collectives": the same sequence on all ranks.
  std::vector<reports::CheckRecord> checks;
  // Valid only where the trace check passes.
  RunDigest run;
};

// One trace per rank, in the order of ranks. The traces of a case that resumes begin where they were saved.
MergedRun MergeTraces(const contract::Case& spec, std::span<const contract::Trace> ranks);

}  // namespace plumbline::conformance
