// SPDX-License-Identifier: Apache-2.0
// The variables of launchers, and every way in which they can be wrong.
#include "optimized/engine/process_place.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "conformance/contract/error.h"

namespace plumbline::optimized {
namespace {

using ::testing::HasSubstr;
using Values = std::map<std::string, std::string>;

ProcessPlace Place(const Values& values) {
  return PlaceOf([&](const char* name) {
    const auto found = values.find(name);
    return found == values.end() ? nullptr : found->second.c_str();
  });
}

Values Good() {
  return {{"RANK", "1"}, {"LOCAL_RANK", "1"}, {"WORLD_SIZE", "4"}, {"MASTER_ADDR", "node7"}, {"MASTER_PORT", "29500"}};
}

Values With(const std::string& name, const std::string& value) {
  Values values = Good();
  values[name] = value;
  return values;
}

TEST(ProcessPlace, IsWhatTheVariablesSay) {
  const ProcessPlace place = Place(Good());
  EXPECT_EQ(place.rank, 1);
  EXPECT_EQ(place.size, 4);
  EXPECT_EQ(place.address, "node7");
  EXPECT_EQ(place.port, 29500);
  EXPECT_FALSE(place.hosts_store);
}

TEST(ProcessPlace, RankZeroHostsTheStoreUnlessTheAgentOfTorchrunDoes) {
  Values values = With("RANK", "0");
  EXPECT_TRUE(Place(values).hosts_store);
  values["TORCHELASTIC_USE_AGENT_STORE"] = "False";
  EXPECT_TRUE(Place(values).hosts_store);
  values["TORCHELASTIC_USE_AGENT_STORE"] = "True";
  EXPECT_FALSE(Place(values).hosts_store);
}

TEST(ProcessPlace, RestartsOfTorchrunAreToldApart) {
  EXPECT_EQ(Place(Good()).attempt, 0);
  EXPECT_EQ(Place(With("TORCHELASTIC_RESTART_COUNT", "2")).attempt, 2);
}

TEST(ProcessPlace, WithoutLocalRankNothingIsMissed) {
  Values values = Good();
  values.erase("LOCAL_RANK");
  EXPECT_EQ(Place(values).rank, 1);
}

// What it says of these values.
std::string Complaint(const Values& values) {
  try {
    Place(values);
    return "nothing";
  } catch (const contract::Error& error) {
    EXPECT_EQ(error.code(), contract::ErrorCode::kInvalidArgument);
    return error.what();
  }
}

TEST(ProcessPlace, AVariableThatIsMissingIsNamed) {
  for (const std::string name : {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"}) {
    EXPECT_THAT(Complaint(With(name, "")), HasSubstr(name + " is not set"));
    Values values = Good();
    values.erase(name);
    EXPECT_THAT(Complaint(values), HasSubstr(name + " is not set"));
  }
}

TEST(ProcessPlace, AVariableThatIsWrongIsNamedWithWhatIsAllowed) {
  EXPECT_THAT(Complaint(With("RANK", "4")), HasSubstr("RANK is \"4\"; allowed: 0 to 3"));
  EXPECT_THAT(Complaint(With("WORLD_SIZE", "1")), HasSubstr("RANK is \"1\"; allowed: 0 to 0"));
  for (const std::string value : {"-1", "one", "1 ", " 1", "1.0", "99999999999999999999"}) {
    EXPECT_THAT(Complaint(With("RANK", value)), HasSubstr("RANK is \"" + value + "\""));
  }
  EXPECT_THAT(Complaint(With("WORLD_SIZE", "0")), HasSubstr("WORLD_SIZE is \"0\"; allowed: 1 to"));
  EXPECT_THAT(Complaint(With("LOCAL_RANK", "4")), HasSubstr("LOCAL_RANK is \"4\""));
  for (const std::string value : {"0", "65536"}) {
    EXPECT_THAT(Complaint(With("MASTER_PORT", value)), HasSubstr("MASTER_PORT is \"" + value + "\""));
  }
}

}  // namespace
}  // namespace plumbline::optimized
