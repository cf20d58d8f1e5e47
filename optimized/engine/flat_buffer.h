// SPDX-License-Identifier: Apache-2.0
// One allocation whose slices are tensors, as plans lay them out: whole buckets, or one shard of each. It knows
// offsets, not parameters. Elements that nobody writes (padding) stay NaN.
#pragma once

#include <cstdint>
#include <span>

#include "conformance/contract/dtype.h"
#include "conformance/contract/error.h"
#include "optimized/backend/backend.h"
#include "optimized/comm/communicator.h"

namespace plumbline::optimized {

class FlatBuffer {
 public:
  FlatBuffer(Backend& backend, int64_t elems, contract::DType dtype, MemoryCategory category)
      : storage_(backend.Allocate(elems * contract::SizeBytes(dtype), category)), elems_(elems), dtype_(dtype) {}

  contract::DType dtype() const { return dtype_; }

  // Elements [offset, offset + elems) as memory for a collective.
  Buffer Range(int64_t offset, int64_t elems) const {
    contract::Check(offset >= 0 && elems >= 0 && offset + elems <= elems_, "a range lies inside its flat buffer");
    return {storage_.data() + offset * contract::SizeBytes(dtype_), elems, dtype_};
  }

  // The same, typed; T must have the size of the buffer's type.
  template <typename T>
  std::span<T> Span(int64_t offset, int64_t elems) const {
    contract::Check(sizeof(T) == static_cast<size_t>(contract::SizeBytes(dtype_)), "a span has its buffer's type");
    return {static_cast<T*>(Range(offset, elems).data), static_cast<size_t>(elems)};
  }

 private:
  Storage storage_;
  int64_t elems_;
  contract::DType dtype_;
};

}  // namespace plumbline::optimized
