# SPDX-License-Identifier: Apache-2.0
"""The XML is well-formed for a parser that is not ours, and every text comes back as it went in.

Argument: the program that prints the example (testing/print_example.cc).
"""
import subprocess
import sys
import unittest
import xml.etree.ElementTree as ElementTree

DIFFICULT = "]]> <b> & \"quoted\" 'single' \ufffd \ufffd tab\t line\n \u20ac \U0001f600 end"


class JunitXml(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        xml = subprocess.run([PROGRAM], check=True, stdout=subprocess.PIPE).stdout
        cls.root = ElementTree.fromstring(xml)
        cls.suites = cls.root.findall("testsuite")

    def test_counts_are_those_of_the_elements(self):
        self.assertEqual([suite.get("name") for suite in self.suites], ["verify", "verify defects"])
        for scope in self.suites + [self.root]:
            self.assertEqual(int(scope.get("tests")), len(list(scope.iter("testcase"))))
            for attribute, tag in [("failures", "failure"), ("errors", "error"), ("skipped", "skipped")]:
                self.assertEqual(int(scope.get(attribute)), len(list(scope.iter(tag))), tag)
        self.assertEqual(self.root.get("tests"), "9")
        self.assertEqual(self.root.get("failures"), "2")

    def test_difficult_text_survives_in_attributes_and_bodies(self):
        failure = self.suites[0].findall("testcase")[1].find("failure")
        self.assertEqual(failure.get("message"), "FAIL: " + DIFFICULT)
        self.assertIn("\nreproduce: " + DIFFICULT + "\n", failure.text)
        self.assertTrue(failure.text.startswith("first divergence: step 3, gradient of "), failure.text)
        self.assertEqual(self.suites[0].findall("testcase")[2].get("name"), DIFFICULT)

    def test_a_case_has_at_most_one_element(self):
        for case in self.root.iter("testcase"):
            self.assertLessEqual(len(case), 1)


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main()
