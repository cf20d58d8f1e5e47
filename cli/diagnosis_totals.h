// SPDX-License-Identifier: Apache-2.0
// The count over planted defects of how often place and hypothesis of the first divergence are what their edits say.
// No judgement: it changes no verdict.
#pragma once

#include <string>

#include "reports/record/record.h"

namespace plumbline::cli {

// Whether the place is what the edit's `expect` names: every "step N", "tensor NAME" and "rank N" in it, of several
// with "or" one each. `named` is false where it names none of them.
struct PlaceVerdict {
  bool named = false;
  bool right = false;
};
PlaceVerdict JudgePlace(const reports::DefectRecord& defect);

// The best hypothesis fits and is the expected one, or fits as well as the best.
bool FoundHypothesis(const reports::DefectRecord& defect);

// "Of those caught: place right in 60 of 62 ...; hypothesis right in 40 of 50 ..."; empty where none is caught.
std::string DiagnosisTotals(const reports::Record& record);

}  // namespace plumbline::cli
