// SPDX-License-Identifier: Apache-2.0
// JUnit XML of a record, as CI systems read it: a test suite of cases, and one of planted defects if there are any.
//   FAIL -> failure; ERROR, VACUOUS and an UNSUPPORTED that was not expected -> error;
//   NOT_RUN and an expected UNSUPPORTED -> skipped; a defect that was not caught -> failure.
// CI systems treat skipped as fine: whether NOT_RUN is (`--require`) is for the exit code, not for this file.
#pragma once

#include <string>
#include <string_view>

#include "reports/record/record.h"

namespace plumbline::reports {

std::string ToJunitXml(const Record& record);

// Text for XML 1.0 element content and attribute values: & < > " ' become entities, tab and line ends character
// references; characters that XML 1.0 has no way to express, and bytes that are not UTF-8, become U+FFFD.
std::string EscapeXml(std::string_view text);

}  // namespace plumbline::reports
