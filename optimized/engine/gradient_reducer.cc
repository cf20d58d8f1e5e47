// SPDX-License-Identifier: Apache-2.0
// See gradient_reducer.h. Whole gradients of what is reduced in every micro-batch exist only for one: the next one
// overwrites them, so its backward must not begin before every reduction of this one is done (EndMicroBatch waits).
#include "optimized/engine/gradient_reducer.h"

#include <string>

#include "kernels/accumulate/accumulate.h"

namespace plumbline::optimized {
namespace {

using contract::DType;

constexpr int kGradientStream = 1;

// The rank's parts of the first so many buckets.
FlatBuffer Parts(const ReducerInputs& inputs, int64_t num_buckets, MemoryCategory category) {
  return FlatBuffer(inputs.backend, inputs.shard.ElemsOfFirst(num_buckets), DType::kF32, category);
}

}  // namespace

GradientReducer::GradientReducer(const ReducerInputs& inputs)
    : inputs_(inputs),
      whole_(inputs.backend, inputs.buckets.total_elems, DType::kF32, MemoryCategory::kGradients),
      accumulated_(Parts(inputs, inputs.staged.num_sharded, MemoryCategory::kGradients)),
      arriving_(
          Parts(inputs, inputs.accumulates ? inputs.staged.num_reduced_each_time : 0, MemoryCategory::kCommunication)),
      tracker_(inputs.buckets),
      modes_(inputs.buckets.places.size(), WriteMode::kAssign) {}

std::vector<float*> GradientReducer::ParameterGradients() const {
  std::vector<float*> gradients;
  for (const ParameterPlace& place : inputs_.buckets.places) {
    const bool is_frozen = place.bucket == kNoBucket;
    gradients.push_back(is_frozen ? nullptr : whole_.Span<float>(place.flat_offset, place.numel).data());
  }
  return gradients;
}

std::span<const WriteMode> GradientReducer::BeginMicroBatch(bool is_first, bool is_last) {
  is_first_ = is_first;
  is_last_ = is_last;
  tracker_.BeginMicroBatch();
  for (size_t parameter = 0; parameter < modes_.size(); ++parameter) {
    const bool begins = is_first || IsReducedEachTime(inputs_.buckets.places[parameter].bucket);
    modes_[parameter] = begins ? WriteMode::kAssign : WriteMode::kAccumulate;
  }
  return modes_;
}

void GradientReducer::Ready(int64_t parameter) {
  const int64_t bucket = tracker_.Ready(parameter);
  if (bucket < 0) return;
  const bool is_due = is_last_ || IsReducedEachTime(bucket);
  if (!is_due) return;
  in_flight_.emplace_back(bucket, Post(bucket));
  if (!inputs_.overlap) FinishReductions();
}

void GradientReducer::EndMicroBatch() {
  tracker_.EndMicroBatch();
  FinishReductions();
}

std::span<float> GradientReducer::Complete(const ShardSlice& slice) const {
  return IsSharded(inputs_.buckets.places[slice.parameter].bucket)
             ? accumulated_.Span<float>(slice.shard_offset, slice.elems())
             : whole_.Span<float>(slice.flat_offset, slice.elems());
}

Buffer GradientReducer::WholeBucket(int64_t bucket) const {
  return whole_.Range(inputs_.buckets.buckets[bucket].flat_offset, inputs_.buckets.buckets[bucket].padded_elems);
}

CallOptions GradientReducer::Options(int64_t bucket) const {
  return {"gradient bucket " + std::to_string(bucket), inputs_.timeout, kGradientStream};
}

Buffer GradientReducer::Part(int64_t bucket, const FlatBuffer& parts) const {
  const BucketShard& part = inputs_.shard.buckets.at(bucket);
  return parts.Range(part.shard_offset, part.elems);
}

Handle GradientReducer::Post(int64_t bucket) {
  if (!IsSharded(bucket)) return inputs_.communicator.AllReduce(WholeBucket(bucket), Options(bucket));
  const Buffer part = Part(bucket, ArrivesApart(bucket) ? arriving_ : accumulated_);
  return inputs_.communicator.ReduceScatter(WholeBucket(bucket), part, Options(bucket));
}

void GradientReducer::FinishReductions() {
  for (auto& [bucket, handle] : in_flight_) {
    handle.Wait();
    if (ArrivesApart(bucket)) AddArrived(bucket);
  }
  in_flight_.clear();
}

void GradientReducer::AddArrived(int64_t bucket) {
  const BucketShard& part = inputs_.shard.buckets[bucket];
  kernels::Accumulate<float>(arriving_.Span<const float>(part.shard_offset, part.elems),
                             accumulated_.Span<float>(part.shard_offset, part.elems));
}

}  // namespace plumbline::optimized
