// SPDX-License-Identifier: Apache-2.0
// CPU implementation of head_layout.h: copies of head_width elements.
#include "kernels/head_layout/head_layout.h"

#include <algorithm>
#include <cstddef>

#include "kernels/arguments.h"
#include "kernels/bf16.h"
#include "kernels/fp16.h"

namespace plumbline::kernels {
namespace {

void RequireSizes(const HeadSizes& sizes, size_t from_elems, size_t to_elems) {
  Require(sizes.samples >= 0 && sizes.positions >= 0 && sizes.heads >= 0 && sizes.head_width >= 0 && sizes.parts >= 0,
          "head_layout", "sizes must not be negative");
  const auto elems =
      static_cast<size_t>(sizes.parts * sizes.samples * sizes.positions * sizes.heads * sizes.head_width);
  Require(from_elems == elems && to_elems == elems, "head_layout", "an argument does not have the size of its shape");
}

// Calls copy(joined_offset, heads_offset) for each run of head_width contiguous elements.
template <typename Copy>
void ForEachRun(const HeadSizes& sizes, Copy copy) {
  int64_t joined = 0;
  for (int64_t sample = 0; sample < sizes.samples; ++sample) {
    for (int64_t position = 0; position < sizes.positions; ++position) {
      for (int64_t part = 0; part < sizes.parts; ++part) {
        for (int64_t head = 0; head < sizes.heads; ++head) {
          const int64_t matrix = (part * sizes.samples + sample) * sizes.heads + head;
          copy(joined, (matrix * sizes.positions + position) * sizes.head_width);
          joined += sizes.head_width;
        }
      }
    }
  }
}

}  // namespace

template <typename T>
void SplitHeads(const HeadSizes& sizes, std::span<const T> joined, std::span<T> heads) {
  RequireSizes(sizes, joined.size(), heads.size());
  ForEachRun(sizes,
             [&](int64_t from, int64_t to) { std::copy_n(joined.data() + from, sizes.head_width, heads.data() + to); });
}

template <typename T>
void JoinHeads(const HeadSizes& sizes, std::span<const T> heads, std::span<T> joined) {
  RequireSizes(sizes, heads.size(), joined.size());
  ForEachRun(sizes,
             [&](int64_t to, int64_t from) { std::copy_n(heads.data() + from, sizes.head_width, joined.data() + to); });
}

template void SplitHeads(const HeadSizes&, std::span<const float>, std::span<float>);
template void SplitHeads(const HeadSizes&, std::span<const BFloat16>, std::span<BFloat16>);
template void SplitHeads(const HeadSizes&, std::span<const Float16>, std::span<Float16>);
template void JoinHeads(const HeadSizes&, std::span<const float>, std::span<float>);
template void JoinHeads(const HeadSizes&, std::span<const BFloat16>, std::span<BFloat16>);
template void JoinHeads(const HeadSizes&, std::span<const Float16>, std::span<Float16>);

}  // namespace plumbline::kernels
