// SPDX-License-Identifier: Apache-2.0
// Prints the XML of a record full of difficult characters, for junit_xml_test.py to parse.
#include <cstdio>
#include <string>

#include "reports/junit/junit.h"
#include "reports/record/testing/example.h"

int main() {
  using namespace plumbline::reports;
  Record record = ExampleRecord();
  record.cases[1].message = "]]> <b> & \"quoted\" 'single' \x01 \xFF tab\t line\n \xE2\x82\xAC \xF0\x9F\x98\x80 end";
  record.cases[1].reproduce = record.cases[1].message;
  record.cases[2].id = record.cases[1].message;
  record.defects.push_back({.id = "G2", .title = "<quiet>"});
  std::fputs(ToJunitXml(record).c_str(), stdout);
}
