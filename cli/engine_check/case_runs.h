// SPDX-License-Identifier: Apache-2.0
// Runs cases with an engine in folders that stay, so that the line which does it again by hand can be printed.
#pragma once

#include <filesystem>
#include <stop_token>
#include <string>
#include <vector>

#include "conformance/contract/case_file.h"
#include "conformance/runner/observation.h"
#include "conformance/runner/truths.h"

namespace plumbline::cli {

struct SeenRun {
  conformance::Observation seen;
  std::filesystem::path out_dir;
  std::string again;  // the command
};

class CaseRuns {
 public:
  // References must outlive it.
  CaseRuns(const conformance::Engine& engine, std::filesystem::path folder, std::stop_token stop)
      : engine_(engine), folder_(std::move(folder)), stop_(std::move(stop)) {}

  // FOLDER/NAME; the case's folder, written. Of a case that resumes, `checkpoint` is what it resumes from.
  std::filesystem::path MakeCase(const std::string& name, const contract::CaseData& data,
                                 const std::filesystem::path& checkpoint = {}) const;

  // A case of one rank: by itself into FOLDER/OUT, or by --batch so many times in one start, into OUT0, OUT1, ...
  SeenRun Run(const std::filesystem::path& case_dir, const std::string& out) const;
  std::vector<SeenRun> RunList(const std::filesystem::path& case_dir, const std::string& out, size_t times) const;

 private:
  std::vector<SeenRun> RunAll(const std::filesystem::path& case_dir, const std::vector<std::string>& outs,
                              bool in_list) const;
  std::string Again(const std::filesystem::path& case_dir, const std::filesystem::path& out_dir) const;

  const conformance::Engine& engine_;
  std::filesystem::path folder_;
  std::stop_token stop_;
};

}  // namespace plumbline::cli
