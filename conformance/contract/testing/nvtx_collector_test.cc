// SPDX-License-Identifier: Apache-2.0
// That the collector says when it comes too late. What it collects is tested with the instrumentation.
#include "conformance/contract/testing/nvtx_collector.h"

#include <gtest/gtest.h>

#include "conformance/contract/instrumentation.h"
#include "conformance/contract/testing/error_message.h"

namespace plumbline::contract::testing {
namespace {

// The only test of its program: it spoils NVTX for the rest of the process.
TEST(NvtxCollector, RefusesToComeAfterTheFirstNvtxCall) {
  { const ScopedRange range(Category::kCompute, range::kStep); }
  for (int i = 0; i < 2; ++i) {
    EXPECT_NE(ErrorMessage(ErrorCode::kInternal, [] { NvtxCollector::Install(); })
                  .find("the NVTX collector is installed before the process's first NVTX call"),
              std::string::npos);
  }
}

}  // namespace
}  // namespace plumbline::contract::testing
