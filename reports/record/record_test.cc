// SPDX-License-Identifier: Apache-2.0
// Round trips, foreign bytes, totals, and the whole truth table of the exit code.
#include "reports/record/record.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <fstream>
#include <limits>
#include <random>

#include "reports/record/testing/example.h"

namespace plumbline::reports {
namespace {

const std::string kNoRecord = "not a record (record.json of `verify` or `merge`): ";

std::string Rejection(const std::string& json) {
  try {
    ParseRecord(json, "r.json");
  } catch (const RecordError& error) {
    EXPECT_EQ(std::string(error.what()).substr(0, 8), "r.json: ");
    return std::string(error.what()).substr(8);
  }
  ADD_FAILURE() << "accepted: " << json.substr(0, 200);
  return "";
}

// The example with one piece of its text replaced, which must occur exactly once.
std::string Edited(const std::string& from, const std::string& to) {
  std::string json = ToJson(ExampleRecord());
  const size_t at = json.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  EXPECT_EQ(json.find(from, at + 1), std::string::npos) << from;
  return at == std::string::npos ? json : json.replace(at, from.size(), to);
}

TEST(Record, RoundTripIsExact) {
  Record record = ExampleRecord();
  EXPECT_EQ(ParseRecord(ToJson(record), "r.json"), record);
  record.seed = std::numeric_limits<uint64_t>::max();
  record.cases[0].seconds = 0.1 + 0.2;
  record.cases[1].seconds = 5e-324;
  record.cases[0].checks[0].compared = std::numeric_limits<int64_t>::max();
  record.cases[0].message = std::string("\0\x01\"\\/\n\xE2\x82\xAC\xF0\x9F\x98\x80", 13);
  record.cases[0].axes = {{"", ""}, {"a\"b", "\t"}};
  EXPECT_EQ(ParseRecord(ToJson(record), "r.json"), record);
}

TEST(Record, RoundTripOfTheSmallestIsExact) {
  Record record;
  record.created = "2030-01-31T23:59:59Z";
  EXPECT_EQ(ParseRecord(ToJson(record), "r.json"), record);
}

TEST(Record, RoundTripThroughAFileIsExact) {
  const std::filesystem::path path =
      std::filesystem::path(testing::TempDir()) / ("record." + std::to_string(getpid()) + ".json");
  WriteRecord(path, ExampleRecord());
  WriteRecord(path, ExampleRecord());  // over an old one
  EXPECT_EQ(ReadRecord(path), ExampleRecord());
  EXPECT_FALSE(std::filesystem::exists(path.string() + ".tmp"));
  std::filesystem::remove(path);
  EXPECT_THROW(ReadRecord(path), RecordError);
  EXPECT_THROW(ReadRecord(testing::TempDir()), RecordError);
  EXPECT_THROW(WriteRecord(path / "no" / "folder", ExampleRecord()), RecordError);
}

TEST(Record, InvalidUtf8IsReplacedAndDoesNotLoseTheRecord) {
  Record record = ExampleRecord();
  record.cases[0].message = "a\xFF z";
  EXPECT_EQ(ParseRecord(ToJson(record), "r.json").cases[0].message, "a\xEF\xBF\xBD z");
}

TEST(Record, WriterRefusesWhatTheReaderWould) {
  const auto refused = [](const auto& edit) {
    Record record = ExampleRecord();
    edit(record);
    EXPECT_THROW(ToJson(record), RecordError);
  };
  refused([](Record& r) { r.cases[1].seconds = std::nan(""); });
  refused([](Record& r) { r.cases[1].seconds = std::numeric_limits<double>::infinity(); });
  refused([](Record& r) { r.cases[1].seconds = -1; });
  refused([](Record& r) { r.created = "yesterday"; });
  refused([](Record& r) { r.created = "2030-01-31T23:59:59+"; });
  refused([](Record& r) { r.shard = {.index = 0, .count = 2}; });
  refused([](Record& r) { r.shard = {.index = 3, .count = 2}; });
  refused([](Record& r) { r.listed = -1; });
  refused([](Record& r) { r.exit_code = 256; });
  refused([](Record& r) { r.totals.pass = -1; });
  refused([](Record& r) { r.cases[0].checks[0].compared = -1; });
  refused([](Record& r) { r.defects[0].first_step = -2; });
  refused([](Record& r) { r.missing_shards = {0}; });
}

TEST(Record, EveryKeyIsRequired) {
  const std::string json = ToJson(ExampleRecord());
  size_t num_keys = 0;
  for (size_t at = json.find("\": "); at != std::string::npos; at = json.find("\": ", at + 1)) {
    const size_t begin = json.rfind('"', at - 1);
    const std::string key = json.substr(begin + 1, at - begin - 1);
    // Entries of maps are free.
    if (key == "commit" || key == "cores" || key == "text_file" || key == "jobs" || key == "data" || key == "zero")
      continue;
    std::string renamed = json;
    renamed.insert(at, "_");
    EXPECT_NE(Rejection(renamed).find("\"" + key), std::string::npos) << key;
    ++num_keys;
  }
  EXPECT_GT(num_keys, 60u);
}

TEST(Record, UnknownKeysAreNamed) {
  EXPECT_EQ(Rejection(Edited("\"interrupted\": false", "\"interrupted\": false, \"extra\": 1")),
            "the record has the unknown key \"extra\"");
  EXPECT_EQ(Rejection(Edited("\"index\": 1", "\"index\": 1, \"extra\": 1")), "shard has the unknown key \"extra\"");
  EXPECT_EQ(Rejection(Edited("\"steps\": 60", "\"steps\": 60, \"extra\": 1")),
            "cases[0] has the unknown key \"extra\"");
}

TEST(Record, RepeatedKeysAreNamed) {
  EXPECT_EQ(Rejection(Edited("\"interrupted\": false", "\"interrupted\": true, \"interrupted\": false")),
            "the key \"interrupted\" appears twice in one object");
  EXPECT_EQ(Rejection(Edited("\"zero\": \"2\"", "\"zero\": \"1\", \"zero\": \"2\"")),
            "the key \"zero\" appears twice in one object");
}

TEST(Record, WrongTypesAreNamedWithTheirPlace) {
  EXPECT_EQ(Rejection(Edited("\"steps\": 60", "\"steps\": 60.0")),
            "cases[0].steps is 60.0; allowed: a signed 64-bit integer");
  EXPECT_EQ(Rejection(Edited("\"steps\": 60", "\"steps\": 9223372036854775808")),
            "cases[0].steps is 9223372036854775808; allowed: a signed 64-bit integer");
  EXPECT_EQ(Rejection(Edited("\"seed\": 7", "\"seed\": -7")), "seed is -7; allowed: an unsigned 64-bit integer");
  EXPECT_EQ(Rejection(Edited("\"seed\": 7", "\"seed\": 18446744073709551616")).substr(0, 8), "seed is ");
  EXPECT_EQ(Rejection(Edited("\"seed\": 7", "\"seed\": null")), "seed is null; allowed: an unsigned 64-bit integer");
  EXPECT_EQ(Rejection(Edited("\"interrupted\": false", "\"interrupted\": 0")),
            "interrupted is 0; allowed: true or false");
  EXPECT_EQ(Rejection(Edited("\"zero\": \"2\"", "\"zero\": 2")), "cases[0].axes.zero is 2; allowed: a string");
  EXPECT_EQ(Rejection(Edited("\"verdict\": \"VACUOUS\"", "\"verdict\": \"vacuous\"")),
            "cases[5].verdict is \"vacuous\"; allowed: PASS, FAIL, ERROR, UNSUPPORTED, NOT_RUN, VACUOUS");
  EXPECT_EQ(Rejection(Edited("\"seconds\": 0.25", "\"seconds\": -0.25")).substr(0, 19), "cases[0].seconds is");
  EXPECT_EQ(Rejection(Edited("\"seconds\": 0.25", "\"seconds\": 1e999")), kNoRecord + "a number is out of range");
}

TEST(Record, AnotherSchemaIsNamedBeforeItsKeysAre) {
  EXPECT_EQ(Rejection("{\"schema\": 3, \"verdicts\": []}"), "schema is 3; allowed: 2");
}

TEST(Record, BytesThatAreNoRecordAreRejected) {
  for (const char* text :
       {"", "{", "null", "[]", "{}", "3", "\"x\"", "{\"schema\": 2}", "{\"schema\": \"1\"}", "\xFF", "// c\n{}"}) {
    Rejection(text);
  }
  EXPECT_EQ(Rejection(""), kNoRecord + "it is empty");
  EXPECT_EQ(Rejection(" \n"), kNoRecord + "it is empty");
  EXPECT_EQ(Rejection("# Title"), kNoRecord + "no JSON from line 1, column 1 on");
  EXPECT_EQ(Rejection("{\n\"schema\": 2,\n \"a\": x"), kNoRecord + "no JSON from line 3, column 7 on");
  EXPECT_EQ(Rejection("[1]"), kNoRecord + "it is [1]");
  EXPECT_EQ(Rejection("{\"id\": 1}"), kNoRecord + "it has no \"schema\"");
  EXPECT_EQ(Rejection(std::string(100'000, '[')), "nested deeper than 8 levels");
  std::string deep;
  for (int i = 0; i < 100'000; ++i) deep += "{\"a\":";
  EXPECT_EQ(Rejection(deep), "nested deeper than 8 levels");
  Rejection(ToJson(ExampleRecord()) + "x");
}

TEST(Record, FileBeyondTheLimitIsRefusedWithoutReadingIt) {
  const std::filesystem::path path =
      std::filesystem::path(testing::TempDir()) / ("large." + std::to_string(getpid()) + ".json");
  std::ofstream(path) << "{";
  std::filesystem::resize_file(path, kMaxRecordBytes << 15);  // sparse: more than memory can hold
  EXPECT_THROW(ReadRecord(path), RecordError);
  std::filesystem::remove(path);
}

// Whatever the bytes, the reader gives a record that survives another round, or a RecordError.
TEST(Record, DamagedBytesAreRejectedOrReadConsistently) {
  const std::string original = ToJson(ExampleRecord());
  std::mt19937 random(1);
  int num_accepted = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string json = original;
    const size_t edits = 1 + random() % 3;
    for (size_t i = 0; i < edits; ++i) {
      const size_t at = random() % json.size();
      if (random() % 3 == 0) {
        json.erase(at, random() % 20);
      } else {
        json[at] = static_cast<char>(random() % 2 == 0 ? random() % 256 : original[random() % original.size()]);
      }
    }
    try {
      const Record record = ParseRecord(json, "r.json");
      EXPECT_EQ(ParseRecord(ToJson(record), "r.json"), record);
      ++num_accepted;
    } catch (const RecordError&) {
    }
  }
  EXPECT_GT(num_accepted, 0);
  EXPECT_LT(num_accepted, 3000);
}

TEST(Totals, CountEveryVerdict) {
  EXPECT_EQ(Totals(ExampleRecord()),
            (VerdictTotals{.pass = 2, .fail = 1, .error = 1, .unsupported = 1, .not_run = 1, .vacuous = 1}));
  EXPECT_EQ(Totals(Record{}).sum(), 0);
}

TEST(Totals, MustBeWhatTheCasesSayAndAddUpToTheList) {
  Record record = ExampleRecord();
  CheckTotals(record);
  ++record.listed;
  EXPECT_THROW(CheckTotals(record), RecordError);
  record = ExampleRecord();
  ++record.totals.pass;
  --record.totals.fail;
  EXPECT_THROW(CheckTotals(record), RecordError);
  record = ExampleRecord();
  record.cases.pop_back();
  EXPECT_THROW(CheckTotals(record), RecordError);
}

// Cases with these verdicts; an unsupported one is expected if its name is "expected".
Record WithVerdicts(const std::vector<std::string>& verdicts) {
  Record record;
  for (const std::string& text : verdicts) {
    CaseRecord entry;
    entry.id = std::to_string(record.cases.size());
    entry.expected_unsupported = text == "expected";
    for (Verdict verdict : kVerdicts) {
      if (Name(verdict) == text) entry.verdict = verdict;
    }
    if (text == "expected") entry.verdict = Verdict::kUnsupported;
    record.cases.push_back(entry);
  }
  record.listed = static_cast<int64_t>(record.cases.size());
  record.totals = Totals(record);
  return record;
}

TEST(ExitCode, NeedsAPassAndNothingUnacceptable) {
  struct Row {
    std::vector<std::string> verdicts;
    int lenient;
    int with_require;
  };
  const Row rows[] = {
      {{}, 1, 1},
      {{"PASS"}, 0, 0},
      {{"PASS", "PASS", "PASS"}, 0, 0},
      {{"PASS", "FAIL"}, 1, 1},
      {{"PASS", "ERROR"}, 1, 1},
      {{"PASS", "VACUOUS"}, 1, 1},
      {{"PASS", "UNSUPPORTED"}, 1, 1},
      {{"PASS", "expected"}, 0, 0},
      {{"expected", "PASS", "NOT_RUN"}, 0, 1},
      {{"PASS", "NOT_RUN"}, 0, 1},
      {{"NOT_RUN"}, 1, 1},
      {{"expected", "expected"}, 1, 1},
      {{"expected", "NOT_RUN"}, 1, 1},
      {{"VACUOUS"}, 1, 1},
  };
  for (const Row& row : rows) {
    const Record record = WithVerdicts(row.verdicts);
    EXPECT_EQ(ExitCodeFor(record, false), row.lenient) << testing::PrintToString(row.verdicts);
    EXPECT_EQ(ExitCodeFor(record, true), row.with_require) << testing::PrintToString(row.verdicts);
  }
}

TEST(ExitCode, IsAFailureWhenAnythingIsAmiss) {
  const Record good = WithVerdicts({"PASS", "expected"});
  const auto expect_failure = [&](const auto& edit) {
    Record record = good;
    edit(record);
    EXPECT_EQ(ExitCodeFor(record, false), 1);
  };
  EXPECT_EQ(ExitCodeFor(good, false), 0);
  expect_failure([](Record& r) { r.interrupted = true; });
  expect_failure([](Record& r) { r.missing_shards = {2}; });
  expect_failure([](Record& r) { r.listed = 3; });
  expect_failure([](Record& r) { r.totals.pass = 2; });
  expect_failure([](Record& r) { r.defects = {DefectRecord{.id = "G1"}}; });
  Record caught = good;
  caught.defects = {DefectRecord{.id = "G1", .caught = true, .verdict = Verdict::kFail}};
  EXPECT_EQ(ExitCodeFor(caught, false), 0);
}

TEST(Finish, SetsTotalsAndExitCodeButNotTheList) {
  Record record = WithVerdicts({"PASS", "PASS"});
  record.totals = {};
  record.exit_code = 5;
  Finish(record, false);
  EXPECT_EQ(record.totals.pass, 2);
  EXPECT_EQ(record.exit_code, 0);
  record.listed = 3;
  Finish(record, false);
  EXPECT_EQ(record.listed, 3);
  EXPECT_EQ(record.exit_code, 1);
}

}  // namespace
}  // namespace plumbline::reports
