// SPDX-License-Identifier: Apache-2.0
// Runs a target over the inputs of its corpus, without a fuzzer: an ordinary test with any compiler. Files in a folder
// `accepted` must be accepted and all others, in `refused`, must not, so a target cannot pass by refusing everything.
#include <cstdio>
#include <filesystem>
#include <string>

#include "conformance/contract/file_io.h"
#include "conformance/contract/fuzz/only_errors.h"

namespace plumbline::contract::fuzz {
namespace {

void Replay(const std::filesystem::path& path) {
  const std::string content = ReadFile(path);
  const bool accepted = Accepts(reinterpret_cast<const uint8_t*>(content.data()), content.size());
  const std::string folder = path.parent_path().filename();
  Demand(folder == "accepted" || folder == "refused",
         "the corpus has the folders accepted and refused: " + path.string());
  Demand(accepted == (folder == "accepted"), path.string() + (accepted ? " was accepted" : " was refused"));
  std::printf("%s: %s\n", path.c_str(), folder.c_str());
}

}  // namespace
}  // namespace plumbline::contract::fuzz

int main(int argc, char** argv) {
  plumbline::contract::fuzz::Demand(argc > 1, "there is a corpus");
  for (int i = 1; i < argc; ++i) plumbline::contract::fuzz::Replay(argv[i]);
  return 0;
}
