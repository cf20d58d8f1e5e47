// SPDX-License-Identifier: Apache-2.0
// Every message word by word, since they are what a user gets; every way in which JSON can be almost valid.
#include "conformance/contract/strict_json.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>

#include "conformance/contract/testing/error_message.h"

namespace plumbline::contract {
namespace {

using testing::ErrorMessage;

JsonValue Parse(std::string_view text, JsonValue::Comments comments = JsonValue::Comments::kForbidden) {
  return JsonValue::Parse(text, "case.json", comments);
}

// The message with which this access to the parsed text, or the parsing itself, fails.
std::string Message(
    std::string_view text, const std::function<void(const JsonValue&)>& access = [](const JsonValue&) {}) {
  return ErrorMessage(ErrorCode::kInvalidArgument, [&] { access(Parse(text)); });
}

std::string Nested(int depth, const std::string& open, const std::string& close) {
  std::string text;
  for (int i = 0; i < depth; ++i) text += open;
  for (int i = 0; i < depth; ++i) text += close;
  return text;
}

TEST(StrictJson, NamesPathValueAndWhatIsAllowed) {
  constexpr auto kText = R"({"model": {"width": [1, {"x": "wide"}], "t": true, "n": null}})";
  const auto field = [](const JsonValue& root) { return root.At("model").At("width")[1].At("x"); };
  const struct {
    std::function<void(const JsonValue&)> access;
    std::string message;
  } kTable[] = {
      {[&](auto& root) { field(root).Int(); }, R"(case.json: model.width[1].x is "wide"; allowed: an integer)"},
      {[&](auto& root) { field(root).Int(1); },
       R"(case.json: model.width[1].x is "wide"; allowed: an integer, at least 1)"},
      {[&](auto& root) { field(root).Int(-1, 3); },
       R"(case.json: model.width[1].x is "wide"; allowed: an integer from -1 to 3)"},
      {[&](auto& root) { root.At("model").At("width")[0].Int(2, 3); },
       "case.json: model.width[0] is 1; allowed: an integer from 2 to 3"},
      {[&](auto& root) { field(root).UInt64(); },
       R"(case.json: model.width[1].x is "wide"; allowed: an integer from 0 to 18446744073709551615)"},
      {[&](auto& root) { field(root).Number(); }, R"(case.json: model.width[1].x is "wide"; allowed: a number)"},
      {[&](auto& root) { field(root).Bool(); }, R"(case.json: model.width[1].x is "wide"; allowed: true or false)"},
      {[&](auto& root) {
         field(root).OneOf({"narrow", "wid"});
       },
       R"(case.json: model.width[1].x is "wide"; allowed: narrow, wid)"},
      {[&](auto& root) { root.At("model").At("t").OneOf({"true"}); }, "case.json: model.t is true; allowed: true"},
      {[&](auto& root) { root.At("model").At("n").String(); }, "case.json: model.n is null; allowed: a string"},
      {[&](auto& root) { field(root).At("y"); }, R"(case.json: model.width[1].x is "wide"; allowed: an object)"},
      {[&](auto& root) { field(root).Keys(); }, R"(case.json: model.width[1].x is "wide"; allowed: an object)"},
      {[&](auto& root) { field(root).Size(); }, R"(case.json: model.width[1].x is "wide"; allowed: an array)"},
      {[&](auto& root) { root.At("model").At("width")[2]; },
       R"(case.json: model.width is [1,{"x":"wide"}]; allowed: an array of at least 3 elements)"},
      {[&](auto& root) { root.At("depth").Int(1); }, "case.json: depth is missing; allowed: an integer, at least 1"},
      {[&](auto& root) { root.At("depth").Count(1, 4); },
       "case.json: depth is missing; allowed: an integer from 1 to 4"},
      {[&](auto& root) { root.At("model").At("depth").Bool(); },
       "case.json: model.depth is missing; allowed: true or false"},
      {[&](auto& root) { root.At("depth").UInt64(); },
       "case.json: depth is missing; allowed: an integer from 0 to 18446744073709551615"},
      {[&](auto& root) { root.At("depth").Number(); }, "case.json: depth is missing; allowed: a number"},
      {[&](auto& root) { root.At("depth").String(); }, "case.json: depth is missing; allowed: a string"},
      {[&](auto& root) {
         root.At("depth").OneOf({"a", "b"});
       },
       "case.json: depth is missing; allowed: a, b"},
      {[&](auto& root) { root.At("depth").Size(); }, "case.json: depth is missing; allowed: an array"},
      {[&](auto& root) { root.At("depth")[0]; }, "case.json: depth is missing; allowed: an array"},
      {[&](auto& root) { root.At("depth").Keys(); }, "case.json: depth is missing; allowed: an object"},
      {[&](auto& root) { root.At("depth").At("more"); }, "case.json: depth is missing; allowed: an object"},
      {[&](auto& root) { root.Int(); },
       R"(case.json is {"model":{"n":null,"t":true,"width":[1,{"x":"wide"}]}}; allowed: an integer)"},
  };
  for (const auto& [access, message] : kTable) EXPECT_EQ(Message(kText, access), message);
}

TEST(StrictJson, ReadsWhatIsThere) {
  const JsonValue root = Parse(R"({"a": [1, -2, 2.5, "x", true], "o": {}})");
  EXPECT_EQ(root.Keys(), (std::vector<std::string>{"a", "o"}));
  EXPECT_EQ(root.At("a").Size(), 5u);
  EXPECT_EQ(root.At("a")[1].Int(), -2);
  EXPECT_EQ(root.At("a")[0].UInt64(), 1u);
  EXPECT_EQ(root.At("a")[0].Number(), 1.0);
  EXPECT_EQ(root.At("a")[2].Number(), 2.5);
  EXPECT_EQ(root.At("a")[3].String(), "x");
  EXPECT_EQ(root.At("a")[3].OneOf({"w", "x"}), 1u);
  EXPECT_TRUE(root.At("a")[4].Bool());
  EXPECT_FALSE(root.Find("b").has_value());
  const JsonValue missing = root.At("b");
  EXPECT_FALSE(missing.IsNull() || missing.IsString() || missing.IsNumber() || missing.IsObject());
  EXPECT_FALSE(missing.Equals("null"));
  EXPECT_TRUE(root.At("o").IsObject());
  EXPECT_FALSE(root.At("a").IsObject());
  EXPECT_TRUE(root.At("a")[3].IsString());
  EXPECT_FALSE(root.At("a")[3].IsNumber());
  EXPECT_TRUE(root.At("a")[2].IsNumber());
}

TEST(StrictJson, ValuesOutliveTheDocumentTheyCameFrom) {
  const JsonValue leaf = [] { return Parse(R"({"a": {"b": [7]}})").At("a").At("b")[0]; }();
  EXPECT_EQ(leaf.Int(), 7);
  EXPECT_EQ(leaf.Path(), "case.json: a.b[0]");
}

TEST(StrictJson, CountTakesWholeNumbersHoweverTheyAreWritten) {
  constexpr int64_t kMax = int64_t{1} << 60;
  const struct {
    std::string text;
    std::optional<int64_t> value;
  } kTable[] = {{"5e8", 500'000'000},
                {"2E8", 200'000'000},
                {"1.5e1", 15},
                {"8.0", 8},
                {"8", 8},
                {"-0.0", 0},
                {"9007199254740992.0", int64_t{1} << 53},
                {"9007199254740994.0", std::nullopt},  // as a double it may have been its neighbour
                {"9007199254740993", (int64_t{1} << 53) + 1},
                {"1.5", std::nullopt},
                {"5e-1", std::nullopt},
                {"-1e0", std::nullopt},
                {"1e19", std::nullopt},
                {"1e300", std::nullopt},
                {"\"5e8\"", std::nullopt},
                {"true", std::nullopt}};
  for (const auto& [text, value] : kTable) {
    const JsonValue root = Parse("[" + text + "]");
    if (value) {
      EXPECT_EQ(root[0].Count(0, kMax), *value) << text;
    } else {
      EXPECT_THROW(root[0].Count(0, kMax), Error) << text;
    }
  }
  EXPECT_EQ(Message("[5e8]", [](const JsonValue& root) { root[0].Count(0, 7); }),
            "case.json[0] is 500000000.0; allowed: an integer from 0 to 7");
}

TEST(StrictJson, EqualsComparesValuesAndNotTexts) {
  const JsonValue root = Parse(R"([1.0, "fp32", true, null, 0, {"b": 1, "a": [2]}])");
  EXPECT_TRUE(root[0].Equals("1"));
  EXPECT_FALSE(root[0].Equals("true"));
  EXPECT_TRUE(root[1].Equals("\"fp32\""));
  EXPECT_FALSE(root[1].Equals("\"fp16\""));
  EXPECT_TRUE(root[2].Equals("true"));
  EXPECT_FALSE(root[2].Equals("1"));
  EXPECT_TRUE(root[3].Equals("null"));
  EXPECT_FALSE(root[3].Equals("false"));
  EXPECT_FALSE(root[4].Equals("false"));
  EXPECT_TRUE(root[5].Equals(R"({"a": [2], "b": 1})"));
}

TEST(StrictJson, IntAcceptsIntegerTokensOnlyWithinInt64) {
  const struct {
    std::string text;
    std::optional<int64_t> value;
  } kTable[] = {{"0", 0},
                {"-0", 0},
                {"-1", -1},
                {"9223372036854775807", std::numeric_limits<int64_t>::max()},
                {"-9223372036854775808", std::numeric_limits<int64_t>::min()},
                {"9223372036854775808", std::nullopt},
                {"-9223372036854775809", std::nullopt},
                {"18446744073709551615", std::nullopt},
                {"18446744073709551616", std::nullopt},
                {"1.0", std::nullopt},
                {"1e3", std::nullopt},
                {"-0.0", std::nullopt},
                {"true", std::nullopt},
                {"null", std::nullopt},
                {"\"1\"", std::nullopt}};
  for (const auto& [text, value] : kTable) {
    if (value) {
      EXPECT_EQ(Parse(text).Int(), *value) << text;
    } else {
      EXPECT_NE(Message(text, [](auto& root) { root.Int(); }).find("; allowed: an integer"), std::string::npos) << text;
    }
  }
  EXPECT_EQ(Message("9223372036854775808", [](auto& root) { root.Int(); }),
            "case.json is 9223372036854775808; allowed: an integer");
}

TEST(StrictJson, UInt64AcceptsAllOfItsRangeAndNothingElse) {
  EXPECT_EQ(Parse("0").UInt64(), 0u);
  EXPECT_EQ(Parse("-0").UInt64(), 0u);
  EXPECT_EQ(Parse("9223372036854775808").UInt64(), uint64_t{1} << 63);
  EXPECT_EQ(Parse("18446744073709551615").UInt64(), ~uint64_t{0});
  for (const char* text : {"-1", "18446744073709551616", "1.0", "1e3", "\"1\""}) {
    EXPECT_NE(Message(text, [](auto& root) { root.UInt64(); }).find("; allowed: an integer from 0"), std::string::npos);
  }
}

TEST(StrictJson, NumberIsFinite) {
  EXPECT_EQ(Parse("1e3").Number(), 1000.0);
  EXPECT_EQ(Parse("-0").Number(), 0.0);
  EXPECT_EQ(Parse("1.7976931348623157e308").Number(), std::numeric_limits<double>::max());
  EXPECT_EQ(Parse("18446744073709551616").Number(), 18446744073709551616.0);
  EXPECT_EQ(Message("{\"a\": [1, 1e999]}"),
            "case.json: a number is out of range; allowed: up to 1.7976931348623157e308");
  EXPECT_EQ(Message("-1" + std::string(400, '0')),
            "case.json: a number is out of range; allowed: up to 1.7976931348623157e308");
  for (const char* text : {"NaN", "nan", "Infinity", "-inf", "0x10", "01", "+1", ".5", "1.", "1e"}) {
    EXPECT_NE(Message(text).find("case.json: not valid JSON at line 1, column "), std::string::npos) << text;
  }
}

TEST(StrictJson, SaysWhereTheTextStopsBeingJson) {
  EXPECT_EQ(Message("{\"a\": 1,\n \"b\" 2}"), "case.json: not valid JSON at line 2, column 6");
  EXPECT_EQ(Message("[1, 2"), "case.json: not valid JSON at line 1, column 6");
  EXPECT_EQ(Message("[1,]"), "case.json: not valid JSON at line 1, column 4");
  EXPECT_EQ(Message("{} {}"), "case.json: not valid JSON at line 1, column 4");
  EXPECT_EQ(Message("{}x"), "case.json: not valid JSON at line 1, column 3");
  EXPECT_EQ(Message("\"a\nb\""), "case.json: not valid JSON at line 1, column 3");
}

TEST(StrictJson, CallsAnEmptyTextEmpty) {
  for (const char* text : {"", " ", "\n\t \r\n"}) {
    EXPECT_EQ(Message(text), "case.json: is empty; a JSON value is expected");
  }
}

TEST(StrictJson, RejectsNulBytesWhereverTheyAre) {
  using namespace std::string_literals;
  EXPECT_EQ(Message("{}\0"s), "case.json: not valid JSON at line 1, column 3");
  EXPECT_EQ(Message("{\"a\": 1}\0 garbage that nobody would read"s), "case.json: not valid JSON at line 1, column 9");
  EXPECT_EQ(Message("\0"s), "case.json: not valid JSON at line 1, column 1");
  EXPECT_EQ(Message("[1,\n\0 2]"s), "case.json: not valid JSON at line 2, column 1");
  EXPECT_EQ(Message("[\"a\0b\"]"s), "case.json: not valid JSON at line 1, column 4");
  EXPECT_EQ(
      ErrorMessage(ErrorCode::kInvalidArgument, [] { Parse("{} // note\0 hidden"s, JsonValue::Comments::kAllowed); }),
      "case.json: not valid JSON at line 1, column 11");
  EXPECT_EQ(Parse(R"("a\u0000b")").String(), "a\0b"s);
}

TEST(StrictJson, RejectsInvalidUtf8) {
  for (const char* text : {"\"\xff\"", "\"\xc3\"", "\"\xe2\x82\"", "\"\xed\xa0\x80\"", "\"\\ud800\""}) {
    EXPECT_NE(Message(text).find("not valid JSON"), std::string::npos);
  }
}

TEST(StrictJson, RejectsAKeyThatOccursTwiceInOneObject) {
  EXPECT_EQ(Message(R"({"a": 1, "b": 2, "a": 1})"), R"(case.json: key "a" occurs twice; once is allowed)");
  EXPECT_EQ(Message(R"([{"x": {"a": 1, "\u0061": 2}}])"), R"(case.json: key "a" occurs twice; once is allowed)");
  EXPECT_EQ(Message("{\"a\\nb\": 1, \"a\\nb\": 2}"), R"(case.json: key "a\nb" occurs twice; once is allowed)");
  const std::string long_key(200, 'k');
  EXPECT_EQ(Message("{\"" + long_key + "\": 1, \"" + long_key + "\": 2}"),
            "case.json: key \"" + std::string(59, 'k') + "... occurs twice; once is allowed");
}

TEST(StrictJson, AllowsTheSameKeyInDifferentObjects) {
  EXPECT_NO_THROW(Parse(R"({"a": {"a": {"a": 1}, "b": [{"a": 1}, {"a": 2}]}, "b": {"a": 3}})"));
}

TEST(StrictJson, Accepts64LevelsAndNotOneMore) {
  EXPECT_NO_THROW(Parse(Nested(64, "[", "]")));
  EXPECT_NO_THROW(Parse(Nested(63, "{\"a\":", "}").insert(63 * 5, "[]")));
  EXPECT_EQ(Message(Nested(65, "[", "]")), "case.json: JSON is nested deeper than 64 levels");
  EXPECT_EQ(Message(Nested(64, "{\"a\":", "}").insert(64 * 5, "[]")),
            "case.json: JSON is nested deeper than 64 levels");
}

TEST(StrictJson, StopsAtTheLimitInTextsThatOnlyOpenBrackets) {
  EXPECT_EQ(Message(std::string(10'000'000, '[')), "case.json: JSON is nested deeper than 64 levels");
  std::string objects;
  for (int i = 0; i < 100'000; ++i) objects += "{\"a\":";
  EXPECT_EQ(Message(objects), "case.json: JSON is nested deeper than 64 levels");
}

TEST(StrictJson, ReadsCommentsOnlyWhereTheyAreAllowed) {
  constexpr auto kText = "{ // why\n \"a\": 1 // and how\n}";
  EXPECT_EQ(Parse(kText, JsonValue::Comments::kAllowed).At("a").Int(), 1);
  EXPECT_EQ(Message(kText), "case.json: not valid JSON at line 1, column 3");
  EXPECT_EQ(ErrorMessage(ErrorCode::kInvalidArgument, [] { Parse("// nothing else", JsonValue::Comments::kAllowed); })
                .find("case.json: not valid JSON at "),
            0u);
}

TEST(StrictJson, CutsLongValuesBetweenCharacters) {
  // With n letters before them, the two-byte characters are cut at every phase of the limit of 60 bytes.
  for (int num_letters = 0; num_letters < 4; ++num_letters) {
    for (const std::string character : {"\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80"}) {
      std::string text = "\"" + std::string(static_cast<size_t>(num_letters), 'x');
      for (int i = 0; i < 100; ++i) text += character;
      const std::string message = Message(text + "\"", [](auto& root) { root.Int(); });
      std::string shown = "\"" + std::string(static_cast<size_t>(num_letters), 'x');
      while (shown.size() + character.size() <= 60) shown += character;
      EXPECT_EQ(message, "case.json is " + shown + "...; allowed: an integer");
    }
  }
  EXPECT_EQ(Message("\"" + std::string(58, 'x') + "\"", [](auto& root) { root.Int(); }),
            "case.json is \"" + std::string(58, 'x') + "\"; allowed: an integer");
}

TEST(StrictJson, KeepsMessagesOneShortLineWhateverTheKeysAre) {
  const auto leaf = [](const JsonValue& root) { root.At(root.Keys()[0])[0].Int(); };
  EXPECT_EQ(Message(R"({"a\nb": ["x"]})", leaf), R"(case.json: "a\nb"[0] is "x"; allowed: an integer)");
  EXPECT_EQ(Message(R"({"\r": ["x"]})", leaf), R"(case.json: "\r"[0] is "x"; allowed: an integer)");
  EXPECT_EQ(Message(R"({"": ["x"]})", leaf), R"(case.json: ""[0] is "x"; allowed: an integer)");
  EXPECT_EQ(Message(R"({"[7]": ["x"]})", leaf), R"(case.json: "[7]"[0] is "x"; allowed: an integer)");
  EXPECT_EQ(Message("{\"" + std::string(5000, 'k') + "\": [\"x\"]}", leaf),
            "case.json: \"" + std::string(59, 'k') + "...[0] is \"x\"; allowed: an integer");
  // Names of tensors, and paths as keys, stay as they are.
  EXPECT_EQ(Message(R"({"layers.0.attn.q": ["x"]})", leaf),
            R"(case.json: layers.0.attn.q[0] is "x"; allowed: an integer)");
}

TEST(AllowOnly, NamesTheNearestKeyOrAllAllowedOnes) {
  const auto allow = [](const JsonValue& root) { root.AllowOnly({"train_batch_size", "bf16", "mesh"}); };
  EXPECT_NO_THROW(allow(Parse(R"({"mesh": 1, "bf16": 2})")));
  EXPECT_NO_THROW(allow(Parse("{}")));
  EXPECT_EQ(Message(R"({"train_batchsize": 1})", allow),
            R"(case.json: unknown key "train_batchsize"; did you mean "train_batch_size"?)");
  EXPECT_EQ(Message(R"({"fp16": 1})", allow), R"(case.json: unknown key "fp16"; did you mean "bf16"?)");
  EXPECT_EQ(Message(R"({"something else": 1})", allow),
            R"(case.json: unknown key "something else"; allowed: train_batch_size, bf16, mesh)");
  EXPECT_EQ(Message(R"({"a\nb": 1})", allow),
            R"(case.json: unknown key "a\nb"; allowed: train_batch_size, bf16, mesh)");
  EXPECT_EQ(Message("{\"" + std::string(100'000, 'm') + "\": 1}", allow),
            "case.json: unknown key \"" + std::string(59, 'm') + "...; allowed: train_batch_size, bf16, mesh");
  EXPECT_EQ(Message("[1]", allow), "case.json is [1]; allowed: an object");
}

TEST(AllowOnly, SaysThatNoKeyIsAllowedWhereNoneIs) {
  EXPECT_EQ(Message(R"({"lr": 1})", [](auto& root) { root.AllowOnly({}); }),
            R"(case.json: unknown key "lr"; allowed: no key)");
}

TEST(Nearest, IsWithinAThirdOfTheLengthPlusOne) {
  const auto known = std::to_array<std::string_view>({"mesh", "optimizer", "pipeline"});
  EXPECT_EQ(Nearest("mesh", known), "mesh");
  EXPECT_EQ(Nearest("mash", known), "mesh");
  EXPECT_EQ(Nearest("mas", known), "mesh");         // distance 2 of 3 letters: at most 2
  EXPECT_EQ(Nearest("maps", known), std::nullopt);  // distance 3 of 4 letters
  EXPECT_EQ(Nearest("optimiser", known), "optimizer");
  EXPECT_EQ(Nearest("ptimzer", known), "optimizer");
  EXPECT_EQ(Nearest("", known), std::nullopt);
  EXPECT_EQ(Nearest("mesh", {}), std::nullopt);
}

TEST(Nearest, PrefersTheFirstOfEquallyNearWords) {
  const auto known = std::to_array<std::string_view>({"cat", "car"});
  EXPECT_EQ(Nearest("cap", known), "cat");
}

TEST(JsonQuote, ReadsBackAsTheSameText) {
  using namespace std::string_literals;
  for (const std::string& text :
       {""s, "a\"b\\c/"s, "\n\r\t\b\f\x01\x1f\x7f"s, "a\0b"s, "\xe2\x82\xac\xf0\x9f\x98\x80"s}) {
    const std::string quoted = JsonQuote(text);
    EXPECT_EQ(Parse(quoted).String(), text) << quoted;
    EXPECT_EQ(quoted.find('\n'), std::string::npos);
  }
  EXPECT_EQ(JsonQuote("a\nb"), R"("a\nb")");
}

TEST(JsonQuote, ReplacesInvalidUtf8) {
  EXPECT_EQ(JsonQuote("a\xff"), "\"a\xef\xbf\xbd\"");
  EXPECT_EQ(JsonQuote("\xe2\x82"), "\"\xef\xbf\xbd\"");
}

TEST(JsonNumber, ReadsBackAsTheSameDouble) {
  for (double value : {0.1, 1.0 / 3, -2.5e-300, 5e-324, 1.7976931348623157e308, 9007199254740993.0, 1e22, 123456.75}) {
    EXPECT_EQ(Parse(JsonNumber(value)).Number(), value) << JsonNumber(value);
  }
}

TEST(JsonNumber, WritesIntegersAsIntegers) {
  const struct {
    double value;
    const char* text;
  } kTable[] = {{0, "0"},
                {-0.0, "0"},
                {131, "131"},
                {-7, "-7"},
                {100000, "100000"},
                {1e15, "1000000000000000"},
                {16777216, "16777216"},
                {9007199254740992.0, "9007199254740992"},
                {-300000, "-300000"}};
  for (const auto& [value, text] : kTable) {
    EXPECT_EQ(JsonNumber(value), text);
    EXPECT_EQ(static_cast<double>(Parse(JsonNumber(value)).Int()), value);
  }
  EXPECT_EQ(JsonNumber(0.5), "0.5");
}

TEST(JsonNumber, HasNoFormForNaNAndInfinity) {
  for (double value : {std::nan(""), HUGE_VAL, -HUGE_VAL}) {
    EXPECT_NE(ErrorMessage(ErrorCode::kInternal, [&] { JsonNumber(value); }).find("no NaN and no infinity"),
              std::string::npos);
  }
}

}  // namespace
}  // namespace plumbline::contract
