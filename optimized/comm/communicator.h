// SPDX-License-Identifier: Apache-2.0
// Collectives between ranks, as the engine sees them: asynchronous, tagged, bounded in time. Implementations: thread
// (ranks are threads of one process) and Gloo (ranks are processes), with the same bits. A sibling for NCCL, and
// decorators (ledger, faults), implement the same interface.
//
//   Handle reduced = communicator.AllReduce({gradient, n, DType::kF32}, {.tag = "bucket 3", .timeout = 60s});
//   ... compute ...
//   reduced.Wait();
//
// Every rank makes the same calls in the same order on each stream; streams are independent of each other.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "conformance/contract/dtype.h"

namespace plumbline::optimized {

enum class CollectiveKind { kAllReduce, kReduceScatter, kAllGather, kBarrier };
std::string_view Name(CollectiveKind kind);  // "all_reduce", "reduce_scatter", "all_gather", "barrier"

// Memory of the caller; it must stay untouched (inputs) and alive until the call's handle has been waited for or
// destroyed.
struct Buffer {
  void* data = nullptr;
  int64_t elems = 0;
  contract::DType dtype = contract::DType::kF32;  // kF32, kBF16, kF16 or kF64

  int64_t size_bytes() const { return elems * contract::SizeBytes(dtype); }
};

struct CallOptions {
  std::string tag;                          // what the call is for; must be equal on all ranks
  std::chrono::duration<double> timeout{};  // how long Wait may block
  int stream = 0;                           // an ordered queue of its own
};

// One posted call. Wait returns when the results are in this rank's buffers, or throws: Timeout naming the missing
// ranks, Internal naming both ranks of a mismatch, or the reason of an Abort. Destroying a handle that was not waited
// for takes this rank out of the call (and so aborts it for the others): afterwards nobody touches its buffers.
class Handle {
 public:
  class Operation {
   public:
    virtual ~Operation() = default;  // must not return while another rank may still touch the buffers
    virtual void Wait() = 0;
  };

  Handle() = default;
  explicit Handle(std::unique_ptr<Operation> operation) : operation_(std::move(operation)) {}

  // At most once; a no-op on an empty handle.
  void Wait() {
    const std::unique_ptr<Operation> operation = std::move(operation_);
    if (operation) operation->Wait();
  }

 private:
  std::unique_ptr<Operation> operation_;
};

class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual int64_t rank() const = 0;
  virtual int64_t size() const = 0;

  // buffer = sum over ranks, everywhere.
  virtual Handle AllReduce(const Buffer& buffer, const CallOptions& options) = 0;

  // input holds size() equal parts; output = sum over ranks of the part of this rank. output may be that part of input.
  virtual Handle ReduceScatter(const Buffer& input, const Buffer& output, const CallOptions& options) = 0;

  // output holds size() equal parts; part r = input of rank r. input may be this rank's part of output.
  virtual Handle AllGather(const Buffer& input, const Buffer& output, const CallOptions& options) = 0;

  virtual Handle Barrier(const CallOptions& options) = 0;

  // Releases every rank that waits or will wait; they throw an Error with this reason. Idempotent: the first reason
  // stays.
  virtual void Abort(const std::string& reason) = 0;
};

}  // namespace plumbline::optimized
