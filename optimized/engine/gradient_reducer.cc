// SPDX-License-Identifier: Apache-2.0
// See gradient_reducer.h. What the three stages share: whole buckets that backward writes, and posting a bucket when it
// is full. They differ in what is posted, when, and where the result lies.
//
// Members that hold handles are declared after the buffers that the calls use: they are destroyed first, and destroying
// a handle makes sure that no other rank touches those buffers any more.
#include "optimized/engine/gradient_reducer.h"

#include <string>
#include <utility>

#include "conformance/contract/instrumentation.h"
#include "kernels/accumulate/accumulate.h"
#include "optimized/engine/bucket_tracker.h"
#include "optimized/engine/flat_buffer.h"

namespace plumbline::optimized {
namespace {

using contract::DType;

constexpr int kGradientStream = 1;

class BucketedReducer : public GradientReducer {
 public:
  explicit BucketedReducer(const ReducerInputs& inputs)
      : inputs_(inputs),
        whole_(inputs.backend, inputs.buckets.total_elems, DType::kF32, MemoryCategory::kGradients),
        tracker_(inputs.buckets) {}

  std::vector<float*> ParameterGradients() const override {
    std::vector<float*> gradients;
    for (const ParameterPlace& place : inputs_.buckets.places) {
      const bool is_frozen = place.bucket == kNoBucket;
      gradients.push_back(is_frozen ? nullptr : whole_.Span<float>(place.flat_offset, place.numel).data());
    }
    return gradients;
  }

 protected:
  Buffer WholeBucket(int64_t bucket) const {
    return whole_.Range(inputs_.buckets.buckets[bucket].flat_offset, inputs_.buckets.buckets[bucket].padded_elems);
  }

  CallOptions Options(int64_t bucket) const {
    return {"gradient bucket " + std::to_string(bucket), inputs_.timeout, kGradientStream};
  }

  const ReducerInputs inputs_;
  const FlatBuffer whole_;
  BucketTracker tracker_;
};

// Stages 0 and 1: nothing is communicated before the last micro-batch.
class OncePerStepReducer : public BucketedReducer {
 public:
  using BucketedReducer::BucketedReducer;

  WriteMode BeginMicroBatch(bool is_first, bool is_last) override {
    is_last_ = is_last;
    tracker_.BeginMicroBatch();
    return is_first ? WriteMode::kAssign : WriteMode::kAccumulate;
  }

  void Ready(int64_t parameter) override {
    const int64_t bucket = tracker_.Ready(parameter);
    if (bucket < 0 || !is_last_) return;
    in_flight_.push_back(Post(bucket));
    if (!inputs_.overlap) in_flight_.back().Wait();
  }

  void EndMicroBatch() override {
    tracker_.EndMicroBatch();
    for (Handle& handle : in_flight_) handle.Wait();
    in_flight_.clear();
  }

 protected:
  virtual Handle Post(int64_t bucket) = 0;

  bool is_last_ = false;
  std::vector<Handle> in_flight_;
};

class AllReduceReducer final : public OncePerStepReducer {
 public:
  using OncePerStepReducer::OncePerStepReducer;

  std::span<float> Complete(const ShardSlice& slice) const override {
    return whole_.Span<float>(slice.flat_offset, slice.elems());
  }

 private:
  Handle Post(int64_t bucket) override { return inputs_.communicator.AllReduce(WholeBucket(bucket), Options(bucket)); }
};

// The shard is declared in a base of its own, so that it outlives the handles of OncePerStepReducer.
struct GradientShard {
  GradientShard(const ReducerInputs& inputs, MemoryCategory category, bool is_used = true)
      : memory(inputs.backend, is_used ? inputs.shard.total_elems : 0, DType::kF32, category), plan(inputs.shard) {}

  Buffer OfBucket(int64_t bucket) const {
    return memory.Range(plan.buckets[bucket].shard_offset, plan.buckets[bucket].elems);
  }

  std::span<float> Of(const ShardSlice& slice) const { return memory.Span<float>(slice.shard_offset, slice.elems()); }

  FlatBuffer memory;
  const ShardPlan& plan;
};

class ReduceScatterReducer final : private GradientShard, public OncePerStepReducer {
 public:
  explicit ReduceScatterReducer(const ReducerInputs& inputs)
      : GradientShard(inputs, MemoryCategory::kGradients), OncePerStepReducer(inputs) {}

  std::span<float> Complete(const ShardSlice& slice) const override { return Of(slice); }

 private:
  Handle Post(int64_t bucket) override {
    return inputs_.communicator.ReduceScatter(WholeBucket(bucket), OfBucket(bucket), Options(bucket));
  }
};

// Whole gradients exist only for one micro-batch: the next one overwrites them, so its backward must not begin before
// every reduction of this one is done (EndMicroBatch waits).
class ShardedGradientReducer final : public BucketedReducer {
 public:
  explicit ShardedGradientReducer(const ReducerInputs& inputs)
      : BucketedReducer(inputs),
        accumulated_(inputs, MemoryCategory::kGradients),
        arriving_(inputs, MemoryCategory::kCommunication, inputs.accumulates) {}

  WriteMode BeginMicroBatch(bool is_first, bool) override {
    is_first_ = is_first;
    tracker_.BeginMicroBatch();
    return WriteMode::kAssign;
  }

  void Ready(int64_t parameter) override {
    const int64_t bucket = tracker_.Ready(parameter);
    if (bucket < 0) return;
    const Buffer target = is_first_ ? accumulated_.OfBucket(bucket) : arriving_.OfBucket(bucket);
    in_flight_.emplace_back(bucket, inputs_.communicator.ReduceScatter(WholeBucket(bucket), target, Options(bucket)));
    if (!inputs_.overlap) FinishReductions();
  }

  void EndMicroBatch() override {
    tracker_.EndMicroBatch();
    FinishReductions();
  }

  std::span<float> Complete(const ShardSlice& slice) const override { return accumulated_.Of(slice); }

 private:
  void FinishReductions() {
    for (auto& [bucket, handle] : in_flight_) {
      handle.Wait();
      if (!is_first_) AddArrived(bucket);
    }
    in_flight_.clear();
  }

  void AddArrived(int64_t bucket) {
    const BucketShard& part = inputs_.shard.buckets[bucket];
    kernels::Accumulate<float>(arriving_.memory.Span<const float>(part.shard_offset, part.elems),
                               accumulated_.memory.Span<float>(part.shard_offset, part.elems));
  }

  GradientShard accumulated_;
  GradientShard arriving_;
  bool is_first_ = true;
  std::vector<std::pair<int64_t, Handle>> in_flight_;
};

}  // namespace

std::unique_ptr<GradientReducer> MakeAllReduceReducer(const ReducerInputs& inputs) {
  return std::make_unique<AllReduceReducer>(inputs);
}

std::unique_ptr<GradientReducer> MakeReduceScatterReducer(const ReducerInputs& inputs) {
  return std::make_unique<ReduceScatterReducer>(inputs);
}

std::unique_ptr<GradientReducer> MakeShardedGradientReducer(const ReducerInputs& inputs) {
  return std::make_unique<ShardedGradientReducer>(inputs);
}

}  // namespace plumbline::optimized
