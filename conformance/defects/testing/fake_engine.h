// SPDX-License-Identifier: Apache-2.0
//
// A fake engine for the tests of this folder: a main that trains nothing.
#pragma once

#include <string>

namespace plumbline::defects::testing {

// The sum 1 ... count, doubled, plus the number of the last step.
int FakeStep(int count, int step);

// Remembers its last argument, returns 40 + the number of arguments.
int FakeMain(int argc, char** argv);
std::string LastArgument();

}  // namespace plumbline::defects::testing
