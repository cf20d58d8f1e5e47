// SPDX-License-Identifier: Apache-2.0
// Judges single cases one after the other, each with a truth of its own problem, as `verify --case-file` does. Truths
// are kept, since many cases share a problem.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "conformance/cases/problem.h"
#include "conformance/contract/batch_source.h"
#include "conformance/contract/case_file.h"
#include "conformance/runner/judge.h"
#include "conformance/runner/plan.h"
#include "conformance/runner/truths.h"

namespace plumbline::conformance {

class LoneJudge {
 public:
  struct Engines {
    const Engine* reference = nullptr;
    const Engine* plain = nullptr;  // for real families
    const Engine* candidate = nullptr;
  };

  // All references must outlive it. Writes below work_dir, and removes what it wrote after each case.
  LoneJudge(const Engines& engines, const contract::TokenSource& source, std::filesystem::path work_dir, int jobs);

  // A truth that is finished already, of the problem that `entry` is a case of. It must outlive this.
  void Know(const PlannedCase& entry, const Truths& truths);

  // Nothing if the case cannot be made (no data of this shape) or its engine declines it, or after a stop request.
  // contract::Error for what is wrong with the machine or with an engine's program, which may be gone by now.
  std::optional<Judgement> Judge(const contract::Case& spec, std::stop_token stop);

 private:
  // A problem's truth and its number there.
  struct Known {
    const Truths* truths = nullptr;
    int problem = 0;
    std::unique_ptr<const Plan> plan;  // of our own truths
    std::unique_ptr<Truths> own;
  };

  // None where there are no data, and after a stop request.
  const Known* TruthOf(const contract::Case& spec, const std::filesystem::path& dir, std::stop_token stop);

  Engines engines_;
  const contract::TokenSource& source_;
  std::filesystem::path work_dir_;
  int jobs_;
  std::map<std::string, Known> known_;  // by problem, storage type of a real family, and seed
};

}  // namespace plumbline::conformance
