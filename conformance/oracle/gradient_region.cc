// SPDX-License-Identifier: Apache-2.0
#include "conformance/oracle/gradient_region.h"

namespace plumbline::conformance {

std::vector<GradientRegion> GradientRegions(const contract::ModelSpec& model) {
  std::vector<GradientRegion> regions;
  const std::vector<contract::ParameterSpec> parameters = contract::Parameters(model);
  for (size_t i = 0; i < parameters.size(); ++i) {
    const contract::ParameterSpec& parameter = parameters[i];
    if (parameter.frozen) continue;
    GradientRegion whole{i, parameter.name, parameter.rows, parameter.cols, 0, parameter.cols, parameter.is_vector};
    if (parameter.name.find(".attn.qkv.") == std::string::npos) {
      regions.push_back(whole);
      continue;
    }
    const int64_t width = parameter.cols / 3;
    for (int64_t part = 0; part < 3; ++part) {
      GradientRegion region = whole;
      region.name += std::string(" (") + "qkv"[part] + " part)";
      region.first_col = part * width;
      region.end_col = (part + 1) * width;
      regions.push_back(std::move(region));
    }
  }
  return regions;
}

}  // namespace plumbline::conformance
