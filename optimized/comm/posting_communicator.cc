// SPDX-License-Identifier: Apache-2.0
// See posting_communicator.h.
#include "optimized/comm/posting_communicator.h"

#include "conformance/contract/error.h"
#include "conformance/contract/instrumentation.h"

namespace plumbline::optimized {
namespace {

using contract::ErrorCode;

std::string Where(CollectiveKind kind, int64_t rank) {
  return std::string(Name(kind)) + " on rank " + std::to_string(rank) + ": ";
}

}  // namespace

std::string Text(const Signature& call) {
  return std::string(Name(call.kind)) + " of " + std::to_string(call.input_elems) + " " +
         std::string(contract::Name(call.dtype)) + " \"" + call.tag + "\"";
}

std::string MismatchText(int64_t number, int stream, const RankCall& one, const RankCall& other) {
  return "collective mismatch in call " + std::to_string(number) + " of stream " + std::to_string(stream) + ": rank " +
         std::to_string(one.rank) + " calls " + Text(one.signature) + ", rank " + std::to_string(other.rank) +
         " calls " + Text(other.signature);
}

std::string TimeoutText(const Signature& call, const CallOptions& options, const std::vector<bool>& arrived) {
  return Text(call) + " timed out after " + std::to_string(options.timeout.count()) +
         " s; missing ranks: " + MissingRanks(arrived);
}

std::string MissingRanks(const std::vector<bool>& arrived) {
  std::string text;
  for (size_t rank = 0; rank < arrived.size(); ++rank) {
    if (!arrived[rank]) text += (text.empty() ? "" : ", ") + std::to_string(rank);
  }
  return text;
}

const char* RangeName(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::kReduceScatter:
      return contract::range::kReduceScatter;
    case CollectiveKind::kAllGather:
      return contract::range::kAllGather;
    default:
      return contract::range::kAllReduce;  // a barrier is an all-reduce of nothing
  }
}

Handle PostingCommunicator::AllReduce(const Buffer& buffer, const CallOptions& options) {
  RequireSummable(buffer, CollectiveKind::kAllReduce);
  return PostMarked(CollectiveKind::kAllReduce, buffer, buffer, options);
}

Handle PostingCommunicator::ReduceScatter(const Buffer& input, const Buffer& output, const CallOptions& options) {
  RequireSummable(input, CollectiveKind::kReduceScatter);
  RequireParts(input, output, CollectiveKind::kReduceScatter);
  return PostMarked(CollectiveKind::kReduceScatter, input, output, options);
}

Handle PostingCommunicator::AllGather(const Buffer& input, const Buffer& output, const CallOptions& options) {
  RequireParts(output, input, CollectiveKind::kAllGather);
  return PostMarked(CollectiveKind::kAllGather, input, output, options);
}

Handle PostingCommunicator::Barrier(const CallOptions& options) {
  return PostMarked(CollectiveKind::kBarrier, Buffer{}, Buffer{}, options);
}

Handle PostingCommunicator::PostMarked(CollectiveKind kind, const Buffer& input, const Buffer& output,
                                       const CallOptions& options) {
  const contract::ScopedRange range(contract::Category::kComm, RangeName(kind));
  return Post({kind, input.dtype, input.elems, options.tag}, input, output, options);
}

void PostingCommunicator::RequireParts(const Buffer& whole, const Buffer& part, CollectiveKind kind) const {
  if (whole.elems == part.elems * size() && whole.dtype == part.dtype) return;
  contract::Fail(ErrorCode::kInvalidArgument, Where(kind, rank()) + std::to_string(whole.elems) + " elements are not " +
                                                  std::to_string(size()) + " parts of " + std::to_string(part.elems) +
                                                  " of the same type");
}

// Refused here: an exception where the sum is made would leave the other ranks without an answer.
void PostingCommunicator::RequireSummable(const Buffer& buffer, CollectiveKind kind) const {
  using contract::DType;
  const auto is = [&](DType dtype) { return buffer.dtype == dtype; };
  if (is(DType::kF32) || is(DType::kBF16) || is(DType::kF16) || is(DType::kF64)) return;
  contract::Fail(
      ErrorCode::kInvalidArgument,
      Where(kind, rank()) + "type is " + std::string(contract::Name(buffer.dtype)) + "; allowed: F32, BF16, F16, F64");
}

}  // namespace plumbline::optimized
