// SPDX-License-Identifier: Apache-2.0
//
// The edits of this folder change this file; keep their texts unique.

#include "conformance/defects/testing/fake_sum.h"

namespace plumbline::defects::testing {

int SumTo(int count) {
  int sum = 0;
  for (int i = 1; i <= count; ++i) {
    sum += i;
  }
  return sum;
}

const char* FileOfSum() { return __FILE__; }
int LineOfSum() { return __LINE__; }

}  // namespace plumbline::defects::testing
