// SPDX-License-Identifier: Apache-2.0
// Names of the collectives; the rest of the interface has no code.
#include "optimized/comm/communicator.h"

#include "conformance/contract/error.h"

namespace plumbline::optimized {

std::string_view Name(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::kAllReduce:
      return "all_reduce";
    case CollectiveKind::kReduceScatter:
      return "reduce_scatter";
    case CollectiveKind::kAllGather:
      return "all_gather";
    case CollectiveKind::kBarrier:
      return "barrier";
  }
  contract::Fail(contract::ErrorCode::kInternal, "no such collective");
}

}  // namespace plumbline::optimized
