// SPDX-License-Identifier: Apache-2.0
// See guarded_backend.h.
#include "optimized/backend/guarded_backend.h"

#include <utility>

#include "optimized/backend/forwarding_backend.h"

namespace plumbline::optimized {
namespace {

class GuardedBackend final : public ForwardingBackend {
 public:
  GuardedBackend(std::unique_ptr<Backend> inner, MemoryGuards& guards)
      : ForwardingBackend(std::move(inner)), guards_(guards) {}

  Storage Allocate(int64_t size_bytes, MemoryCategory category) override {
    // Shared, since a deleter must be copyable; it is freed with the one storage that refers to it.
    auto memory = std::make_shared<Storage>(inner_->Allocate(size_bytes + 2 * kGuardBytes, category));
    std::byte* const data = memory->data() + kGuardBytes;
    guards_.Allocated(data, size_bytes, category);
    return Storage(data, size_bytes, [memory = std::move(memory), &guards = guards_](std::byte* freed) {
      guards.Freed(freed);
      *memory = Storage();
    });
  }

 private:
  MemoryGuards& guards_;
};

}  // namespace

std::unique_ptr<Backend> MakeGuardedBackend(std::unique_ptr<Backend> inner, MemoryGuards& guards) {
  return std::make_unique<GuardedBackend>(std::move(inner), guards);
}

}  // namespace plumbline::optimized
