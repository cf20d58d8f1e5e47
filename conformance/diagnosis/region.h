// SPDX-License-Identifier: Apache-2.0
// Where in a tensor, and where in the model, two values of a tensor differ: in words for people. Which elements differ
// is decided by the caller's tolerance.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "conformance/contract/model_spec.h"
#include "conformance/diagnosis/evidence.h"

namespace plumbline::conformance {

// 1 of "layers.1.mlp.down"; -1 of what belongs to no layer.
int64_t LayerOf(std::string_view parameter);

// Differences above it are larger than rounding: four times `noise` spread over all elements, but between a thousandth
// and a half of the largest difference. 0 where there is no noise.
double DifferenceTolerance(const Values& candidate, const Values& truth, double noise);

// "all 228 elements", "element 227 of 228", "elements 114 to 227 of 228", "row 3 of 19", "columns 15 to 29 of 45, the k
// part", "17 of 228 elements, from 3 to 201".
std::string DescribeRegion(const contract::ParameterSpec& parameter, const Values& candidate, const Values& truth,
                           double tolerance);

}  // namespace plumbline::conformance
