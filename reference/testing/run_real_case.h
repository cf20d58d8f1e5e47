// SPDX-License-Identifier: Apache-2.0
// A case of a real family from its folder to OUT_DIR, in a folder of the running test.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "conformance/contract/case_file.h"
#include "conformance/contract/tensor_file.h"
#include "reference/engine/run_case.h"

namespace plumbline::reference {

// Writes the case into a new folder of the running test, runs it, and returns OUT_DIR, which the next call empties.
inline std::filesystem::path OutDirOf(const contract::CaseData& data) {
  const auto* info = testing::UnitTest::GetInstance()->current_test_info();
  std::string name = std::string(info->test_suite_name()) + "." + info->name();
  for (char& c : name)
    if (c == '/') c = '_';
  const std::filesystem::path root = std::filesystem::path(testing::TempDir()) / name;
  std::filesystem::remove_all(root);
  std::filesystem::create_directories(root / "case");
  std::filesystem::create_directories(root / "out");
  contract::WriteCase(root / "case", data);
  RunCase(root / "case", root / "out");
  return root / "out";
}

inline std::vector<double> Doubles(const contract::HostTensor& tensor) {
  std::vector<double> values(static_cast<size_t>(tensor.numel()));
  std::memcpy(values.data(), tensor.data.data(), tensor.data.size());
  return values;
}

}  // namespace plumbline::reference
