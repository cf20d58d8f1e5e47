// SPDX-License-Identifier: Apache-2.0
// Elements and counts for every verdict; escapes of everything that XML 1.0 makes difficult. junit_xml_test.py parses a
// whole document with an XML parser.
#include "reports/junit/junit.h"

#include <gtest/gtest.h>

#include <string>

#include "reports/record/testing/example.h"

namespace plumbline::reports {
namespace {

size_t Count(const std::string& text, const std::string& piece) {
  size_t count = 0;
  for (size_t at = text.find(piece); at != std::string::npos; at = text.find(piece, at + piece.size())) ++count;
  return count;
}

bool Has(const std::string& text, const std::string& piece) { return Count(text, piece) == 1; }

TEST(EscapeXml, LeavesOrdinaryTextAlone) {
  EXPECT_EQ(EscapeXml(""), "");
  EXPECT_EQ(EscapeXml("plain text, ünïcode \xE2\x82\xAC \xF0\x9F\x98\x80"),
            "plain text, ünïcode \xE2\x82\xAC \xF0\x9F\x98\x80");
}

TEST(EscapeXml, EscapesMarkupAndLineEnds) {
  EXPECT_EQ(EscapeXml("]]>"), "]]&gt;");
  EXPECT_EQ(EscapeXml("<a b=\"c\" d='e'>&amp;"), "&lt;a b=&quot;c&quot; d=&apos;e&apos;&gt;&amp;amp;");
  EXPECT_EQ(EscapeXml("\t\n\r"), "&#9;&#10;&#13;");
}

TEST(EscapeXml, ReplacesWhatXmlCannotHold) {
  const std::string replacement = "\xEF\xBF\xBD";
  EXPECT_EQ(EscapeXml("a\x01z"), "a" + replacement + "z");
  EXPECT_EQ(EscapeXml(std::string("\0", 1)), replacement);
  EXPECT_EQ(EscapeXml("\x1F"), replacement);
  EXPECT_EQ(EscapeXml("\xEF\xBF\xBE"), replacement);  // U+FFFE
  EXPECT_EQ(EscapeXml("\xEF\xBF\xBF"), replacement);  // U+FFFF
  EXPECT_EQ(EscapeXml("\x7F"), "\x7F");               // allowed, if odd
}

TEST(EscapeXml, ReplacesEachByteThatIsNotUtf8) {
  const std::string replacement = "\xEF\xBF\xBD";
  EXPECT_EQ(EscapeXml("\xFF"), replacement);
  EXPECT_EQ(EscapeXml("\x80"), replacement);
  EXPECT_EQ(EscapeXml("\xC0\xBC"), replacement + replacement);                    // overlong <
  EXPECT_EQ(EscapeXml("\xE0\x80\xBC"), replacement + replacement + replacement);  // overlong <
  EXPECT_EQ(EscapeXml("\xED\xA0\x80"), replacement + replacement + replacement);  // surrogate
  EXPECT_EQ(EscapeXml("\xF4\x90\x80\x80"), replacement + replacement + replacement + replacement);
  EXPECT_EQ(EscapeXml("\xE2\x82<"), replacement + replacement + "&lt;");  // cut off
}

TEST(Junit, EveryVerdictHasItsElement) {
  Record record = ExampleRecord();
  const std::string xml = ToJunitXml(record);
  EXPECT_TRUE(Has(xml,
                  "<testsuite name=\"verify\" tests=\"7\" failures=\"1\" errors=\"2\" skipped=\"2\" time=\"1.750\" "
                  "timestamp=\"2030-01-31T23:59:59\">"))
      << xml;
  EXPECT_TRUE(Has(xml, "<failure type=\"FAIL\" message=\"FAIL: differs at step 3 in embed.weight\">"));
  EXPECT_TRUE(Has(xml, "<error type=\"ERROR\""));
  EXPECT_TRUE(Has(xml, "<error type=\"VACUOUS\""));
  EXPECT_TRUE(Has(xml, "<skipped type=\"UNSUPPORTED\""));
  EXPECT_TRUE(Has(xml, "<skipped type=\"NOT_RUN\""));
  EXPECT_TRUE(Has(xml, "<testcase classname=\"verify.optimized\" name=\"exact/PASS\" time=\"0.250\"/>"));
  EXPECT_EQ(Count(xml, "<testcase "), 8u);

  record.cases[3].expected_unsupported = false;
  const std::string unexpected = ToJunitXml(record);
  EXPECT_TRUE(Has(unexpected, "<error type=\"UNSUPPORTED\""));
  EXPECT_TRUE(Has(unexpected, "errors=\"3\" skipped=\"1\" time=\"1.750\" timestamp"));
}

TEST(Junit, BodyHoldsTheChecksAndTheLineThatReproduces) {
  Record record = ExampleRecord();
  record.cases[1].reproduce = "plumbline verify --case 'a<b'";
  const std::string xml = ToJunitXml(record);
  EXPECT_TRUE(Has(xml, "reproduce: plumbline verify --case &apos;a&lt;b&apos;&#10;"));
  EXPECT_TRUE(Has(xml, "weights: fail, 9 compared, step 3&#10;"));
  EXPECT_TRUE(Has(xml, "fails like it: data 8 → 2, steps 60 → 1&#10;"));
  EXPECT_TRUE(Has(xml, "reproduce: ./plumbline verify --case-file failures/x/shrunk.json&#10;"));
  record.cases[1].shrunk->reproduce.clear();  // none was run
  EXPECT_FALSE(Has(ToJunitXml(record), "fails like it"));
}

TEST(Junit, BodyBeginsWithTheFirstDivergenceAndItsHypotheses) {
  Record record = ExampleRecord();
  record.cases[1].divergence =
      DivergenceRecord{.step = 3,
                       .quantity = "gradient",
                       .tensor = "embed.weight",
                       .ranks = {1},
                       .hypotheses = {{.name = "no_reduction", .says = "1 < 2", .residual = 0, .fits = true}},
                       .residual_limit = 0.05};
  EXPECT_TRUE(Has(ToJunitXml(record),
                  "message=\"FAIL: differs at step 3 in embed.weight\">"
                  "first divergence: step 3, gradient of embed.weight, rank 1&#10;"
                  "fits:    no_reduction (residual 0): 1 &lt; 2&#10;"))
      << ToJunitXml(record);
  record.cases[1].divergence.reset();
  EXPECT_FALSE(Has(ToJunitXml(record), "first divergence"));
}

TEST(Junit, DefectsAreASecondSuite) {
  Record record = ExampleRecord();
  record.defects.push_back({.id = "G2", .title = "quiet"});
  const std::string xml = ToJunitXml(record);
  EXPECT_EQ(Count(xml, "<testsuite "), 2u);
  EXPECT_TRUE(Has(xml, "<testsuite name=\"verify defects\" tests=\"2\" failures=\"1\" errors=\"0\" skipped=\"0\""));
  EXPECT_TRUE(Has(xml, "<testcase classname=\"verify.defects\" name=\"G1: gradient scaled twice\" time=\"0.000\"/>"));
  EXPECT_TRUE(Has(xml, "<failure type=\"NOT_CAUGHT\""));
  EXPECT_TRUE(Has(xml, "<testsuites name=\"plumbline\" tests=\"9\" failures=\"2\" errors=\"2\" skipped=\"2\""));
  record.defects[1].verdict = Verdict::kNotRun;
  const std::string stopped = ToJunitXml(record);
  EXPECT_TRUE(Has(stopped, "<testsuite name=\"verify defects\" tests=\"2\" failures=\"0\" errors=\"0\" skipped=\"1\""));
  EXPECT_FALSE(Has(stopped, "NOT_CAUGHT"));
  record.defects.clear();
  EXPECT_EQ(Count(ToJunitXml(record), "<testsuite "), 1u);
}

}  // namespace
}  // namespace plumbline::reports
