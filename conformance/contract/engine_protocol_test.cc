// SPDX-License-Identifier: Apache-2.0
// The command line of an engine as docs/formats.md states it: output, exit codes, status files, and what becomes of a
// batch when cases of it go wrong.
#include "conformance/contract/engine_protocol.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "conformance/contract/error.h"
#include "conformance/contract/file_io.h"
#include "conformance/contract/testing/error_message.h"
#include "conformance/contract/testing/temporary_folder.h"

namespace plumbline::contract {
namespace {

using testing::ErrorMessage;
using testing::TemporaryFolder;

EngineDescription Description() {
  EngineDescription description;
  description.name = "opti\"mized";
  description.version = "0.1";
  description.starts_itself = false;
  description.batch = true;
  description.families = {"exact"};
  description.dtypes = {"fp32", "bf16"};
  description.optimizers = {"ModularMomentum", "ModularSGD"};
  description.zero_stages = {0, 1, 2, 3};
  description.max_data_degree = 64;
  description.features = {"dropout", "ledger"};
  return description;
}

std::string Replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

struct Result {
  int exit_code;
  std::string out, err;
};

Result Main(std::vector<std::string> arguments, const RunCase& run) {
  std::vector<const char*> argv = {"engine"};
  for (const std::string& argument : arguments) argv.push_back(argument.c_str());
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  const int exit_code = EngineMain(static_cast<int>(argv.size()), argv.data(), Description(), run);
  const std::string out = ::testing::internal::GetCapturedStdout();
  return {exit_code, out, ::testing::internal::GetCapturedStderr()};
}

const RunCase kNeverRun = [](const auto&, const auto&) { ADD_FAILURE() << "a case was run"; };

CaseStatus StatusIn(const std::filesystem::path& out_dir) {
  return ParseCaseStatus(ReadFile(out_dir / "status.json"), "status.json");
}

TEST(EngineDescription, RoundTrips) {
  for (EngineDescription description : {Description(), EngineDescription{}}) {
    const EngineDescription read = ParseEngineDescription(ToJson(description), "describe");
    EXPECT_EQ(read.name, description.name);
    EXPECT_EQ(read.version, description.version);
    EXPECT_EQ(read.starts_itself, description.starts_itself);
    EXPECT_EQ(read.batch, description.batch);
    EXPECT_EQ(read.families, description.families);
    EXPECT_EQ(read.dtypes, description.dtypes);
    EXPECT_EQ(read.optimizers, description.optimizers);
    EXPECT_EQ(read.zero_stages, description.zero_stages);
    EXPECT_EQ(read.max_data_degree, description.max_data_degree);
    EXPECT_EQ(read.features, description.features);
  }
  EXPECT_TRUE(Description().Has("ledger"));
  EXPECT_FALSE(Description().Has("ledge"));
  EXPECT_FALSE(Description().Has(""));
}

TEST(EngineDescription, ReadsTheExampleOfTheDocument) {
  const EngineDescription read = ParseEngineDescription(
      R"({"protocol": 1, "name": "optimized", "version": "0.1", "start": "self", "batch": true,
 "families": ["exact"], "dtypes": ["fp32", "bf16"], "optimizers": ["ModularMomentum", "ModularSGD"],
 "zero_stages": [0, 1, 2], "max_data_degree": 64, "features": ["dropout", "grouped_heads", "accumulation", "ledger", "dump"]})",
      "describe");
  EXPECT_TRUE(read.starts_itself);
  EXPECT_TRUE(read.Has("dump"));
}

TEST(EngineDescription, HasANameThatFitsALine) {
  EngineDescription description = Description();
  for (std::string* name : {&description.name, &description.version}) {
    const std::string before = *name;
    *name = std::string(100, 'n');
    EXPECT_EQ(ParseEngineDescription(ToJson(description), "describe").name, description.name);
    for (const std::string& wrong : {std::string(101, 'n'), std::string("two\nlines"), std::string("\x1b[2J")}) {
      *name = wrong;
      const std::string message =
          ErrorMessage(ErrorCode::kInvalidArgument, [&] { ParseEngineDescription(ToJson(description), "describe"); });
      EXPECT_NE(message.find("; allowed: a string of at most 100 bytes without control characters"), std::string::npos)
          << message;
      EXPECT_EQ(message.find_first_of("\n\x1b"), std::string::npos) << message;
    }
    *name = before;
  }
}

