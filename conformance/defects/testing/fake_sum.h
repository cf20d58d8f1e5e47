// SPDX-License-Identifier: Apache-2.0
//
// A sum, as small as code can be that a defect is planted in. For the tests of this folder only.
#pragma once

namespace plumbline::defects::testing {

// 1 + 2 + ... + count; 0 if count is not positive.
int SumTo(int count);

// The file that the compiler believes it compiled, and the line of the call inside it.
const char* FileOfSum();
int LineOfSum();

}  // namespace plumbline::defects::testing
