// SPDX-License-Identifier: Apache-2.0
// Whatever the bytes of two shards' records: a merge whose totals are what its cases say and which survives another
// round trip, or a RecordError. Records lie one after the other, between lines of eight '='.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "reports/record/merge.h"

namespace {

using namespace plumbline::reports;  // NOLINT: everything that record.h has

constexpr std::string_view kBetween = "\n========\n";

void Demand(bool ok) {
  if (!ok) std::abort();
}

void MergeAndDemand(const std::vector<Record>& shards, bool allow_partial) {
  const Record merged = Merge(shards, {.allow_partial = allow_partial});
  size_t cases = 0;
  for (const Record& shard : shards) cases += shard.cases.size();
  Demand(merged.cases.size() == cases);
  Demand(merged.totals == Totals(merged));
  Demand(merged.missing_shards.empty() || (allow_partial && merged.exit_code != 0));
  Demand(merged.exit_code == ExitCodeFor(merged, false));
  Demand(ParseRecord(ToJson(merged), "again") == merged);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  const size_t at = text.find(kBetween);
  std::vector<Record> shards;
  try {
    shards.push_back(ParseRecord(text.substr(0, at), "first"));
    if (at != std::string_view::npos) shards.push_back(ParseRecord(text.substr(at + kBetween.size()), "second"));
  } catch (const RecordError&) {
    return 0;
  }
  for (const bool allow_partial : {false, true}) {
    try {
      MergeAndDemand(shards, allow_partial);
    } catch (const RecordError&) {
    }
  }
  return 0;
}