TEST(EngineDescription, DemandsEveryKeyAndNamesWhatIsWrong) {
  const std::string json = ToJson(Description());
  for (const char* key : {"protocol", "name", "version", "start", "batch", "families", "dtypes", "optimizers",
                          "zero_stages", "max_data_degree", "features"}) {
    const std::string quoted = "\"" + std::string(key) + "\":";
    const std::string message = ErrorMessage(ErrorCode::kInvalidArgument, [&] {
      ParseEngineDescription(Replaced(json, quoted, "\"zzzzzzzzzzzzzzzzzzzzzzzz\":"), "describe");
    });
    EXPECT_EQ(message.find("describe: unknown key \"zzzz"), 0u) << message;
    // Without the key: put what it had under a key that has been removed, by cutting the pair out.
    const size_t begin = json.find(quoted);
    size_t depth = 0, end = begin;
    for (; end < json.size(); ++end) {
      depth += json[end] == '[';
      depth -= json[end] == ']';
      if ((json[end] == ',' && depth == 0) || json[end] == '}') break;
    }
    std::string without = json;
    const bool last = json[end] == '}';
    without.erase(last ? json.rfind(',', begin) : begin,
                  (last ? end : end + 1) - (last ? json.rfind(',', begin) : begin));
    const std::string missing =
        ErrorMessage(ErrorCode::kInvalidArgument, [&] { ParseEngineDescription(without, "describe"); });
    EXPECT_EQ(missing.find("describe: " + std::string(key) + " is missing; allowed: "), 0u) << missing;
  }
  const struct {
    std::string from, to, message;
  } kTable[] = {
      {"\"protocol\": 1", "\"protocol\": 2", "describe: protocol is 2; allowed: an integer from 1 to 1"},
      {"\"per_rank\"", "\"each\"", "describe: start is \"each\"; allowed: self, per_rank"},
      {"\"batch\": true", "\"batch\": 1", "describe: batch is 1; allowed: true or false"},
      {"[0, 1, 2, 3]", "[0, 4]", "describe: zero_stages[1] is 4; allowed: an integer from 0 to 3"},
      {"64", "0", "describe: max_data_degree is 0; allowed: an integer from 1 to 1048576"},
      {"[\"exact\"]", "\"exact\"", "describe: families is \"exact\"; allowed: an array"},
      {"[\"exact\"]", "[1]", "describe: families[0] is 1; allowed: a string"},
  };
  for (const auto& [from, to, message] : kTable) {
    EXPECT_EQ(ErrorMessage(ErrorCode::kInvalidArgument,
                           [&, from = from, to = to] { ParseEngineDescription(Replaced(json, from, to), "describe"); }),
              message);
  }
}

TEST(CaseStatus, RoundTripsEveryKind) {
  using Kind = CaseStatus::Kind;
  for (Kind kind : {Kind::kOk, Kind::kUnsupported, Kind::kEnvironment, Kind::kError}) {
    const CaseStatus read = ParseCaseStatus(ToJson({kind, "line 1\nline \"2\""}), "status.json");
    EXPECT_EQ(read.kind, kind);
    EXPECT_EQ(read.message, "line 1\nline \"2\"");
  }
  EXPECT_EQ(ToJson(CaseStatus{}), "{\"status\": \"ok\", \"message\": \"\"}\n");
}

TEST(CaseStatus, NamesWhatIsWrong) {
  const struct {
    const char *json, *message;
  } kTable[] = {
      {"", "s: is empty; a JSON value is expected"},
      {R"({"status": "fine", "message": ""})", "s: status is \"fine\"; allowed: ok, unsupported, environment, error"},
      {R"({"status": "ok"})", "s: message is missing; allowed: a string"},
      {R"({"message": ""})", "s: status is missing; allowed: ok, unsupported, environment, error"},
      {R"({"status": "ok", "message": "", "rank": 0})", "s: unknown key \"rank\"; allowed: status, message"},
      {R"({"status": "ok", "message": null})", "s: message is null; allowed: a string"},
  };
  for (const auto& [json, message] : kTable) {
    EXPECT_EQ(ErrorMessage(ErrorCode::kInvalidArgument, [json = json] { ParseCaseStatus(json, "s"); }), message);
  }
}

TEST(BatchList, RoundTripsAlsoWithoutAtTheLastNewline) {
  const std::vector<BatchEntry> list = {{"a/case 1", "a/out \"1\""}, {"b", "c"}};
  std::string text = ToJson(list);
  for (int i = 0; i < 2; ++i) {
    const std::vector<BatchEntry> read = ParseBatchList(text, "list");
    ASSERT_EQ(read.size(), 2u);
    EXPECT_EQ(read[0].case_dir, "a/case 1");
    EXPECT_EQ(read[0].out_dir, "a/out \"1\"");
    EXPECT_EQ(read[1].case_dir, "b");
    EXPECT_EQ(read[1].out_dir, "c");
    text.pop_back();  // the newline
  }
  EXPECT_TRUE(ParseBatchList("", "list").empty());
}

