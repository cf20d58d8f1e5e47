// SPDX-License-Identifier: Apache-2.0
#include "conformance/cases/defect_layouts.h"

#include <algorithm>

namespace plumbline::conformance {
namespace {

struct DefectLayout {
  const char *problem, *data, *zero, *accumulation, *bucket, *overlap, *storage;
};

std::vector<DefectLayout> ExactLayouts() {
  return {
      {"dense-v19", "2", "0", "3", "all", "on", "fp32"},
      {"dense-v19", "1", "1", "3", "at", "off", "bf16"},
      {"grouped-v5", "3", "1", "4", "below", "on", "bf16"},
      {"grouped-v5", "3", "2", "3", "above", "off", "bf16"},
      {"dense-v19", "4", "1", "1", "below", "off", "bf16"},
      {"dense-v19", "8", "2", "1", "below", "on", "bf16"},
      {"grouped-v5", "3", "3tight", "3", "all", "on", "fp32"},
      {"dense-v19", "2", "3", "1", "at", "on", "fp32"},
      {"dense-v19", "3", "3ahead", "4", "above", "off", "bf16"},
      {"sgd-v19", "8", "0", "4", "all", "on", "fp32"},
      {"sgd-v19", "1", "3ahead", "4", "below", "off", "bf16"},
      {"wide-v5", "3", "2", "4", "all", "on", "fp32"},
      {"dense-v19", "2", "2", "3", "above", "on", "fp16"},
      {"middle-v19", "3", "3tight", "4", "below", "off", "fp16"},
  };
}

std::vector<DefectLayout> Gpt2Layouts() {
  return {
      {"tied-adamw", "2", "1", "3", "at", "off", "bf16"},
      {"untied-sgd", "3", "2", "4", "above", "on", "bf16"},
      {"frozen-adamw", "3", "3", "4", "at", "on", "fp32"},
      {"frozen-momentum", "8", "3tight", "3", "at", "on", "fp32"},
      {"tied-adamw", "1", "3tight", "4", "at", "on", "fp32"},
      {"untied-sgd", "4", "0", "3", "at", "on", "bf16"},
      {"untied-sgd", "4", "3", "1", "all", "off", "fp32"},
      {"tied-adamw", "4", "3strict", "3", "below", "on", "fp32"},
      {"frozen-momentum", "2", "0", "3", "above", "on", "fp32"},
      {"cycled-adamw", "2", "2", "3", "below", "on", "fp32"},
      {"coupled-adam", "3", "1", "4", "all", "on", "fp32"},
      {"unit-nesterov", "4", "2", "3", "at", "on", "fp32"},
      {"history-lion", "2", "3", "4", "at", "on", "fp32"},
      {"tied-lamb", "8", "3tight", "3", "above", "on", "fp32"},
      {"cycled-adamw", "4", "1", "3", "at", "on", "fp16"},
  };
}

std::vector<DefectLayout> LlamaLayouts() {
  return {
      {"grouped-adamw", "2", "1", "3", "at", "off", "fp32"},
      {"shared-sgd", "3", "2", "4", "above", "on", "fp32"},
      {"frozen-nesterov", "4", "3", "3", "at", "on", "fp32"},
      {"grouped-adamw", "1", "3tight", "4", "below", "on", "bf16"},
      {"shared-sgd", "2", "0", "3", "at", "on", "bf16"},
      {"shared-sgd", "2", "3", "3", "at", "off", "fp16"},
  };
}

std::vector<DefectLayout> LayoutsOf(const std::string& family) {
  if (family == "exact") return ExactLayouts();
  return family == "gpt2" ? Gpt2Layouts() : LlamaLayouts();
}

}  // namespace

std::vector<AxisValues> DefectLayouts(const std::string& family) {
  std::vector<AxisValues> layouts;
  for (const DefectLayout& layout : LayoutsOf(family)) {
    layouts.push_back({{"problem", layout.problem},
                       {"data", layout.data},
                       {"zero", layout.zero},
                       {"accumulation", layout.accumulation},
                       {"bucket", layout.bucket},
                       {"overlap", layout.overlap},
                       {"storage", layout.storage}});
  }
  return layouts;
}

bool HasDefectLayout(const Problem& problem, const std::string& storage) {
  const std::vector<DefectLayout> layouts = LayoutsOf(std::string(problem.model.family()));
  return std::any_of(layouts.begin(), layouts.end(), [&](const DefectLayout& layout) {
    return layout.problem == problem.name && layout.storage == storage;
  });
}

}  // namespace plumbline::conformance
