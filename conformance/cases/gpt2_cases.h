// SPDX-License-Identifier: Apache-2.0
// The cases of family gpt2: what is trained, in layouts (layouts.h) at strength two. Between them the problems have a
// tied and an untied head, frozen and unused parameters, dropout, two groups with rates and decay of their own, AdamW
// and SGD with and without momentum, clipping that is crossed, not crossed and absent, and every schedule.
#pragma once

#include "conformance/cases/problem.h"

namespace plumbline::conformance {

// One problem has SGD without momentum, clipping or decay: Adam and clipping hide constant factors.
CaseList Gpt2Cases();

}  // namespace plumbline::conformance