TEST(BatchList, NamesTheLineThatIsWrong) {
  const std::string good = "{\"case\": \"a\", \"out\": \"b\"}\n";
  const struct {
    std::string text, message;
  } kTable[] = {
      {good + "{\"case\": \"a\"}\n" + good, "list:2: out is missing; allowed: a string"},
      {good + "\n" + good, "list:2: is empty; a JSON value is expected"},
      {good + good + "{\"case\": \"a\", \"ou", "list:3: not valid JSON at line 1, column 18"},
      {"{\"case\": 1, \"out\": \"b\"}", "list:1: case is 1; allowed: a string"},
      {"{\"case\": \"a\", \"out\": \"b\", \"x\": 1}", "list:1: unknown key \"x\"; allowed: case, out"},
      {"[" + good, "list:1: not valid JSON at line 1, column 27"},
  };
  for (const auto& [text, message] : kTable) {
    EXPECT_EQ(ErrorMessage(ErrorCode::kInvalidArgument, [&, text = text] { ParseBatchList(text, "list"); }), message);
  }
}

TEST(EngineMain, DescribesItselfOnStandardOutput) {
  const Result result = Main({"describe"}, kNeverRun);
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.out, ToJson(Description()));
  EXPECT_EQ(result.err, "");
}

TEST(EngineMain, ExplainsItselfWhenAskedOrUsedWrongly) {
  const std::vector<std::vector<std::string>> kWrong = {
      {},
      {"descrbe"},
      {"describe", "more"},
      {"run"},
      {"run", "--case", "a"},
      {"run", "--out", "b"},
      {"run", "--case", "a", "--out"},
      {"run", "--case", "a", "--out", "b", "--batch", "c"},
      {"run", "--batch", "c", "--out", "b"},
      {"run", "--batch"},
      {"run", "--batch", "c", "--batch", "d"},
      {"run", "--case", "a", "--case", "a", "--out", "b"},
      {"run", "--case", "a", "--out", "b", "rest"},
      {"run", "--case=a", "--out=b"},
      {"run", "a", "b"},
      {"--case", "a", "--out", "b"},
  };
  for (const std::vector<std::string>& arguments : kWrong) {
    const Result result = Main(arguments, kNeverRun);
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_EQ(result.out, "");
    EXPECT_EQ(result.err.find("usage: ENGINE describe\n"), 0u);
  }
  const Result help = Main({"--help"}, kNeverRun);
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_EQ(help.out.find("usage: ENGINE describe\n"), 0u);
  EXPECT_EQ(help.err, "");
}

TEST(EngineMain, RunsOneCaseWithTheArgumentsInEitherOrder) {
  const TemporaryFolder folder;
  int num_runs = 0;
  const RunCase run = [&](const std::filesystem::path& case_dir, const std::filesystem::path& out_dir) {
    EXPECT_EQ(case_dir, "the case");
    EXPECT_EQ(out_dir, folder.path());
    EXPECT_FALSE(std::filesystem::exists(out_dir / "status.json")) << "a status before the end";
    ++num_runs;
  };
  const std::string out = folder.path().string();
  EXPECT_EQ(Main({"run", "--case", "the case", "--out", out}, run).exit_code, 0);
  EXPECT_EQ(ReadFile(folder / "status.json"), "{\"status\": \"ok\", \"message\": \"\"}\n");
  std::filesystem::remove(folder / "status.json");
  EXPECT_EQ(Main({"run", "--out", out, "--case", "the case"}, run).exit_code, 0);
  EXPECT_EQ(num_runs, 2);
}

TEST(EngineMain, EndsWithTheCodeAndTheStatusOfWhatWentWrong) {
  using Kind = CaseStatus::Kind;
  struct Row {
    std::function<void()> action;
    Kind kind;
    int exit_code;
    std::string message;
  };
  for (const Row& row : {
           Row{[] { Fail(ErrorCode::kUnsupported, "no zero stage 3"); }, Kind::kUnsupported, 3, "no zero stage 3"},
           Row{[] { Fail(ErrorCode::kEnvironment, "no device"); }, Kind::kEnvironment, 4, "no device"},
           Row{[] { Fail(ErrorCode::kInvalidArgument, "x is 3"); }, Kind::kError, 5, "x is 3"},
           Row{[] { Fail(ErrorCode::kInternal, "broken"); }, Kind::kError, 5, "broken"},
           // A hanging collective is an error of the engine (design, section 4: ERROR), not of the machine.
           Row{[] { Fail(ErrorCode::kTimeout, "all_reduce took 3 s"); }, Kind::kError, 5, "all_reduce took 3 s"},
           Row{[] { throw std::runtime_error("foreign"); }, Kind::kError, 5, "foreign"},
           Row{[] { throw std::bad_alloc(); }, Kind::kError, 5, "std::bad_alloc"},
           Row{[] { throw 42; }, Kind::kError, 5, "threw something that is not a std::exception"},
       }) {
    const TemporaryFolder folder;
    const Result result =
        Main({"run", "--case", "c", "--out", folder.path().string()}, [&](const auto&, const auto&) { row.action(); });
    EXPECT_EQ(result.exit_code, row.exit_code) << row.message;
    EXPECT_EQ(StatusIn(folder.path()).kind, row.kind) << row.message;
    EXPECT_EQ(StatusIn(folder.path()).message, row.message);
    EXPECT_EQ(result.err, std::string(Name(row.kind)) + ": " + row.message + "\n");
  }
}

