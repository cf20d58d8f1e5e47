// SPDX-License-Identifier: Apache-2.0
#include "conformance/runner/reruns.h"

namespace plumbline::conformance {

using reports::Verdict;

bool Failed(Verdict verdict) { return verdict == Verdict::kFail || verdict == Verdict::kError; }

std::vector<size_t> FailedCases(const reports::Record& record, size_t most) {
  std::vector<size_t> failed;
  for (size_t i = 0; i < record.cases.size() && failed.size() < most; ++i) {
    if (Failed(record.cases[i].verdict)) failed.push_back(i);
  }
  return failed;
}

std::string RemarkOnRerun(const std::string& message, const Judgement& second) {
  if (second.verdict == Verdict::kNotRun) return "";
  if (second.verdict == Verdict::kPass) return " (flaky: it passed when it was run again)";
  if (second.message == message) return " (the same when run again)";
  return " (run again: " + second.message + ")";
}

}  // namespace plumbline::conformance
