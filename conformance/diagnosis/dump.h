// SPDX-License-Identifier: Apache-2.0
// The tensors that a run dumped, rank by rank, for diagnosis: nothing is judged, and ranks may hold different things.
// (What a dump must be like is the business of conformance/oracle/step_sight.h.)
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "conformance/contract/case_file.h"
#include "conformance/contract/trace.h"
#include "conformance/diagnosis/evidence.h"

namespace plumbline::conformance {

struct DumpedSlice {
  int64_t rank = 0;
  int64_t begin = 0;
  Values values;
  uint64_t hash = 0;  // of its elements, as a trace states it (contract/digest.h)
};

struct Dump {
  // [kind][canonical tensor], in the order of begin, then of rank; empty where nothing was dumped.
  std::vector<std::vector<DumpedSlice>> slices[contract::kNumTensorKinds];
  std::vector<contract::StepRecord> records;  // of the step, by rank

  const std::vector<DumpedSlice>& of(contract::TensorKind kind, size_t tensor) const {
    return slices[static_cast<int>(kind)][tensor];
  }
};

// OUT_DIR/rankR/tensors-SSSSSS.safetensors, and the step's record in trace.jsonl, of every rank of the case; integers
// and floats alike become doubles. contract::Error for a file that is missing or malformed; slices of unknown names, or
// that begin outside of their tensor, are left out.
Dump ReadDump(const contract::Case& spec, const std::filesystem::path& out_dir, int64_t step);

struct HeldTensor {
  Values values;
  std::vector<HeldRange> held;
};

// The whole tensor; where several ranks hold the same slice, that of the rank that is farthest from `truth` (of equal
// ones, the first rank's), so that a rank that is wrong alone is what is looked at. With an empty truth, the first
// rank's. Nothing unless the slices cover [0, numel) without overlap.
std::optional<HeldTensor> Assemble(const std::vector<DumpedSlice>& slices, int64_t numel, const Values& truth);

// Its values, with an empty truth; none where it is not whole.
Values WholeTensor(const std::vector<DumpedSlice>& slices, int64_t numel);

// The first kind and tensor, in the order in which a step computes (of gradients the last one), of which two ranks hold
// the same slice with other values.
struct Disagreement {
  contract::TensorKind kind = contract::TensorKind::kGradient;
  size_t tensor = 0;
};
std::optional<Disagreement> FirstDisagreement(const Dump& dump);

// Ranks that hold something that differs from the truth by more than `tolerance` in an element, ascending.
std::vector<int64_t> DifferingRanks(const std::vector<DumpedSlice>& slices, const Values& truth, double tolerance);

// Ranks whose trace states another digest of the tensor called `name` than their dump has, ascending.
std::vector<int64_t> RanksOfOtherTrace(const Dump& dump, contract::TensorKind kind, size_t tensor,
                                       const std::string& name);

// The norm of all gradients, or of those that count; parts that several ranks hold count once. And of what each rank
// holds of all of them.
double GradientNorm(const Dump& dump, const std::function<bool(size_t tensor)>& counts = nullptr);
std::vector<double> RankGradientNorms(const Dump& dump, int64_t num_ranks);

}  // namespace plumbline::conformance
