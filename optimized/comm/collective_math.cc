// SPDX-License-Identifier: Apache-2.0
// See collective_math.h. Sums go through a small block on the stack, so that no buffer is needed and an output may be a
// part of its own rank's input: a block is complete before it is stored.
#include "optimized/comm/collective_math.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>

#include "conformance/contract/error.h"
#include "kernels/bf16.h"
#include "kernels/fp16.h"

namespace plumbline::optimized {
namespace {

using contract::DType;

constexpr int64_t kBlockElems = 256;

float ToSum(float value) { return value; }
double ToSum(double value) { return value; }
float ToSum(kernels::BFloat16 value) { return kernels::ToFloat(value); }
float ToSum(kernels::Float16 value) { return kernels::ToFloat(value); }

void Store(float sum, float* target) { *target = sum; }
void Store(double sum, double* target) { *target = sum; }
void Store(float sum, kernels::BFloat16* target) { *target = kernels::FromFloat<kernels::BFloat16>(sum); }
void Store(float sum, kernels::Float16* target) { *target = kernels::FromFloat<kernels::Float16>(sum); }

// Calls store(i, sum over ranks of inputs[rank][i]) for i in [begin, end).
template <typename T, typename StoreSum>
void SumInRankOrder(const std::vector<Buffer>& inputs, int64_t begin, int64_t end, StoreSum store) {
  std::array<decltype(ToSum(T{})), kBlockElems> sums;
  for (int64_t block = begin; block < end; block += kBlockElems) {
    const int64_t n = std::min(kBlockElems, end - block);
    for (size_t rank = 0; rank < inputs.size(); ++rank) {
      const T* source = static_cast<const T*>(inputs[rank].data) + block;
      for (int64_t i = 0; i < n; ++i) sums[i] = rank == 0 ? ToSum(source[i]) : sums[i] + ToSum(source[i]);
    }
    for (int64_t i = 0; i < n; ++i) store(block + i, sums[i]);
  }
}

template <typename T>
void AllReduceTyped(const std::vector<Buffer>& buffers) {
  SumInRankOrder<T>(buffers, 0, buffers.front().elems, [&](int64_t i, auto sum) {
    for (const Buffer& buffer : buffers) Store(sum, static_cast<T*>(buffer.data) + i);
  });
}

template <typename T>
void ReduceScatterTyped(const std::vector<Buffer>& inputs, const std::vector<Buffer>& outputs) {
  const int64_t part_elems = outputs.front().elems;
  for (size_t rank = 0; rank < outputs.size(); ++rank) {
    const int64_t begin = static_cast<int64_t>(rank) * part_elems;
    T* output = static_cast<T*>(outputs[rank].data);
    SumInRankOrder<T>(inputs, begin, begin + part_elems,
                      [&](int64_t i, auto sum) { Store(sum, output + (i - begin)); });
  }
}

}  // namespace

void AllReduceMemory(const std::vector<Buffer>& buffers) {
  switch (buffers.front().dtype) {
    case DType::kF32:
      return AllReduceTyped<float>(buffers);
    case DType::kBF16:
      return AllReduceTyped<kernels::BFloat16>(buffers);
    case DType::kF16:
      return AllReduceTyped<kernels::Float16>(buffers);
    case DType::kF64:
      return AllReduceTyped<double>(buffers);
    default:
      contract::Check(false, "collectives sum F32, BF16, F16 and F64");
  }
}

void ReduceScatterMemory(const std::vector<Buffer>& inputs, const std::vector<Buffer>& outputs) {
  switch (inputs.front().dtype) {
    case DType::kF32:
      return ReduceScatterTyped<float>(inputs, outputs);
    case DType::kBF16:
      return ReduceScatterTyped<kernels::BFloat16>(inputs, outputs);
    case DType::kF16:
      return ReduceScatterTyped<kernels::Float16>(inputs, outputs);
    case DType::kF64:
      return ReduceScatterTyped<double>(inputs, outputs);
    default:
      contract::Check(false, "collectives sum F32, BF16, F16 and F64");
  }
}

void AllGatherMemory(const std::vector<Buffer>& inputs, const std::vector<Buffer>& outputs) {
  for (const Buffer& output : outputs) {
    auto* target = static_cast<std::byte*>(output.data);
    for (const Buffer& input : inputs) {
      if (input.elems == 0) continue;  // whose data may be null, which memmove forbids
      // In place, a rank's part is its own input already; memmove accepts that.
      std::memmove(target, input.data, static_cast<size_t>(input.size_bytes()));
      target += input.size_bytes();
    }
  }
}

}  // namespace plumbline::optimized
