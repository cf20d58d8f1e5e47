// SPDX-License-Identifier: Apache-2.0
// Fuzz target: batches.safetensors, as an engine reads it.
#include "conformance/contract/batches.h"
#include "conformance/contract/fuzz/memory_file.h"
#include "conformance/contract/fuzz/only_errors.h"

namespace plumbline::contract::fuzz {

bool Accepts(const uint8_t* data, size_t size) {
  constexpr int64_t kVocab = 7;
  const MemoryFile file(data, size);
  const bool has_lengths = size % 2 == 1;
  const auto batches = ParseOrRefuse([&] { return ReadBatches(file.path(), kVocab, has_lengths); });
  if (!batches.has_value()) return false;
  const auto count = static_cast<__int128>(batches->steps) * batches->batch * batches->positions;
  for (const std::vector<int32_t>* values : {&batches->tokens, &batches->labels, &batches->loss_weights}) {
    Demand(count == static_cast<__int128>(values->size()), "sizes and arrays agree");
  }
  for (const std::vector<int32_t>* values : {&batches->tokens, &batches->labels}) {
    for (const int32_t value : *values) Demand(value >= 0 && value < kVocab, "in the vocabulary");
  }
  for (const int32_t weight : batches->loss_weights) Demand(weight >= 0, "weights are not negative");
  Demand(static_cast<__int128>(batches->lengths.size()) ==
             (has_lengths ? static_cast<__int128>(batches->steps) * batches->batch : 0),
         "lengths are there where they were asked for");
  for (const int32_t length : batches->lengths) Demand(length >= 1 && length <= batches->positions, "a length fits");
  return true;
}

}  // namespace plumbline::contract::fuzz
