// SPDX-License-Identifier: Apache-2.0
// Fuzz target: a run configuration. What is accepted obeys the rule of the batch sizes.
#include "conformance/contract/fuzz/only_errors.h"
#include "conformance/contract/run_config.h"

namespace plumbline::contract::fuzz {

bool Accepts(const uint8_t* data, size_t size) {
  const auto parse = [](std::string_view json, std::string_view where) { return ParseRunConfig(json, where); };
  const auto config = ParseOrRefuse([&] { return parse(Text(data, size), "input"); });
  if (!config.has_value()) return false;
  Demand(DemandRoundTrip(parse, *config) == *config, "parse(ToJson(x)) == x");
  Demand(config->micro_batch_size >= 1 && config->accumulation_steps >= 1 && config->data_degree >= 1, "sizes >= 1");
  // In 128 bits: a product that overflowed would otherwise agree with itself.
  const auto product =
      static_cast<__int128>(config->micro_batch_size) * config->accumulation_steps * config->data_degree;
  Demand(product == config->train_batch_size, "B = m * A * R");
  return true;
}

}  // namespace plumbline::contract::fuzz
