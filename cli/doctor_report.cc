// SPDX-License-Identifier: Apache-2.0
#include "cli/doctor_report.h"

#include <fmt/format.h>

#include <optional>

#include "conformance/contract/strict_json.h"

namespace plumbline::cli {
namespace {

using conformance::Finding;
using conformance::Gpu;
using conformance::State;
using contract::JsonQuote;

std::string Json(std::optional<bool> value) { return !value ? "null" : *value ? "true" : "false"; }
std::string Json(std::optional<uint64_t> value) { return value ? std::to_string(*value) : "null"; }
std::string Json(const std::string& value) { return value.empty() ? "null" : JsonQuote(value); }

std::string ItemJson(const Finding& finding) {
  return fmt::format("    {{\"id\": {}, \"state\": {}, \"required\": {}, \"value\": {}, \"disables\": {}}}",
                     JsonQuote(finding.id), JsonQuote(conformance::Name(finding.state)), finding.required,
                     JsonQuote(finding.value), JsonQuote(finding.disables));
}

std::string GpuJson(const Gpu& gpu) {
  return fmt::format(
      "    {{\"name\": {}, \"memory_bytes\": {}, \"compute_capability\": {}, \"mig\": {}, \"persistence\": {}, "
      "\"ecc\": {}, \"clock_mhz\": {}, \"clock_max_mhz\": {}}}",
      Json(gpu.name), Json(gpu.memory_bytes), Json(gpu.compute_capability), Json(gpu.mig), Json(gpu.persistence),
      Json(gpu.ecc), Json(gpu.clock_mhz), Json(gpu.clock_max_mhz));
}

template <class Element>
std::string ListJson(const std::vector<Element>& elements, std::string (*show)(const Element&)) {
  std::string text;
  for (const Element& element : elements) text += (text.empty() ? "\n" : ",\n") + show(element);
  return "[" + text + (text.empty() ? "]" : "\n  ]");
}

}  // namespace

std::string DoctorText(const std::vector<Finding>& findings) {
  std::string text;
  std::string lacking;
  for (const Finding& finding : findings) {
    text += fmt::format("{:<8} {:<17} {}\n", conformance::Name(finding.state), finding.id, finding.value);
    if (finding.state != State::kOk) text += fmt::format("{:<26} disables: {}\n", "", finding.disables);
    if (finding.required && finding.state == State::kMissing) lacking += (lacking.empty() ? "" : ", ") + finding.id;
  }
  return text + (lacking.empty() ? "verify can run.\n" : "verify cannot run; missing: " + lacking + "\n");
}

std::string DoctorJson(const std::vector<Finding>& findings, const std::vector<Gpu>& gpus) {
  return fmt::format("{{\n  \"schema\": {},\n  \"can_verify\": {},\n  \"items\": {},\n  \"gpus\": {}\n}}\n",
                     kDoctorSchema, conformance::CanVerify(findings), ListJson(findings, ItemJson),
                     ListJson(gpus, GpuJson));
}

}  // namespace plumbline::cli
