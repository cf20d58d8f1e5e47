// SPDX-License-Identifier: Apache-2.0
#include "cli/programs.h"

#include "conformance/contract/error.h"

namespace plumbline::cli {
namespace {

std::filesystem::path Runfile(const char* path) {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::filesystem::path file = std::filesystem::path(self.string() + ".runfiles") / "plumbline" / path;
  if (error || !std::filesystem::exists(file, error)) {
    contract::Fail(
        contract::ErrorCode::kInternal,
        std::string(path) + " is not beside the program; start it with ./plumbline from the project's folder");
  }
  return file;
}

}  // namespace

conformance::EngineSet OwnEngines() {
  return {Runfile("reference/reference_engine"), Runfile("optimized/engine/optimized"),
          Runfile("conformance/engines/torch_eager/torch_eager"), Runfile("conformance/defects/optimized_defects")};
}

std::filesystem::path DefaultText() { return Runfile("LICENSE"); }

}  // namespace plumbline::cli
