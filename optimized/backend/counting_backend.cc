// SPDX-License-Identifier: Apache-2.0
// See counting_backend.h.
#include "optimized/backend/counting_backend.h"

#include <utility>

namespace plumbline::optimized {
namespace {

class CountingBackend final : public Backend {
 public:
  CountingBackend(std::unique_ptr<Backend> inner, MemoryLedger& ledger) : inner_(std::move(inner)), ledger_(ledger) {}

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

  void Poison(std::byte* data, int64_t size_bytes) override { inner_->Poison(data, size_bytes); }

  void MatMul(const Matrices& a, const Matrices& b, const Matrices& c, WriteMode mode) override {
    inner_->MatMul(a, b, c, mode);
  }

 private:
  const std::unique_ptr<Backend> inner_;
  MemoryLedger& ledger_;
};

}  // namespace

std::unique_ptr<Backend> MakeCountingBackend(std::unique_ptr<Backend> inner, MemoryLedger& ledger) {
  return std::make_unique<CountingBackend>(std::move(inner), ledger);
}

}  // namespace plumbline::optimized
