// SPDX-License-Identifier: Apache-2.0
//
// Looks defects up in the generated table. It knows no engine.

#include "conformance/defects/switch.h"

#include <stdexcept>
#include <string>

namespace plumbline::defects {

std::vector<std::string_view> Ids() {
  std::vector<std::string_view> ids;
  for (const Defect& defect : Defects()) ids.push_back(defect.id);
  return ids;
}

void Activate(std::string_view id) {
  std::string known;
  for (const Defect& defect : Defects()) {
    if (defect.id == id) {
      *defect.on = true;
      return;
    }
    known += (known.empty() ? "" : ", ") + std::string(defect.id);
  }
  throw std::invalid_argument("unknown defect '" + std::string(id) +
                              "'; known are: " + (known.empty() ? "none" : known));
}

void DeactivateAll() {
  for (const Defect& defect : Defects()) *defect.on = false;
}

}  // namespace plumbline::defects
