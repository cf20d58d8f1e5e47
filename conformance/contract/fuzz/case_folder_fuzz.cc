// SPDX-License-Identifier: Apache-2.0
// Fuzz target: a whole case folder as an engine reads it: case.json, weights, state (with the history of norms and the
// loss scaler of fp16) and batches (with lengths). What is accepted is written and read back as the same.
#include "conformance/contract/case_file.h"
#include "conformance/contract/file_io.h"
#include "conformance/contract/fuzz/only_errors.h"
#include "conformance/contract/fuzz/parts.h"
#include "conformance/contract/fuzz/scratch_folder.h"

namespace plumbline::contract::fuzz {
namespace {

constexpr const char* kFiles[] = {"case.json", "weights.safetensors", "state.safetensors", "batches.safetensors"};

CaseData WriteAndRead(const ScratchFolder& folder, const CaseData& data) {
  WriteCase(folder.path(), data);
  const auto again = ParseOrRefuse([&] { return ReadCase(folder.path()); });
  Demand(again.has_value(), "a case that was written is read");
  return *again;
}

// Bytes are compared, since weights may be NaN.
void DemandSame(const CaseData& data) {
  const ScratchFolder first, second;
  const CaseData again = WriteAndRead(first, data);
  Demand(again.spec == data.spec, "the case is the same");
  Demand(again.num_updates == data.num_updates, "the number of updates is the same");
  Demand(again.norm_history == data.norm_history, "the history of norms is the same");
  Demand(again.loss_scaler == data.loss_scaler, "the loss scaler is the same");
  Demand(again.batches.lengths == data.batches.lengths, "the lengths are the same");
  WriteAndRead(second, again);
  for (const char* name : kFiles) {
    Demand(ReadFileOf(first.path(), name) == ReadFileOf(second.path(), name), std::string(name) + " is the same");
  }
}

}  // namespace

bool Accepts(const uint8_t* data, size_t size) {
  const ScratchFolder folder;
  const std::vector<std::string_view> parts = Parts(Text(data, size), std::size(kFiles));
  for (size_t i = 0; i < parts.size(); ++i) folder.Put(kFiles[i], parts[i]);
  const auto read = ParseOrRefuse([&] { return ReadCase(folder.path()); });
  if (!read.has_value()) return false;
  Demand(read->state.size() + read->real_state.size() == read->parameters.size(), "a state for each parameter");
  DemandSame(*read);
  return true;
}

}  // namespace plumbline::contract::fuzz
