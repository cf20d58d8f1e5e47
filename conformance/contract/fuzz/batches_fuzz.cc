// SPDX-License-Identifier: Apache-2.0
// Fuzz target: batches.safetensors, as an engine reads it. What is accepted is written and read back as the same.
#include "conformance/contract/batches.h"
#include "conformance/contract/fuzz/memory_file.h"
#include "conformance/contract/fuzz/only_errors.h"
#include "conformance/contract/fuzz/scratch_folder.h"

namespace plumbline::contract::fuzz {
namespace {

constexpr int64_t kVocab = 7;

void DemandSame(const Batches& batches, bool has_lengths) {
  const ScratchFolder folder;
  const std::filesystem::path path = folder / "batches.safetensors";
  WriteBatches(path, batches);
  const auto again = ParseOrRefuse([&] { return ReadBatches(path, kVocab, has_lengths); });
  Demand(again.has_value(), "batches that were written are read");
  Demand(again->tokens == batches.tokens && again->labels == batches.labels, "the tokens are the same");
  Demand(again->loss_weights == batches.loss_weights, "the weights are the same");
  Demand(again->lengths == batches.lengths, "the lengths are the same");
}

void DemandInRange(const Batches& batches) {
  const auto count = static_cast<__int128>(batches.steps) * batches.batch * batches.positions;
  for (const std::vector<int32_t>* values : {&batches.tokens, &batches.labels, &batches.loss_weights}) {
    Demand(count == static_cast<__int128>(values->size()), "sizes and arrays agree");
  }
  for (const std::vector<int32_t>* values : {&batches.tokens, &batches.labels}) {
    for (const int32_t value : *values) Demand(value >= 0 && value < kVocab, "in the vocabulary");
  }
  for (const int32_t weight : batches.loss_weights) Demand(weight >= 0, "weights are not negative");
}

void DemandLengths(const Batches& batches, bool has_lengths) {
  Demand(static_cast<__int128>(batches.lengths.size()) ==
             (has_lengths ? static_cast<__int128>(batches.steps) * batches.batch : 0),
         "lengths are there where they were asked for");
  for (const int32_t length : batches.lengths) Demand(length >= 1 && length <= batches.positions, "a length fits");
}

}  // namespace

bool Accepts(const uint8_t* data, size_t size) {
  const MemoryFile file(data, size);
  bool accepted = false;
  for (const bool has_lengths : {false, true}) {
    const auto batches = ParseOrRefuse([&] { return ReadBatches(file.path(), kVocab, has_lengths); });
    if (!batches.has_value()) continue;
    DemandInRange(*batches);
    DemandLengths(*batches, has_lengths);
    DemandSame(*batches, has_lengths);
    accepted = true;
  }
  return accepted;
}

}  // namespace plumbline::contract::fuzz
