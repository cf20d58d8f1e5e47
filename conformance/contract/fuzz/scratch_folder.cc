// SPDX-License-Identifier: Apache-2.0
// Implementation of scratch_folder.h.
#include "conformance/contract/fuzz/scratch_folder.h"

#include <stdlib.h>

#include <fstream>
#include <system_error>

#include "conformance/contract/fuzz/only_errors.h"

namespace plumbline::contract::fuzz {

ScratchFolder::ScratchFolder() {
  std::string name = (std::filesystem::temp_directory_path() / "fuzz.XXXXXX").string();
  Demand(::mkdtemp(name.data()) != nullptr, "the folder for temporary files can be written");
  path_ = name;
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

void ScratchFolder::Put(const std::string& name, std::string_view content) const {
  std::error_code error;
  std::filesystem::create_directories((path_ / name).parent_path(), error);
  std::ofstream file(path_ / name, std::ios::binary);
  file.write(content.data(), static_cast<std::streamsize>(content.size()));
  file.close();
  Demand(!error && file.good(), "a scratch file can be written");
}

}  // namespace plumbline::contract::fuzz
