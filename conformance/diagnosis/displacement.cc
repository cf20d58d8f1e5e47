// SPDX-License-Identifier: Apache-2.0
#include "conformance/diagnosis/displacement.h"

#include <algorithm>

namespace plumbline::conformance {
namespace {

// Moves by more than this are not tried: layouts shift by alignments, parts and single elements.
constexpr int64_t kMaxShift = 64;

// Every part reads from `offset_of(part index)` further on.
template <typename OffsetOf>
Displacement MoveParts(const Evidence& evidence, std::string what, OffsetOf offset_of) {
  const auto numel = static_cast<int64_t>(evidence.truth.size());
  Displacement displacement{std::move(what), std::vector<int64_t>(evidence.truth.size(), -1)};
  for (size_t part = 0; part < evidence.held.size(); ++part) {
    const HeldRange& range = evidence.held[part];
    const int64_t offset = offset_of(part);
    for (int64_t i = range.begin; i < range.end; ++i) {
      const int64_t source = i + offset;
      if (source >= 0 && source < numel) displacement.source[static_cast<size_t>(i)] = source;
    }
  }
  return displacement;
}

bool IsIdentity(const Displacement& displacement) {
  for (size_t i = 0; i < displacement.source.size(); ++i) {
    const int64_t source = displacement.source[i];
    if (source >= 0 && source != static_cast<int64_t>(i)) return false;
  }
  return true;
}

}  // namespace

std::vector<Displacement> Displacements(const Evidence& evidence) {
  std::vector<Displacement> all;
  const auto& held = evidence.held;
  const auto numel = static_cast<int64_t>(evidence.truth.size());
  all.push_back(MoveParts(evidence, "each part is read from the beginning of the tensor",
                          [&](size_t part) { return -held[part].begin; }));
  for (size_t by = 1; by < held.size(); ++by) {
    all.push_back(MoveParts(evidence, "each part is that of the rank " + std::to_string(by) + " after it",
                            [&](size_t part) { return held[(part + by) % held.size()].begin - held[part].begin; }));
  }
  for (int64_t by = 1; by <= std::min(kMaxShift, numel / 2); ++by) {
    for (int64_t offset : {by, -by}) {
      Displacement moved =
          MoveParts(evidence, "displaced by " + std::to_string(offset) + " elements", [&](size_t) { return offset; });
      moved.num_fitted = 1;
      all.push_back(std::move(moved));
    }
  }
  std::erase_if(all, IsIdentity);
  return all;
}

Values Displaced(const Values& values, const Displacement& displacement) {
  Values moved = values;
  for (size_t i = 0; i < displacement.source.size() && i < moved.size(); ++i) {
    const int64_t source = displacement.source[i];
    if (source >= 0) moved[i] = values[static_cast<size_t>(source)];
  }
  return moved;
}

}  // namespace plumbline::conformance
