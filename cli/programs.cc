// SPDX-License-Identifier: Apache-2.0
#include "cli/programs.h"

#include <fstream>
#include <string>

#include "conformance/contract/error.h"

namespace plumbline::cli {
namespace {

// The path that the program was called by, links unresolved: a test calls it inside its own runfiles.
std::filesystem::path CalledAs() {
  std::ifstream arguments("/proc/self/cmdline", std::ios::binary);
  std::string first;
  std::getline(arguments, first, '\0');
  std::error_code error;
  return std::filesystem::absolute(first, error);
}

std::filesystem::path Runfile(const char* path) {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  for (const std::filesystem::path& root :
       {std::filesystem::path(self.string() + ".runfiles") / "plumbline", CalledAs().parent_path().parent_path()}) {
    if (std::filesystem::exists(root / path, error)) return root / path;
  }
  contract::Fail(contract::ErrorCode::kInternal,
                 std::string(path) + " is not beside the program; start it with ./plumbline from the project's folder");
}

}  // namespace

conformance::EngineSet OwnEngines() {
  return {Runfile("reference/reference_engine"), Runfile("optimized/engine/optimized"),
          Runfile("conformance/engines/torch_eager/torch_eager"), Runfile("conformance/defects/optimized_defects"),
          Runfile("optimized/engine/optimized_processes")};
}

std::filesystem::path DefaultText() { return Runfile("LICENSE"); }

}  // namespace plumbline::cli
