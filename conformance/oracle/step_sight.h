// SPDX-License-Identifier: Apache-2.0
// One step of one run of a real family as it was seen: whole tensors, put together from all ranks' dumps, and the
// numbers of the trace. Reading them checks them: complete, covering, of the right type and shape, equal on all ranks.
// Whether the values are right is not judged here.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "conformance/contract/case_file.h"
#include "conformance/contract/dtype.h"
#include "conformance/contract/trace.h"
#include "reports/record/record.h"

namespace plumbline::conformance {

struct StepSight {
  int64_t step = 0;
  double loss = 0;
  int64_t tokens = 0;
  contract::RealStep real;
  // Of the working weights as they were dumped: kF32, kBF16 or kF16, or kF64 of an engine that computes in fp64
  // throughout.
  contract::DType storage = contract::DType::kF32;
  // [TensorKind][canonical tensor], row-major; an absent one (moments that the optimizer does not keep, everything but
  // weights and master weights of a frozen parameter) is empty. Every type that is dumped is exact in fp64.
  std::vector<std::vector<double>> tensors[contract::kNumTensorKinds];

  const std::vector<std::vector<double>>& of(contract::TensorKind kind) const {
    return tensors[static_cast<int>(kind)];
  }
  std::vector<std::vector<double>>& of(contract::TensorKind kind) { return tensors[static_cast<int>(kind)]; }
};

struct SightResult {
  reports::CheckRecord check;      // "dump"; compared counts elements of the whole tensors, and of their replicas
  std::optional<StepSight> sight;  // present if the check passes
};

// Reads OUT_DIR/rankR/trace.jsonl and tensors-SSSSSS.safetensors of every rank of the case. Whatever is malformed,
// missing, not covering, of another type or shape, or differs between ranks (a bit of a replica; loss, tokens, lr,
// norm, skipped) is a failure of the check, never an exception.
SightResult SeeStep(const contract::Case& spec, const std::filesystem::path& out_dir, int64_t step);

}  // namespace plumbline::conformance
