// SPDX-License-Identifier: Apache-2.0
#include "conformance/runner/lone_case_file.h"

#include <string>

#include "conformance/cases/lone_case.h"
#include "conformance/contract/error.h"
#include "conformance/contract/file_io.h"

namespace plumbline::conformance {

contract::Case ReadLoneCase(const std::filesystem::path& path) {
  constexpr uint64_t kMaxBytes = uint64_t{16} << 20;
  const std::string where = path.string();
  contract::Case spec = contract::ParseCase(contract::ReadFile(path, kMaxBytes), where);
  if (const auto why = WhyNotJudgeable(spec)) {
    contract::Fail(contract::ErrorCode::kInvalidArgument, where + ": " + *why);
  }
  return spec;
}

void WriteLoneCase(const std::filesystem::path& path, const contract::Case& spec) {
  std::error_code error;
  std::filesystem::create_directories(path.parent_path(), error);
  if (error) {
    contract::Fail(contract::ErrorCode::kEnvironment,
                   path.parent_path().string() + ": cannot be made: " + error.message());
  }
  contract::WriteFile(path, contract::ToJson(spec));
}

}  // namespace plumbline::conformance
