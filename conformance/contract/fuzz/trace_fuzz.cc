// SPDX-License-Identifier: Apache-2.0
// Fuzz target: trace.jsonl. Steps are consecutive, an unfinished last line changes nothing, and what the writer writes
// of a trace is read and written again as the same bytes.
#include "conformance/contract/file_io.h"
#include "conformance/contract/fuzz/only_errors.h"
#include "conformance/contract/fuzz/scratch_folder.h"
#include "conformance/contract/trace.h"

namespace plumbline::contract::fuzz {
namespace {

// The world is the config's, since a writer knows no other.
std::string Written(const Trace& trace) {
  const ScratchFolder folder;
  {
    TraceWriter writer(folder.path(), trace.engine, trace.rank, trace.config);
    for (const StepRecord& step : trace.steps) writer.Step(step);
    if (trace.complete) writer.End(static_cast<int64_t>(trace.steps.size()));
  }
  return ReadFile(folder / ("rank" + std::to_string(trace.rank)) / "trace.jsonl");
}

void DemandSame(const Trace& trace) {
  if (trace.rank >= trace.config.world_size()) return;
  const std::string text = Written(trace);
  const auto again = ParseOrRefuse([&] { return ParseTrace(text, "written by us"); });
  Demand(again.has_value(), "what the writer writes parses: " + text);
  Demand(again->config == trace.config && again->engine == trace.engine, "the header is the same");
  Demand(again->steps.size() == trace.steps.size() && again->complete == trace.complete, "the steps are the same");
  for (size_t i = 0; i < trace.steps.size(); ++i) {
    Demand(again->steps[i].memory_peak_bytes == trace.steps[i].memory_peak_bytes, "peaks are the same");
    Demand(again->steps[i].comm == trace.steps[i].comm, "calls are the same");
    Demand(again->steps[i].tokens == trace.steps[i].tokens, "tokens are the same");
  }
  Demand(Written(*again) == text, "the writer is canonical: " + text);
}

}  // namespace

bool Accepts(const uint8_t* data, size_t size) {
  const std::string_view text = Text(data, size);
  const auto trace = ParseOrRefuse([&] { return ParseTrace(text, "input"); });
  if (!trace.has_value()) return false;
  for (size_t i = 0; i < trace->steps.size(); ++i) {
    const int64_t first = trace->steps.front().step;  // not 0 where a run resumes or starts inside training
    Demand(trace->steps[i].step == first + static_cast<int64_t>(i), "steps are consecutive");
  }
  DemandSame(*trace);
  if (text.empty() || text.back() != '\n') return true;
  const std::string torn = std::string(text) + "{\"record\": \"st";
  const auto again = ParseOrRefuse([&] { return ParseTrace(torn, "input and a torn line"); });
  Demand(again.has_value(), "a last line without newline is ignored");
  Demand(again->steps.size() == trace->steps.size() && again->complete == trace->complete,
         "a last line without newline changes nothing");
  return true;
}

}  // namespace plumbline::contract::fuzz
