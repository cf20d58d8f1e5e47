// SPDX-License-Identifier: Apache-2.0
//
// Depends on fake_sum by engine_deps, so that its twin must link fake_sum's twin. Its expression defect stands in the
// argument of a macro, where a copy must not place a directive.

#include "conformance/defects/testing/fake_engine.h"

#include <string>

#include "conformance/defects/testing/fake_sum.h"

namespace plumbline::defects::testing {

#define PLUMBLINE_FAKE_TWICE(x) (2 * (x))

int FakeStep(int count, int step) {
  int result = PLUMBLINE_FAKE_TWICE(SumTo(  // a comment inside of the edited text
      count));
  if (step > 0)
    result += step;
  else
    result -= 1000;
  return result;
}

#undef PLUMBLINE_FAKE_TWICE

namespace {
std::string last_argument;
}

int FakeMain(int argc, char** argv) {
  last_argument = argv[argc - 1];
  return argv[argc] == nullptr ? 40 + argc : -1;
}

std::string LastArgument() { return last_argument; }

}  // namespace plumbline::defects::testing
