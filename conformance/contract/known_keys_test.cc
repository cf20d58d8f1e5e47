// SPDX-License-Identifier: Apache-2.0
// What docs/config.md says of keys that are no setting of ours is what the parser does: which values of a fixed key are
// taken, which hints are kept, and that others are refused as unsupported.
#include "conformance/contract/known_keys.h"

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "conformance/contract/run_config.h"
#include "conformance/contract/split.h"
#include "conformance/contract/testing/config_document.h"
#include "conformance/contract/testing/error_message.h"

namespace plumbline::contract {
namespace {

using testing::ConfigWith;
using testing::ErrorMessage;
using testing::Rows;
using testing::Words;

RunConfig Parse(const std::string& json) { return ParseRunConfig(json, "config"); }

// What the second column of a row says, in values: those that are taken, those that ask for a feature that is not
// built, and those that are wrong whatever is built. `supported` is what the messages of the second kind end in.
struct Samples {
  Words taken, unbuilt, wrong;
  std::string supported;
};

// The words in backticks.
Words Quoted(const std::string& text) {
  const Words parts = Split(text, '`');
  Words quoted;
  for (size_t i = 1; i < parts.size(); i += 2) quoted.push_back(parts[i]);
  return quoted;
}

// The only value is a literal: all others of the list are another.
Samples OfLiteral(const std::string& literal) {
  Samples samples{{literal}, {}, {}, literal};
  for (const char* value : {"true", "false", "null", "0", "1", "-1", "7", "\"fp32\"", "\"mean\"", "{}", "[]"}) {
    if (value != literal) samples.unbuilt.push_back(value);
  }
  return samples;
}

// An object with a switch, whose other keys may be anything.
Samples OfSwitch(const std::string& name, const std::string& off) {
  const std::string key = "{\"" + name + "\":";
  return {{key + off + "}", key + off + ", \"others\": [\"auto\"]}"},
          {"{}", "true", "7"},
          {},
          "an object with " + name + " " + off};
}

Samples SamplesOf(const std::string& text) {
  const Words quoted = Quoted(text);
  if (text.starts_with('`')) return OfLiteral(quoted.at(0));
  Samples samples{{}, {}, {"-1", "\"auto\"", "[]"}, ""};
  if (text.starts_with("an object with ")) samples = OfSwitch(quoted.at(0), quoted.at(1));
  if (text.starts_with("an object of any keys")) samples.taken = {"{}", "{\"block_size\": 1048576}"};
  if (text == "an object") samples.taken = {"{}"};
  if (text == "true or false") samples.taken = {"true", "false"};
  if (text.starts_with("an integer from ")) samples.taken = {"1", "5e3", "1099511627776"};
  if (text.starts_with("0, or a number from ")) samples.taken = {"0", "0.5"};
  if (text.ends_with(", or `null`")) samples.taken.push_back("null");
  if (text.starts_with("debug, ")) samples.taken = {"\"debug\"", "\"critical\""};
  return samples;
}

TEST(KnownKeys, SaysWithWhichValuesAFixedKeySaysNothing) {
  const std::vector<Words> rows = Rows("Fixed");
  EXPECT_GT(rows.size(), 80u);
  for (const Words& row : rows) {
    const auto config = [&](const std::string& value) { return ConfigWith(row[0], "AdamW", "WarmupLR", value); };
    const RunConfig without = Parse(ConfigWith(row[0], "AdamW", "WarmupLR", std::nullopt));
    const Samples samples = SamplesOf(row[1]);
    EXPECT_FALSE(samples.taken.empty()) << row[0];
    for (const std::string& value : samples.taken) EXPECT_EQ(Parse(config(value)), without) << config(value);
    for (const std::string& value : samples.unbuilt) {
      EXPECT_EQ(
          ErrorMessage(ErrorCode::kUnsupported, [&] { Parse(config(value)); }),
          "config: " + row[0] + " is " + value + ", which is known but not built yet; supported: " + samples.supported);
    }
    for (const std::string& value : samples.wrong) {
      const std::string message = ErrorMessage(ErrorCode::kInvalidArgument, [&] { Parse(config(value)); });
      EXPECT_TRUE(message.starts_with("config: " + row[0] + " is ")) << message;
    }
  }
}

TEST(KnownKeys, SaysWhatTurnsAFeatureOn) {
  int switches = 0;
  for (const Words& row : Rows("Fixed")) {
    if (!row[1].starts_with("an object with ")) continue;
    const Words quoted = Quoted(row[1]);
    const std::string on = quoted[1] == "false" ? "true" : "\"cpu\"";
    const std::string json = ConfigWith(row[0], "AdamW", "WarmupLR", "{\"" + quoted[0] + "\": " + on + "}");
    EXPECT_EQ(ErrorMessage(ErrorCode::kUnsupported, [&] { Parse(json); }),
              "config: " + row[0] + "." + quoted[0] + " is " + on +
                  ", which is known but not built yet; supported: " + quoted[1]);
    ++switches;
  }
  EXPECT_GT(switches, 15);
}

TEST(KnownKeys, SaysWhichHintsThereAreAndTheirValues) {
  const std::vector<Words> rows = Rows("Hints");
  EXPECT_GT(rows.size(), 15u);
  for (const Words& row : rows) {
    const auto config = [&](const std::string& value) { return ConfigWith(row[0], "AdamW", "WarmupLR", value); };
    const RunConfig without = Parse(ConfigWith(row[0], "AdamW", "WarmupLR", std::nullopt));
    const Samples samples = SamplesOf(row[1]);
    EXPECT_GE(samples.taken.size(), 2u) << row[0];
    std::map<std::string, std::string> seen;
    for (const std::string& value : samples.taken) {
      RunConfig hinted = Parse(config(value));
      const std::string json = ToJson(hinted);
      EXPECT_EQ(Parse(json), hinted) << json;
      EXPECT_EQ(ToJson(Parse(json)), json);
      EXPECT_FALSE(hinted == without) << json;
      EXPECT_EQ(hinted.hints.size(), 1u);
      EXPECT_TRUE(seen.emplace(hinted.hints.at(row[0]), value).second) << value << " is another than the last";
      hinted.hints.clear();
      EXPECT_EQ(hinted, without) << "a hint changes nothing else";
    }
    for (const std::string& value : samples.wrong) {
      const std::string message = ErrorMessage(ErrorCode::kInvalidArgument, [&] { Parse(config(value)); });
      EXPECT_EQ(message.substr(message.find("; allowed: ") + 11), row[1]) << message;
    }
  }
}

TEST(KnownKeys, SaysWhichKnownKeysAreUnsupportedWhateverTheirValue) {
  const std::vector<Words> rows = Rows("Known and unsupported");
  EXPECT_GT(rows.size(), 15u);
  for (const Words& row : rows) {
    EXPECT_EQ(row[2], "unsupported");
    for (const char* value : {"null", "false", "0", "{\"enabled\": false}"}) {
      const std::string json = ConfigWith(row[0], "AdamW", "WarmupLR", value);
      const std::string message = ErrorMessage(ErrorCode::kUnsupported, [&] { Parse(json); });
      const std::string key = Split(row[0], '.').back();
      EXPECT_NE(message.find("key \"" + key + "\" is known but not built yet"), std::string::npos) << message;
    }
  }
}

}  // namespace
}  // namespace plumbline::contract
