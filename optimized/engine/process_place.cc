// SPDX-License-Identifier: Apache-2.0
// See process_place.h.
#include "optimized/engine/process_place.h"

#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>

#include "conformance/contract/error.h"

namespace plumbline::optimized {
namespace {

constexpr int64_t kMaxWorld = int64_t{1} << 20;

std::string Text(const Variables& variables, const char* name) {
  const char* value = variables(name);
  if (value == nullptr || *value == '\0') {
    contract::Fail(contract::ErrorCode::kInvalidArgument,
                   std::string(name) +
                       " is not set: a launcher of ranks sets it (`plumbline run --ranks N -- PROGRAM`, torchrun)");
  }
  return value;
}

int64_t Integer(const Variables& variables, const char* name, int64_t least, int64_t largest) {
  const std::string text = Text(variables, name);
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < least || value > largest) {
    contract::Fail(contract::ErrorCode::kInvalidArgument, std::string(name) + " is \"" + text + "\"; allowed: " +
                                                              std::to_string(least) + " to " + std::to_string(largest));
  }
  return value;
}

bool IsSet(const Variables& variables, const char* name) {
  const char* value = variables(name);
  return value != nullptr && *value != '\0';
}

}  // namespace

ProcessPlace PlaceOf(const Variables& variables) {
  ProcessPlace place;
  place.size = Integer(variables, "WORLD_SIZE", 1, kMaxWorld);
  place.rank = Integer(variables, "RANK", 0, place.size - 1);
  if (IsSet(variables, "LOCAL_RANK")) Integer(variables, "LOCAL_RANK", 0, place.size - 1);
  place.address = Text(variables, "MASTER_ADDR");
  place.port = static_cast<int>(Integer(variables, "MASTER_PORT", 1, 65535));
  const bool agent_hosts = IsSet(variables, "TORCHELASTIC_USE_AGENT_STORE") &&
                           std::string_view(variables("TORCHELASTIC_USE_AGENT_STORE")) == "True";
  place.hosts_store = place.rank == 0 && !agent_hosts;
  if (IsSet(variables, "TORCHELASTIC_RESTART_COUNT")) {
    place.attempt = Integer(variables, "TORCHELASTIC_RESTART_COUNT", 0, INT64_MAX);
  }
  return place;
}

}  // namespace plumbline::optimized
