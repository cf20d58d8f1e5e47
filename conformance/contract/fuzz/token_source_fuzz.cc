// SPDX-License-Identifier: Apache-2.0
// Fuzz target: the file that data is drawn from, a token file or any text, and the batches made of it.
#include "conformance/contract/batch_source.h"
#include "conformance/contract/fuzz/memory_file.h"
#include "conformance/contract/fuzz/only_errors.h"

namespace plumbline::contract::fuzz {

bool Accepts(const uint8_t* data, size_t size) {
  const MemoryFile file(data, size);
  const auto source = ParseOrRefuse([&] { return ReadTokenSource(file.path()); });
  if (!source.has_value()) return false;
  Demand(source->tokens.size() <= size, "no more tokens than bytes");
  const ExactSpec model = {.layers = 1, .width = 2, .heads = 1, .kv_heads = 1, .positions = 4, .hidden = 1, .vocab = 7};
  const auto batches =
      ParseOrRefuse([&] { return MakeBatches(*source, model, {size, 0, 2, 3}); });
  if (!batches.has_value()) return false;
  for (size_t i = 0; i < batches->tokens.size(); ++i) {
    Demand(batches->tokens[i] >= 0 && batches->tokens[i] < model.vocab, "tokens are in the vocabulary");
    Demand(batches->labels[i] >= 0 && batches->labels[i] < model.vocab, "labels are in the vocabulary");
    const bool last = i % static_cast<size_t>(model.positions) == static_cast<size_t>(model.positions) - 1;
    Demand(last || batches->labels[i] == batches->tokens[i + 1], "a label is the next token");
  }
  return true;
}

}  // namespace plumbline::contract::fuzz
