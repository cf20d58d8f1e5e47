// SPDX-License-Identifier: Apache-2.0
// What a diagnosis is expected to say of a failure.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "reports/record/record.h"

namespace plumbline::conformance {

// The hypothesis that comes first fits, has this name, and says this of its variant.
inline void ExpectBest(const reports::DivergenceRecord& record, const std::string& name, const std::string& what = "") {
  ASSERT_FALSE(record.hypotheses.empty()) << record.undiagnosed;
  EXPECT_EQ(record.hypotheses.front().name, name);
  EXPECT_TRUE(record.hypotheses.front().fits);
  EXPECT_NE(record.hypotheses.front().says.find(what), std::string::npos) << record.hypotheses.front().says;
  EXPECT_EQ(record.undiagnosed, "");
}

}  // namespace plumbline::conformance
