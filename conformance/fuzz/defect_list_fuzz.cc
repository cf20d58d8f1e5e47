// SPDX-License-Identifier: Apache-2.0
// Fuzz target: the list of defects that a program with other defects than the planted ones prints.
#include "conformance/contract/fuzz/memory_file.h"
#include "conformance/contract/fuzz/only_errors.h"
#include "conformance/runner/defect_list.h"

namespace plumbline::contract::fuzz {

bool Accepts(const uint8_t* data, size_t size) {
  const MemoryFile file(data, size);
  const auto listed = ParseOrRefuse([&] { return conformance::ReadDefectList(file.path()); });
  if (!listed.has_value()) return false;
  for (const auto& defect : *listed) {
    Demand(!defect.id.empty() && defect.id.find_first_of("\t\n") == std::string::npos, "an id is one field");
    Demand(!defect.family.empty(), "a defect has a family");
  }
  return true;
}

}  // namespace plumbline::contract::fuzz
