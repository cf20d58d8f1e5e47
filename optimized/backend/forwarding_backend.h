// SPDX-License-Identifier: Apache-2.0
// The base of backends that hand out another one's memory in their own way and leave everything else to it.
#pragma once

#include <memory>
#include <utility>

#include "optimized/backend/backend.h"

namespace plumbline::optimized {

class ForwardingBackend : public Backend {
 public:
  explicit ForwardingBackend(std::unique_ptr<Backend> inner) : inner_(std::move(inner)) {}

  void Poison(std::byte* data, int64_t size_bytes) final { inner_->Poison(data, size_bytes); }

  void MatMul(const Matrices& a, const Matrices& b, const Matrices& c, WriteMode mode) final {
    inner_->MatMul(a, b, c, mode);
  }

 protected:
  const std::unique_ptr<Backend> inner_;
};

}  // namespace plumbline::optimized
