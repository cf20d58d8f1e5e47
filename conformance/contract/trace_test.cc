// SPDX-License-Identifier: Apache-2.0
// What the writer writes the parser reads; what docs/formats.md does not allow is refused with file, line and reason.
#include "conformance/contract/trace.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <limits>
#include <memory>
#include <string>

#include "conformance/contract/file_io.h"
#include "conformance/contract/testing/error_message.h"
#include "conformance/contract/testing/file_size_limit.h"
#include "conformance/contract/testing/temporary_folder.h"

namespace plumbline::contract {
namespace {

using testing::ErrorMessage;
using testing::TemporaryFolder;

RunConfig Config(int64_t data_degree = 3) {
  RunConfig config;
  config.data_degree = config.train_batch_size = data_degree;
  config.optimizer = OptimizerKind::kModularSgd;
  return config;
}

StepRecord Step(int64_t step) {
  StepRecord record;
  record.step = step;
  record.loss = 131;
  record.tokens = 128;
  record.of(TensorKind::kGradient) = {
      {"embed.weight", 0, 228, {0x00000000000000ffull, -7, 1000, kIndexedModulus - 1}},
      {"pos \"quoted\"",
       5,
       6,
       {~uint64_t{0}, std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max(), 0}}};
  record.of(TensorKind::kMoment) = {{"embed.weight", 0, 114, {1, 0, 0, 0}}};
  record.of(TensorKind::kMaster) = {{"embed.weight", 0, 114, {0x123456789abcdef0ull, 0, 0, 0}}};
  record.of(TensorKind::kWeight) = {};
  return record;
}

void ExpectEqual(const StepRecord& a, const StepRecord& b) {
  EXPECT_EQ(a.step, b.step);
  EXPECT_EQ(a.loss, b.loss);
  EXPECT_EQ(a.tokens, b.tokens);
  EXPECT_EQ(a.comm, b.comm);
  EXPECT_EQ(a.comm_sequence, b.comm_sequence);
  for (TensorKind kind : kTensorKinds) {
    ASSERT_EQ(a.of(kind).size(), b.of(kind).size()) << Name(kind);
    for (size_t i = 0; i < a.of(kind).size(); ++i) {
      EXPECT_EQ(a.of(kind)[i].tensor, b.of(kind)[i].tensor);
      EXPECT_EQ(a.of(kind)[i].begin, b.of(kind)[i].begin);
      EXPECT_EQ(a.of(kind)[i].end, b.of(kind)[i].end);
      EXPECT_EQ(a.of(kind)[i].digest, b.of(kind)[i].digest);
    }
  }
}

const std::string kHeader =
    "{\"record\": \"header\", \"protocol\": 1, \"engine\": \"x\", \"rank\": 1, \"world\": 3, \"config\": " +
    ToJson(Config()) + "}\n";
const std::string kStep0 =
    R"({"record": "step", "step": 0, "loss": 2.5, "tokens": 8, "gradient": [["a", 0, 4, "00000000000000ff", -1, 5, 9]], "master": [["a", 0, 4, "0123456789abcdef"]], "weight": []})"
    "\n";

std::string Replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

std::string Message(const std::string& text) {
  return ErrorMessage(ErrorCode::kInvalidArgument, [&] { ParseTrace(text, "t"); });
}

TEST(Trace, ReadsBackWhatTheWriterWrote) {
  const TemporaryFolder folder;
  StepRecord with_comm = Step(1);
  with_comm.comm = {{"all_gather", {2, 4096}}, {"all_reduce", {2, 16}}};
  with_comm.comm_sequence = 0x00ff00ff00ff00ffull;
  StepRecord with_empty_comm = Step(2);
  with_empty_comm.comm.emplace();
  with_empty_comm.loss = 123456789;
  {
    TraceWriter writer(folder.path(), "engine \"x\"", 2, Config());
    writer.Phase(0, "forward");
    writer.Phase(0, "backward");
    writer.Phase(0, "reduce");
    writer.Phase(0, "step");
    writer.Step(Step(0));
    writer.Step(with_comm);
    writer.Step(with_empty_comm);
    writer.End(3);
  }
  const Trace trace = ReadTrace(folder.path(), 2);
  EXPECT_EQ(trace.engine, "engine \"x\"");
  EXPECT_EQ(trace.rank, 2);
  EXPECT_EQ(trace.world, 3);
  EXPECT_EQ(trace.config, Config());
  EXPECT_TRUE(trace.complete);
  ASSERT_EQ(trace.steps.size(), 3u);
  ExpectEqual(trace.steps[0], Step(0));
  ExpectEqual(trace.steps[1], with_comm);
  ExpectEqual(trace.steps[2], with_empty_comm);
}

TEST(TraceWriter, WritesTheLinesOfTheFormat) {
  const TemporaryFolder folder;
  StepRecord record = Step(0);
  record.comm = {{"all_reduce", {2, 16}}};
  record.comm_sequence = 0xabc;
  {
    TraceWriter writer(folder.path(), "x", 0, Config(1));
    writer.Phase(0, "forward");
    writer.Step(record);
    writer.End(1);
  }
  EXPECT_EQ(ReadFile(folder / "rank0" / "trace.jsonl"),
            "{\"record\": \"header\", \"protocol\": 1, \"engine\": \"x\", \"rank\": 0, \"world\": 1, \"config\": " +
                ToJson(Config(1)) +
                "}\n"
                "{\"record\": \"phase\", \"step\": 0, \"phase\": \"forward\"}\n"
                "{\"record\": \"step\", \"step\": 0, \"loss\": 131, \"tokens\": 128, "
                "\"gradient\": [[\"embed.weight\", 0, 228, \"00000000000000ff\", -7, 1000, 2305843009213693951], "
                "[\"pos \\\"quoted\\\"\", 5, 6, \"ffffffffffffffff\", -9223372036854775808, 9223372036854775807, 0]], "
                "\"moment\": [[\"embed.weight\", 0, 114, \"0000000000000001\"]], "
                "\"master\": [[\"embed.weight\", 0, 114, \"123456789abcdef0\"]], \"weight\": [], "
                "\"comm\": {\"all_reduce\": [2, 16]}, \"comm_sequence\": \"0000000000000abc\"}\n"
                "{\"record\": \"end\", \"steps\": 1}\n");
}

TEST(TraceWriter, FlushesEachStepSoThatItIsAHeartbeat) {
  const TemporaryFolder folder;
  TraceWriter writer(folder.path(), "x", 1, Config());
  EXPECT_EQ(ReadTrace(folder.path(), 1).steps.size(), 0u);
  for (int64_t step = 0; step < 3; ++step) {
    writer.Step(Step(step));
    EXPECT_EQ(ReadTrace(folder.path(), 1).steps.size(), static_cast<size_t>(step + 1));
    EXPECT_FALSE(ReadTrace(folder.path(), 1).complete);
  }
  writer.End(3);
  EXPECT_TRUE(ReadTrace(folder.path(), 1).complete);
}

TEST(TraceWriter, SaysWhereItCannotWrite) {
  const TemporaryFolder folder;
  WriteFile(folder / "file", "x");
  const auto path = [](const std::filesystem::path& out) { return (out / "rank0" / "trace.jsonl").string(); };
  EXPECT_EQ(ErrorMessage(ErrorCode::kEnvironment, [&] { TraceWriter(folder / "file", "x", 0, Config()); }),
            path(folder / "file") + ": cannot be written");
  std::filesystem::create_directories(folder / "out" / "rank0" / "trace.jsonl");
  EXPECT_EQ(ErrorMessage(ErrorCode::kEnvironment, [&] { TraceWriter(folder / "out", "x", 0, Config()); }),
            path(folder / "out") + ": cannot be written");
  TraceWriter writer(folder.path(), "x", 0, Config());
  const testing::FileSizeLimit full_disk(std::filesystem::file_size(folder / "rank0" / "trace.jsonl") + 10);
  EXPECT_EQ(ErrorMessage(ErrorCode::kEnvironment, [&] { writer.Step(Step(0)); }),
            path(folder.path()) + ": cannot be written");
}

TEST(ParseTrace, IgnoresALastLineWithoutNewline) {
  for (const std::string& rest : {std::string("{\"record\": \"st"), std::string("{\"record\": \"end\", \"steps\": 1}"),
                                  std::string("x"), kStep0.substr(0, kStep0.size() - 1)}) {
    const Trace trace = ParseTrace(kHeader + kStep0 + rest, "t");
    EXPECT_EQ(trace.steps.size(), 1u);
    EXPECT_FALSE(trace.complete);
  }
  const std::string whole = kHeader + kStep0 + "{\"record\": \"end\", \"steps\": 1}\n";
  EXPECT_TRUE(ParseTrace(whole, "t").complete);
  // Cut anywhere, a trace is shorter, never malformed; without a whole header there is none.
  for (size_t size = 0; size < whole.size(); ++size) {
    if (size < kHeader.size()) {
      EXPECT_EQ(Message(whole.substr(0, size)), "t: has no complete line");
    } else {
      EXPECT_FALSE(ParseTrace(whole.substr(0, size), "t").complete);
    }
  }
}

TEST(ParseTrace, NamesFileLineAndReason) {
  const std::string end1 = "{\"record\": \"end\", \"steps\": 1}\n";
  const std::string step1 = Replaced(kStep0, "\"step\": 0", "\"step\": 1");
  const struct {
    std::string text, message;
  } kTable[] = {
      {"", "t: has no complete line"},
      {"\n", "t:1: is empty; a JSON value is expected"},
      {kStep0, "t:1: record is \"step\"; allowed: \"header\" in the first line"},
      {"{\"record\": \"end\"}\n", "t:1: record is \"end\"; allowed: \"header\" in the first line"},
      {kHeader + kHeader, "t:2: record is \"header\"; allowed: step, phase, end"},
      {kHeader + "\n", "t:2: is empty; a JSON value is expected"},
      {kHeader + "{\"record\": \"stop\"}\n", "t:2: record is \"stop\"; allowed: step, phase, end"},
      {kHeader + "{}\n", "t:2: record is missing; allowed: step, phase, end"},
      {kHeader + "[]\n", "t:2 is []; allowed: an object"},
      {kHeader + "garbage\n", "t:2: not valid JSON at line 1, column 1"},
      {kHeader + kStep0 + kStep0, "t:3: step is 0; allowed: an integer from 1 to 1"},
      {kHeader + kStep0 + Replaced(kStep0, "\"step\": 0", "\"step\": 2"),
       "t:3: step is 2; allowed: an integer from 1 to 1"},
      {kHeader + end1, "t:2: steps is 1; allowed: an integer from 0 to 0"},
      {kHeader + kStep0 + step1 + end1, "t:4: steps is 1; allowed: an integer from 2 to 2"},
      {kHeader + kStep0 + end1 + step1, "t:4: a line after the end record"},
      {kHeader + kStep0 + end1 + end1, "t:4: a line after the end record"},
      {kHeader + kStep0 + end1 + "\n", "t:4: a line after the end record"},
      {kHeader + "{\"record\": \"end\", \"steps\": 0, \"x\": 1}\n", "t:2: unknown key \"x\"; allowed: record, steps"},
      {kHeader + "{\"record\": \"phase\", \"step\": 0, \"phase\": \"lunch\"}\n",
       "t:2: phase is \"lunch\"; allowed: forward, backward, reduce, step"},
      {kHeader + "{\"record\": \"phase\", \"step\": -1, \"phase\": \"step\"}\n",
       "t:2: step is -1; allowed: an integer, at least 0"},
      {Replaced(kHeader, "\"rank\": 1", "\"rank\": 3"), "t:1: rank is 3; allowed: an integer from 0 to 2"},
      {Replaced(kHeader, "\"world\": 3", "\"world\": 0"), "t:1: world is 0; allowed: an integer from 1 to 1048576"},
      {Replaced(kHeader, "\"protocol\": 1", "\"protocol\": 2"), "t:1: protocol is 2; allowed: an integer from 1 to 1"},
      {Replaced(kHeader, "\"stage\": 0", "\"stage\": 7"),
       "t:1: config.zero_optimization.stage is 7; allowed: an integer from 0 to 3"},
  };
  for (const auto& [text, message] : kTable) EXPECT_EQ(Message(text), message) << text;
}

TEST(ParseTrace, NamesTheFieldOfAStepThatIsWrong) {
  const struct {
    std::string from, to, message;
  } kTable[] = {
      {"\"loss\": 2.5", "\"loss\": \"nan\"", "t:2: loss is \"nan\"; allowed: a number"},
      {"\"loss\": 2.5, ", "", "t:2: loss is missing; allowed: a number"},
      {"\"loss\": 2.5", "\"loss\": NaN", "t:2: not valid JSON at line 1, column 39"},
      {"\"tokens\": 8", "\"tokens\": -8", "t:2: tokens is -8; allowed: an integer, at least 0"},
      {"\"gradient\"", "\"gradients\"", "t:2: unknown key \"gradients\"; did you mean \"gradient\"?"},
      {"\"master\": [[\"a\", 0, 4, \"0123456789abcdef\"]], ", "", "t:2: master is missing; allowed: an array"},
      {", \"weight\": []", "", "t:2: weight is missing; allowed: an array"},
      {"\"weight\": []", "\"weight\": {}", "t:2: weight is {}; allowed: an array"},
      {", 9]", "]", "t:2: gradient[0] is [\"a\",0,4,\"00000000000000ff\",-1,5]; allowed: an array of 7 fields"},
      {"abcdef\"]", "abcdef\", 1, 1, 1]",
       "t:2: master[0] is [\"a\",0,4,\"0123456789abcdef\",1,1,1]; allowed: an array of 4 fields"},
      {"[\"a\", 0, 4, \"0000", "[7, 0, 4, \"0000", "t:2: gradient[0][0] is 7; allowed: a string"},
      {"\"a\", 0, 4, \"0000", "\"a\", -1, 4, \"0000",
       "t:2: gradient[0][1] is -1; allowed: an integer from 0 to 1099511627775"},
      {"\"a\", 0, 4, \"0000", "\"a\", 9223372036854775807, 4, \"0000",
       "t:2: gradient[0][1] is 9223372036854775807; allowed: an integer from 0 to 1099511627775"},
      {"\"a\", 0, 4, \"0000", "\"a\", 0, 9223372036854775807, \"0000",
       "t:2: gradient[0][2] is 9223372036854775807; allowed: an integer from 1 to 1099511627776"},
      {"\"a\", 0, 4, \"0000", "\"a\", 4, 4, \"0000",
       "t:2: gradient[0][2] is 4; allowed: an integer from 5 to 1099511627776"},
      {"\"00000000000000ff\"", "\"0ff\"", "t:2: gradient[0][3] is \"0ff\"; allowed: 16 hexadecimal digits"},
      {"\"00000000000000ff\"", "\"000000000000000ff\"",
       "t:2: gradient[0][3] is \"000000000000000ff\"; allowed: 16 hexadecimal digits"},
      {"\"00000000000000ff\"", "\"0x000000000000ff\"",
       "t:2: gradient[0][3] is \"0x000000000000ff\"; allowed: 16 hexadecimal digits"},
      {"\"00000000000000ff\"", "\"-0000000000000ff\"",
       "t:2: gradient[0][3] is \"-0000000000000ff\"; allowed: 16 hexadecimal digits"},
      {"\"00000000000000ff\"", "\"00000000000000fg\"",
       "t:2: gradient[0][3] is \"00000000000000fg\"; allowed: 16 hexadecimal digits"},
      {"\"00000000000000ff\"", "255", "t:2: gradient[0][3] is 255; allowed: a string"},
      {"\"a\", 0, 4, \"0000", "\"" + std::string(257, 'n') + "\", 0, 4, \"0000",
       "t:2: gradient[0][0] is \"" + std::string(59, 'n') +
           "...; allowed: a string of at most 256 bytes without control characters"},
      {"\"a\", 0, 4, \"0000", "\"pos\\nweight\", 0, 4, \"0000",
       "t:2: gradient[0][0] is \"pos\\nweight\"; allowed: a string of at most 256 bytes without control characters"},
      {"-1, 5, 9", "-1.0, 5, 9", "t:2: gradient[0][4] is -1.0; allowed: an integer, without point or exponent"},
      {"-1, 5, 9", "-1, 9223372036854775808, 9", "t:2: gradient[0][5] is 9223372036854775808; allowed: an integer"},
      {"-1, 5, 9", "-1, 5, -9", "t:2: gradient[0][6] is -9; allowed: an integer from 0 to 2305843009213693951"},
      {"-1, 5, 9", "-1, 5, 2305843009213693952",
       "t:2: gradient[0][6] is 2305843009213693952; allowed: an integer from 0 to 2305843009213693951"},
      {"\"weight\": []", "\"weight\": [], \"comm\": {\"all_reduce\": [1]}, \"comm_sequence\": \"0000000000000000\"",
       "t:2: comm.all_reduce is [1]; allowed: [calls, bytes]"},
      {"\"weight\": []", "\"weight\": [], \"comm\": {\"all_reduce\": [1, -8]}, \"comm_sequence\": \"0000000000000000\"",
       "t:2: comm.all_reduce[1] is -8; allowed: an integer, at least 0"},
      {"\"weight\": []", "\"weight\": [], \"comm\": {}", "t:2: comm_sequence is missing; allowed: a string"},
      {"\"weight\": []", "\"weight\": [], \"comm_sequence\": \"0000000000000000\"",
       "t:2: comm is missing; allowed: an object"},
      {"\"weight\": []", "\"weight\": [], \"comm\": {}, \"comm_sequence\": \"00\"",
       "t:2: comm_sequence is \"00\"; allowed: 16 hexadecimal digits"},
  };
  for (const auto& [from, to, message] : kTable) {
    EXPECT_EQ(Message(kHeader + Replaced(kStep0, from, to)), message) << to;
  }
}

// Losses of family exact are integers; in real families a number that is not finite is null, whatever it was.
TEST(ParseTrace, TakesNullForWhatIsNotFiniteInRealFamiliesOnly) {
  for (const char* loss : {"null", "1e999", "-Infinity"}) {
    EXPECT_NE(Message(kHeader + Replaced(kStep0, "\"loss\": 2.5", std::string("\"loss\": ") + loss)), "") << loss;
  }
  for (double value : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(),
                       -std::numeric_limits<double>::infinity()}) {
    const TemporaryFolder folder;
    StepRecord record;
    record.loss = value;
    record.real = RealStep{{1e-3}, value, true};
    TraceWriter(folder.path(), "x", 0, Config()).Step(record);
    const Trace trace = ReadTrace(folder.path(), 0);
    ASSERT_EQ(trace.steps.size(), 1u);
    EXPECT_TRUE(std::isnan(trace.steps[0].loss));
    EXPECT_TRUE(std::isnan(trace.steps[0].real->gradient_norm));
  }
}

TEST(ParseTrace, ReadsTheHistoryOfNormsToTheLastBit) {
  const TemporaryFolder folder;
  StepRecord record;
  record.real = RealStep{{1e-3}, 2, false, NormHistory{7, 1.0 / 3, 1e-17 / 3}};
  TraceWriter(folder.path(), "x", 0, Config()).Step(record);
  EXPECT_EQ(ReadTrace(folder.path(), 0).steps.at(0).real->norm_history, record.real->norm_history);
}

TEST(ParseTrace, ReadsTheLossScaler) {
  const TemporaryFolder folder;
  StepRecord record;
  record.real = RealStep{{1e-3}, 2, true, std::nullopt, LossScaler{0x1p60, 7, 6, 1}};
  TraceWriter(folder.path(), "x", 0, Config()).Step(record);
  EXPECT_EQ(ReadTrace(folder.path(), 0).steps.at(0).real->loss_scaler, record.real->loss_scaler);
}

TEST(ParseTrace, RefusesACountOfNormsThatNoRunCanReach) {
  const TemporaryFolder folder;
  StepRecord record;
  record.real = RealStep{{1e-3}, 2, false, NormHistory{std::numeric_limits<int64_t>::max(), 1, 1}};
  TraceWriter(folder.path(), "x", 0, Config()).Step(record);
  const std::string message = ErrorMessage(ErrorCode::kInvalidArgument, [&] { ReadTrace(folder.path(), 0); });
  EXPECT_NE(message.find("norm_history[0] is 9223372036854775807; allowed: an integer from 0 to 2199023255552"),
            std::string::npos)
      << message;
}

TEST(ParseTrace, AcceptsAnAbsentMomentAndReadsPhases) {
  const Trace trace =
      ParseTrace(kHeader + "{\"record\": \"phase\", \"step\": 0, \"phase\": \"forward\"}\n" + kStep0, "t");
  ASSERT_EQ(trace.steps.size(), 1u);
  EXPECT_TRUE(trace.steps[0].of(TensorKind::kMoment).empty());
  EXPECT_FALSE(trace.steps[0].comm.has_value());
  EXPECT_EQ(trace.steps[0].loss, 2.5);
  EXPECT_EQ(trace.steps[0].of(TensorKind::kGradient)[0].digest, (Digest{0xff, -1, 5, 9}));
  EXPECT_EQ(trace.steps[0].of(TensorKind::kMaster)[0].digest.hash, 0x0123456789abcdefull);
}

TEST(ReadTrace, RefusesTheTraceOfAnotherRank) {
  const TemporaryFolder folder;
  { TraceWriter writer(folder.path(), "x", 1, Config()); }
  std::filesystem::rename(folder / "rank1", folder / "rank0");
  EXPECT_EQ(ErrorMessage(ErrorCode::kInvalidArgument, [&] { ReadTrace(folder.path(), 0); }),
            "rank0/trace.jsonl:1: rank is 1; allowed: 0");
  EXPECT_EQ(ErrorMessage(ErrorCode::kInvalidArgument, [&] { ReadTrace(folder.path(), 1); }),
            "rank1/trace.jsonl: cannot be read: No such file or directory");
}

TEST(Certificate, RoundTrips) {
  Certificate certificate;
  EXPECT_EQ(ToJson(ParseCertificate(ToJson(certificate), "c")), ToJson(certificate));
  certificate.quantities["activation_sum"] = {131, "layers.0.attn.q, step 3"};
  certificate.quantities["gradient"] = {16777216, ""};
  certificate.liveness = {{"embed.weight", 0.91, 1.0 / 3}, {"pos.weight", 0, 1}};
  const Certificate read = ParseCertificate(ToJson(certificate), "c");
  ASSERT_EQ(read.quantities.size(), 2u);
  EXPECT_EQ(read.quantities.at("activation_sum").max, 131);
  EXPECT_EQ(read.quantities.at("activation_sum").where, "layers.0.attn.q, step 3");
  EXPECT_EQ(read.quantities.at("gradient").max, 16777216);
  ASSERT_EQ(read.liveness.size(), 2u);
  EXPECT_EQ(read.liveness[0].tensor, "embed.weight");
  EXPECT_EQ(read.liveness[0].nonzero_gradient_share, 0.91);
  EXPECT_EQ(read.liveness[0].moving_weight_share, 1.0 / 3);
  EXPECT_EQ(read.liveness[1].moving_weight_share, 1);
  EXPECT_EQ(ToJson(read), ToJson(certificate));
}

TEST(Certificate, NamesWhatIsWrong) {
  const struct {
    const char *json, *message;
  } kTable[] = {
      {R"({"quantities": {}})", "c: liveness is missing; allowed: an array"},
      {R"({"liveness": []})", "c: quantities is missing; allowed: an object"},
      {R"({"quantities": {}, "liveness": [], "x": 1})", "c: unknown key \"x\"; allowed: quantities, liveness"},
      {R"({"quantities": {"stored": 3}, "liveness": []})", "c: quantities.stored is 3; allowed: an object"},
      {R"({"quantities": {"stored": {"max": "3", "where": ""}}, "liveness": []})",
       "c: quantities.stored.max is \"3\"; allowed: a number"},
      {R"({"quantities": {"stored": {"max": 3}}, "liveness": []})",
       "c: quantities.stored.where is missing; allowed: a string"},
      {R"({"quantities": {}, "liveness": [{"tensor": "a", "nonzero_gradient_share": 1}]})",
       "c: liveness[0].moving_weight_share is missing; allowed: a number"},
  };
  for (const auto& [json, message] : kTable) {
    EXPECT_EQ(ErrorMessage(ErrorCode::kInvalidArgument, [json = json] { ParseCertificate(json, "c"); }), message);
  }
}

}  // namespace
}  // namespace plumbline::contract
