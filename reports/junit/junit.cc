// SPDX-License-Identifier: Apache-2.0
// Writes the XML by hand: five elements do not need a library.
#include "reports/junit/junit.h"

#include <cstdint>
#include <cstdio>
#include <vector>

#include "reports/record/defect_state.h"
#include "reports/record/divergence_text.h"

namespace plumbline::reports {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

struct Decoded {
  uint32_t character = 0;
  size_t length = 0;  // 0: not well-formed UTF-8
};

Decoded DecodeUtf8(std::string_view text) {
  const auto first = static_cast<uint8_t>(text[0]);
  if (first < 0x80) return {first, 1};
  const size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < length) return {};
  uint32_t character = first & (0xFFu >> (length + 1));
  for (size_t i = 1; i < length; ++i) {
    const auto next = static_cast<uint8_t>(text[i]);
    if ((next & 0xC0) != 0x80) return {};
    character = character << 6 | (next & 0x3Fu);
  }
  constexpr uint32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};  // a longer form than needed is not well-formed
  const bool surrogate = character >= 0xD800 && character <= 0xDFFF;
  if (character < kSmallest[length] || character > 0x10FFFF || surrogate) return {};
  return {character, length};
}

// XML 1.0, production 2, Char.
bool IsXmlCharacter(uint32_t character) {
  if (character < 0x20) return character == '\t' || character == '\n' || character == '\r';
  return character != 0xFFFE && character != 0xFFFF;
}

void AppendEscaped(std::string& out, uint32_t character, std::string_view bytes) {
  switch (character) {
    case '&':
      out += "&amp;";
      break;
    case '<':
      out += "&lt;";
      break;
    case '>':  // because of ]]>
      out += "&gt;";
      break;
    case '"':
      out += "&quot;";
      break;
    case '\'':
      out += "&apos;";
      break;
    case '\t':  // as such, these three become spaces in attribute values
      out += "&#9;";
      break;
    case '\n':
      out += "&#10;";
      break;
    case '\r':
      out += "&#13;";
      break;
    default:
      out += IsXmlCharacter(character) ? bytes : kReplacement;
  }
}

enum class Element { kNone, kFailure, kError, kSkipped };

struct TestCase {
  std::string suite;
  std::string name;
  double seconds = 0;
  Element element = Element::kNone;
  std::string type;     // the verdict
  std::string message;  // one line
  std::string body;     // further lines
};

Element ElementFor(const CaseRecord& entry) {
  switch (entry.verdict) {
    case Verdict::kPass:
      return Element::kNone;
    case Verdict::kFail:
      return Element::kFailure;
    case Verdict::kError:
    case Verdict::kVacuous:
      return Element::kError;
    case Verdict::kUnsupported:
      return entry.expected_unsupported ? Element::kSkipped : Element::kError;
    case Verdict::kNotRun:
      return Element::kSkipped;
  }
  return Element::kError;
}

std::string Body(const CaseRecord& entry) {
  std::string body;
  body += DivergenceText(entry.divergence, "");
  if (!entry.reproduce.empty()) body += "reproduce: " + entry.reproduce + "\n";
  if (entry.shrunk && !entry.shrunk->reproduce.empty()) {
    body += "fails like it: " + entry.shrunk->reduced + "\nreproduce: " + entry.shrunk->reproduce + "\n";
  }
  for (const auto& [axis, value] : entry.axes) body += axis + " = " + value + "\n";
  for (const CheckRecord& check : entry.checks) {
    body += check.name + ": " + std::string(Name(check.outcome)) + ", " + std::to_string(check.compared) + " compared";
    body += check.detail.empty() ? "\n" : ", " + check.detail + "\n";
  }
  return body;
}

std::vector<TestCase> CaseTests(const Record& record) {
  std::vector<TestCase> tests;
  for (const CaseRecord& entry : record.cases) {
    const Element element = ElementFor(entry);
    tests.push_back({.suite = record.command + "." + entry.engine,
                     .name = entry.id,
                     .seconds = entry.seconds,
                     .element = element,
                     .type = std::string(Name(entry.verdict)),
                     .message = entry.message,
                     .body = element == Element::kNone ? "" : Body(entry)});
  }
  return tests;
}

