// SPDX-License-Identifier: Apache-2.0
#include "conformance/contract/case_tensors.h"

#include <algorithm>

#include "conformance/contract/error.h"
#include "conformance/contract/strict_json.h"

namespace plumbline::contract {
namespace {

std::string Shown(DType dtype, const std::vector<int64_t>& shape) {
  std::string text = std::string(Name(dtype)) + " [";
  for (size_t i = 0; i < shape.size(); ++i) text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

}  // namespace

const HostTensor& DemandTensor(const TensorFile& file, const std::string& name, DType dtype,
                               const std::vector<int64_t>& shape, std::string_view file_name) {
  const auto found = std::find_if(file.tensors.begin(), file.tensors.end(),
                                  [&](const HostTensor& tensor) { return tensor.name == name; });
  const std::string prefix = std::string(file_name) + ": tensor " + JsonQuote(name);
  if (found == file.tensors.end())
    Fail(ErrorCode::kInvalidArgument, prefix + " is missing; allowed: " + Shown(dtype, shape));
  if (found->dtype != dtype || found->shape != shape) {
    Fail(ErrorCode::kInvalidArgument,
         prefix + " is " + Shown(found->dtype, found->shape) + "; allowed: " + Shown(dtype, shape));
  }
  return *found;
}

void AllowOnlyTensors(const TensorFile& file, const std::set<std::string>& names, std::string_view file_name) {
  for (const HostTensor& tensor : file.tensors) {
    if (names.contains(tensor.name)) continue;
    Fail(ErrorCode::kInvalidArgument,
         std::string(file_name) + ": tensor " + JsonQuote(tensor.name) + " is not one of this case");
  }
}

}  // namespace plumbline::contract
