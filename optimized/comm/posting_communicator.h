// SPDX-License-Identifier: Apache-2.0
// What implementations of Communicator share: arguments are checked, and every collective becomes one Post with the
// signature that all ranks must agree on, and with the same words for it. It moves nothing.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "optimized/comm/communicator.h"

namespace plumbline::optimized {

// What all ranks must agree on.
struct Signature {
  CollectiveKind kind = CollectiveKind::kBarrier;
  contract::DType dtype = contract::DType::kF32;
  int64_t input_elems = 0;
  std::string tag;

  friend bool operator==(const Signature&, const Signature&) = default;
};

// all_reduce of 6 F32 "bucket 3"
std::string Text(const Signature& call);

// A call as one rank makes it.
struct RankCall {
  int64_t rank = 0;
  Signature signature;
};

// "collective mismatch in call 3 of stream 0: rank 0 calls ..., rank 1 calls ..."
std::string MismatchText(int64_t number, int stream, const RankCall& one, const RankCall& other);

// "all_reduce of 6 F32 "t" timed out after 20 s; missing ranks: 1, 3"
std::string TimeoutText(const Signature& call, const CallOptions& options, const std::vector<bool>& arrived);

// "1, 3": those that are false.
std::string MissingRanks(const std::vector<bool>& arrived);

class PostingCommunicator : public Communicator {
 public:
  Handle AllReduce(const Buffer& buffer, const CallOptions& options) final;
  Handle ReduceScatter(const Buffer& input, const Buffer& output, const CallOptions& options) final;
  Handle AllGather(const Buffer& input, const Buffer& output, const CallOptions& options) final;
  Handle Barrier(const CallOptions& options) final;

 protected:
  // Must not wait. Sizes fit and the type can be summed where the kind sums.
  virtual Handle Post(const Signature& signature, const Buffer& input, const Buffer& output,
                      const CallOptions& options) = 0;

 private:
  Handle PostMarked(CollectiveKind kind, const Buffer& input, const Buffer& output, const CallOptions& options);
  void RequireParts(const Buffer& whole, const Buffer& part, CollectiveKind kind) const;
  void RequireSummable(const Buffer& buffer, CollectiveKind kind) const;
};

// The name of the range that a timeline shows for a call, posting and waiting.
const char* RangeName(CollectiveKind kind);

}  // namespace plumbline::optimized