std::vector<TestCase> DefectTests(const Record& record) {
  std::vector<TestCase> tests;
  for (const DefectRecord& defect : record.defects) {
    const bool not_tried = WasNotTried(defect);
    tests.push_back(
        {.suite = record.command + ".defects",
         .name = defect.id + ": " + defect.title,
         .seconds = 0,
         .element = defect.caught ? Element::kNone
                    : not_tried   ? Element::kSkipped
                                  : Element::kFailure,
         .type = not_tried ? "NOT_RUN" : "NOT_CAUGHT",
         .message = not_tried ? "this planted defect was not tried"
                              : "no check caught this planted defect; verdict " + std::string(Name(defect.verdict)),
         .body = defect.message});
  }
  return tests;
}

std::string Attribute(std::string_view name, std::string_view value) {
  return " " + std::string(name) + "=\"" + EscapeXml(value) + "\"";
}

std::string Seconds(double seconds) {
  char text[64];
  std::snprintf(text, sizeof text, "%.3f", seconds);
  return text;
}

std::string_view Tag(Element element) {
  return element == Element::kFailure ? "failure" : element == Element::kError ? "error" : "skipped";
}

std::string ToXml(const TestCase& test) {
  std::string xml = "  <testcase" + Attribute("classname", test.suite) + Attribute("name", test.name) +
                    Attribute("time", Seconds(test.seconds));
  if (test.element == Element::kNone) return xml + "/>\n";
  const std::string tag(Tag(test.element));
  xml += ">\n   <" + tag + Attribute("type", test.type) +
         Attribute("message", test.message.empty() ? test.type : test.type + ": " + test.message) + ">";
  return xml + EscapeXml(test.body) + "</" + tag + ">\n  </testcase>\n";
}

struct Counts {
  int64_t tests = 0;
  int64_t of[4] = {};  // by Element
  double seconds = 0;

  void Add(const TestCase& test) {
    ++tests;
    ++of[static_cast<int>(test.element)];
    seconds += test.seconds;
  }
  std::string Attributes() const {
    const auto count = [&](Element element) { return std::to_string(of[static_cast<int>(element)]); };
    return Attribute("tests", std::to_string(tests)) + Attribute("failures", count(Element::kFailure)) +
           Attribute("errors", count(Element::kError)) + Attribute("skipped", count(Element::kSkipped)) +
           Attribute("time", Seconds(seconds));
  }
};

std::string Suite(const Record& record, const std::string& name, const std::vector<TestCase>& tests, Counts& all) {
  Counts counts;
  std::string body;
  for (const TestCase& test : tests) {
    counts.Add(test);
    all.Add(test);
    body += ToXml(test);
  }
  std::string properties = "  <properties>\n";
  const auto add = [&](std::string_view key, std::string_view value) {
    properties += "   <property" + Attribute("name", key) + Attribute("value", value) + "/>\n";
  };
  add("seed", std::to_string(record.seed));
  add("engine", record.engine.name + " " + record.engine.version);
  for (const auto& [key, value] : record.environment) add(key, value);
  properties += "  </properties>\n";
  // The attribute has no time zone by its definition; ours is UTC.
  const std::string timestamp = record.created.substr(0, record.created.find('Z'));
  return " <testsuite" + Attribute("name", name) + counts.Attributes() + Attribute("timestamp", timestamp) + ">\n" +
         properties + body + " </testsuite>\n";
}

}  // namespace

std::string EscapeXml(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const Decoded decoded = DecodeUtf8(text);
    if (decoded.length == 0) {
      out += kReplacement;
      text.remove_prefix(1);
    } else {
      AppendEscaped(out, decoded.character, text.substr(0, decoded.length));
      text.remove_prefix(decoded.length);
    }
  }
  return out;
}

std::string ToJunitXml(const Record& record) {
  Counts all;
  std::string suites = Suite(record, record.command, CaseTests(record), all);
  if (!record.defects.empty()) suites += Suite(record, record.command + " defects", DefectTests(record), all);
  return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites" + Attribute("name", "plumbline") + all.Attributes() +
         ">\n" + suites + "</testsuites>\n";
}

}  // namespace plumbline::reports
