// SPDX-License-Identifier: Apache-2.0
// What the tests of error paths share: the message of the Error that an action throws.
// It demands the error's code and that the message is one line, so no test has to.
#pragma once

#include <gtest/gtest.h>

#include <exception>
#include <string>

#include "conformance/contract/error.h"

namespace plumbline::contract::testing {

// The message of the Error with this code that action() throws. Where it throws no error or another one, or a message
// of several lines, the test fails, and what was thrown instead is the result.
template <typename Action>
std::string ErrorMessage(ErrorCode code, Action&& action) {
  try {
    action();
  } catch (const Error& error) {
    const std::string message = error.what();
    EXPECT_EQ(static_cast<int>(error.code()), static_cast<int>(code)) << message;
    EXPECT_EQ(message.find_first_of("\n\r"), std::string::npos) << "several lines: " << message;
    return message;
  } catch (const std::exception& other) {
    ADD_FAILURE() << "threw something that is not an Error: " << other.what();
    return other.what();
  }
  ADD_FAILURE() << "threw nothing";
  return "nothing";
}

}  // namespace plumbline::contract::testing
