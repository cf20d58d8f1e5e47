// SPDX-License-Identifier: Apache-2.0
// Looks whether an engine has written the status of a case, without trusting what lies there.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "conformance/contract/engine_protocol.h"

namespace plumbline::conformance {

struct StatusSighting {
  std::optional<contract::CaseStatus> status;  // absent: malformed, or not yet completely written
  std::string problem;                         // why it is absent; one line without the path
  double age_s = 0;                            // since the file was last written, by its own time stamp
};

// nullopt if there is no OUT_DIR/status.json.
std::optional<StatusSighting> LookForStatus(const std::filesystem::path& out_dir);

// Whether the file is there, whatever it is.
bool HasStatus(const std::filesystem::path& out_dir);

}  // namespace plumbline::conformance