TEST(EngineMain, CallsAnUnwritableOutDirAnEnvironmentError) {
  const TemporaryFolder folder;
  const Result result =
      Main({"run", "--case", "c", "--out", (folder / "missing").string()}, [](const auto&, const auto&) {});
  EXPECT_EQ(result.exit_code, 4);
  EXPECT_EQ(result.err,
            (folder / "missing" / "status.json").string() + ": cannot be written: No such file or directory\n");
}

// Runs a batch of three cases whose out dirs are out0, out1, out2 of the folder, where they exist.
Result RunThree(const TemporaryFolder& folder, const RunCase& run, const std::string& end = "\n") {
  std::string list =
      ToJson(std::vector<BatchEntry>{{"c0", folder / "out0"}, {"c1", folder / "out1"}, {"c2", folder / "out2"}});
  list.pop_back();
  WriteFile(folder / "list", list + end);
  return Main({"run", "--batch", (folder / "list").string()}, run);
}

TEST(EngineMain, GoesOnInABatchWhateverACaseThrows) {
  const std::vector<std::pair<std::function<void()>, CaseStatus::Kind>> kThrows = {
      {[] { Fail(ErrorCode::kUnsupported, "no"); }, CaseStatus::Kind::kUnsupported},
      {[] { Fail(ErrorCode::kEnvironment, "no"); }, CaseStatus::Kind::kEnvironment},
      {[] { throw std::logic_error("no"); }, CaseStatus::Kind::kError},
      {[] { throw "no"; }, CaseStatus::Kind::kError},
  };
  for (const auto& [action, kind] : kThrows) {
    const TemporaryFolder folder;
    for (const char* name : {"out0", "out1", "out2"}) std::filesystem::create_directory(folder / name);
    std::string order;
    const Result result = RunThree(folder, [&, action = action](const auto& case_dir, const auto&) {
      order += case_dir.string();
      if (case_dir == "c1") action();
      if (case_dir == "c2") {
        EXPECT_TRUE(std::filesystem::exists(folder / "out1" / "status.json")) << "statuses come as soon as a case ends";
      }
    });
    EXPECT_EQ(order, "c0c1c2");
    EXPECT_EQ(result.exit_code, 0) << "every line has a status";
    EXPECT_EQ(StatusIn(folder / "out0").kind, CaseStatus::Kind::kOk);
    EXPECT_EQ(StatusIn(folder / "out1").kind, kind);
    EXPECT_EQ(StatusIn(folder / "out2").kind, CaseStatus::Kind::kOk);
  }
}

TEST(EngineMain, RunsTheLastLineOfABatchWithoutNewline) {
  const TemporaryFolder folder;
  for (const char* name : {"out0", "out1", "out2"}) std::filesystem::create_directory(folder / name);
  EXPECT_EQ(RunThree(
                folder, [](const auto&, const auto&) {}, "")
                .exit_code,
            0);
  EXPECT_EQ(StatusIn(folder / "out2").kind, CaseStatus::Kind::kOk);
}

TEST(EngineMain, GoesOnInABatchWhereOneStatusCannotBeWrittenButSaysSoInTheExitCode) {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "out0");
  std::filesystem::create_directory(folder / "out2");
  int num_runs = 0;
  const Result result = RunThree(folder, [&](const auto&, const auto&) { ++num_runs; });
  EXPECT_EQ(num_runs, 3);
  EXPECT_EQ(result.exit_code, 4);
  EXPECT_EQ(result.err,
            (folder / "out1" / "status.json").string() + ": cannot be written: No such file or directory\n");
  EXPECT_EQ(StatusIn(folder / "out2").kind, CaseStatus::Kind::kOk);
}

TEST(EngineMain, RunsNothingOfABatchListThatIsMalformedOrMissing) {
  const TemporaryFolder folder;
  const Result malformed = RunThree(folder, kNeverRun, "\n{\"case\"");
  EXPECT_EQ(malformed.exit_code, 2);
  EXPECT_EQ(malformed.err, (folder / "list").string() + ":4: not valid JSON at line 1, column 8\n");
  const Result missing = Main({"run", "--batch", (folder / "absent").string()}, kNeverRun);
  EXPECT_EQ(missing.exit_code, 2);
  EXPECT_EQ(missing.err, (folder / "absent").string() + ": cannot be read: No such file or directory\n");
}

}  // namespace
}  // namespace plumbline::contract
