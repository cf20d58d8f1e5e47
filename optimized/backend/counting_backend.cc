// SPDX-License-Identifier: Apache-2.0
// See counting_backend.h.
#include "optimized/backend/counting_backend.h"

#include <utility>

#include "optimized/backend/forwarding_backend.h"

namespace plumbline::optimized {
namespace {

class CountingBackend final : public ForwardingBackend {
 public:
  CountingBackend(std::unique_ptr<Backend> inner, MemoryLedger& ledger)
      : ForwardingBackend(std::move(inner)), ledger_(ledger) {}

  Storage Allocate(int64_t size_bytes, MemoryCategory category) override {
    // Shared, since a deleter must be copyable; it is freed with the one storage that refers to it.
    auto memory = std::make_shared<Storage>(inner_->Allocate(size_bytes, category));
    ledger_.Allocated(category, size_bytes);
    std::byte* const data = memory->data();
    return Storage(data, size_bytes, [memory = std::move(memory), &ledger = ledger_, size_bytes, category](std::byte*) {
      *memory = Storage();
      ledger.Freed(category, size_bytes);
    });
  }

 private:
  MemoryLedger& ledger_;
};

}  // namespace

std::unique_ptr<Backend> MakeCountingBackend(std::unique_ptr<Backend> inner, MemoryLedger& ledger) {
  return std::make_unique<CountingBackend>(std::move(inner), ledger);
}

}  // namespace plumbline::optimized
