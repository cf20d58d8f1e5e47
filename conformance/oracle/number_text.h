// SPDX-License-Identifier: Apache-2.0
// Numbers in the sentences of verdicts. One that is not finite is "NaN", "Inf" or "-Inf", or "not finite" where only
// that is known. Not for records and traces, which other programs read: those are contract's.
#pragma once

#include <string>

namespace plumbline::conformance {

// Rounded to this many significant digits, without trailing zeros: for what is measured.
std::string ShortText(double value, int num_digits);

// The shortest decimal form that reads back as the same number: for what is compared bit for bit.
std::string ExactText(double value);

// The same for a number of a trace, which writes null for all that are not finite: it does not tell which.
std::string TraceText(double value);

}  // namespace plumbline::conformance
