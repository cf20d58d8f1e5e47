// SPDX-License-Identifier: Apache-2.0
// Whatever record is read (`plumbline merge` reads those of other machines), it can be printed: as the table, and as
// JUnit XML that holds no character which XML 1.0 forbids.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "cli/verify_table.h"
#include "reports/junit/junit.h"
#include "reports/record/record.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace plumbline;  // NOLINT: cli and reports
  try {
    const auto record = reports::ParseRecord(std::string_view(reinterpret_cast<const char*>(data), size), "fuzz");
    for (const bool verbose : {false, true}) {
      if (cli::VerifyTable(record, verbose).empty()) std::abort();
    }
    for (const char c : reports::ToJunitXml(record)) {
      if (static_cast<unsigned char>(c) < 0x20 && c != '\n') std::abort();
    }
  } catch (const reports::RecordError&) {
  }
  return 0;
}
