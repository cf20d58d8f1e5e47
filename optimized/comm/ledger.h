// SPDX-License-Identifier: Apache-2.0
// A communicator that keeps books: calls and bytes by kind, a digest of what was called in which order, and how long
// the rank was held up by it. It changes nothing else. What counts as bytes is stated in docs/formats.md; with one rank
// nothing is counted.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "conformance/contract/trace.h"
#include "optimized/comm/communicator.h"

namespace plumbline::optimized {

struct LedgerEntry {
  std::map<std::string, contract::CommCount>
      by_kind;            // kinds that were called; barriers move no bytes and are left out
  uint64_t sequence = 0;  // digest of kinds and bytes in order (docs/formats.md)
  double wait_us = 0;     // time of this rank inside posts and waits: communication that computing did not hide
};

class LedgerCommunicator final : public Communicator {
 public:
  explicit LedgerCommunicator(std::unique_ptr<Communicator> inner) : inner_(std::move(inner)) {}

  // What was called since the last Take.
  LedgerEntry Take();

  int64_t rank() const override { return inner_->rank(); }
  int64_t size() const override { return inner_->size(); }
  Handle AllReduce(const Buffer& buffer, const CallOptions& options) override;
  Handle ReduceScatter(const Buffer& input, const Buffer& output, const CallOptions& options) override;
  Handle AllGather(const Buffer& input, const Buffer& output, const CallOptions& options) override;
  Handle Barrier(const CallOptions& options) override;
  void Abort(const std::string& reason) override { inner_->Abort(reason); }

 private:
  void Book(CollectiveKind kind, const Buffer& largest);

  // Posts through `post`, whose time counts, and makes the time of the handle's Wait count.
  template <typename Post>
  Handle Timed(Post post);

  std::unique_ptr<Communicator> inner_;
  LedgerEntry entry_;
  std::shared_ptr<double> wait_us_ = std::make_shared<double>(0);  // handles may outlive the communicator
};

}  // namespace plumbline::optimized
