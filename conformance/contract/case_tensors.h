// SPDX-License-Identifier: Apache-2.0
// Tensors of a case's files, checked for name, type and shape, with messages that begin with the file's name.
// Private to the case file library; ranges of values are checked where they are known.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/contract/tensor_file.h"

namespace plumbline::contract {

// The tensor of this name, type and shape. InvalidArgument if it is missing or another.
const HostTensor& DemandTensor(const TensorFile& file, const std::string& name, DType dtype,
                               const std::vector<int64_t>& shape, std::string_view file_name);

// InvalidArgument naming a tensor that is not one of these: an engine would silently ignore it.
void AllowOnlyTensors(const TensorFile& file, const std::set<std::string>& names, std::string_view file_name);

}  // namespace plumbline::contract
