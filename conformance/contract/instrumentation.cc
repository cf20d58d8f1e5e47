// SPDX-License-Identifier: Apache-2.0
#include "conformance/contract/instrumentation.h"

#include <nvtx3/nvToolsExt.h>

namespace plumbline::contract {
namespace {

nvtxDomainHandle_t Domain() {
  static const nvtxDomainHandle_t domain = [] {
    nvtxDomainHandle_t created = nvtxDomainCreateA("plumbline");
    nvtxDomainNameCategoryA(created, static_cast<uint32_t>(Category::kCompute), "compute");
    nvtxDomainNameCategoryA(created, static_cast<uint32_t>(Category::kComm), "comm");
    nvtxDomainNameCategoryA(created, static_cast<uint32_t>(Category::kOptimizer), "optimizer");
    nvtxDomainNameCategoryA(created, static_cast<uint32_t>(Category::kIo), "io");
    return created;
  }();
  return domain;
}

}  // namespace

ScopedRange::ScopedRange(Category category, const char* name) {
  nvtxEventAttributes_t attributes{};
  attributes.version = NVTX_VERSION;
  attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  attributes.category = static_cast<uint32_t>(category);
  attributes.messageType = NVTX_MESSAGE_TYPE_ASCII;
  attributes.message.ascii = name;
  nvtxDomainRangePushEx(Domain(), &attributes);
}

ScopedRange::~ScopedRange() { nvtxDomainRangePop(Domain()); }

}  // namespace plumbline::contract
