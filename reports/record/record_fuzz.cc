// SPDX-License-Identifier: Apache-2.0
// Whatever the bytes: a record that survives another round trip, or a RecordError.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "reports/record/record.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using plumbline::reports::ParseRecord;
  try {
    const auto record = ParseRecord(std::string_view(reinterpret_cast<const char*>(data), size), "fuzz");
    if (ParseRecord(ToJson(record), "again") != record) std::abort();
  } catch (const plumbline::reports::RecordError&) {
  }
  return 0;
}
