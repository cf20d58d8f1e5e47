// SPDX-License-Identifier: Apache-2.0
// Implementation of only_errors.h.
#include "conformance/contract/fuzz/only_errors.h"

#include <cstdio>
#include <cstdlib>
#include <exception>

#include "conformance/contract/error.h"

namespace plumbline::contract::fuzz {

void Demand(bool ok, std::string_view property) {
  if (ok) return;
  std::fprintf(stderr, "broken property: %.*s\n", static_cast<int>(property.size()), property.data());
  std::abort();
}

void DemandAllowedError() {
  try {
    throw;
  } catch (const Error& error) {
    const bool allowed = error.code() == ErrorCode::kInvalidArgument || error.code() == ErrorCode::kUnsupported;
    Demand(allowed, std::string("an error that foreign bytes may not cause: ") + error.what());
  } catch (const std::exception& exception) {
    Demand(false, std::string("an exception that is no contract::Error: ") + exception.what());
  } catch (...) {
    Demand(false, "an exception that is no contract::Error");
  }
}

}  // namespace plumbline::contract::fuzz
