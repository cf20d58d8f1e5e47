// SPDX-License-Identifier: Apache-2.0
// The layouts of all families of a tier, for tests of what is chosen from them.
#pragma once

#include "conformance/cases/exact_cases.h"
#include "conformance/cases/gpt2_cases.h"
#include "conformance/cases/layouts.h"
#include "conformance/cases/llama_cases.h"

namespace plumbline::conformance {

inline CaseList ListOf(Tier tier) {
  CaseList list = ExactCases(tier);
  Append(list, Gpt2Cases(tier));
  Append(list, LlamaCases(tier));
  return list;
}

}  // namespace plumbline::conformance
