// SPDX-License-Identifier: Apache-2.0
// The options of `plumbline verify`: what they are called, what they take, and what is refused before anything is made.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "conformance/runner/plan.h"

namespace plumbline::cli {

// As typed. Numbers are words until ParseNumbers has read them.
struct VerifyOptions {
  bool list = false;
  bool dry_run = false;
  bool coverage = false;
  bool self_test = false;
  bool no_self_test = false;
  bool require = false;
  bool every_kill = false;
  bool keep = false;
  bool json = false;
  bool verbose = false;
  std::string tier = "smoke";
  std::string case_id;
  std::string case_file;
  std::string filter;
  std::string engine;
  std::vector<std::string> expect_unsupported;
  std::string text;
  std::string out;
  std::string shard;
  std::string mutants;
  std::string mutant_engine;
  std::string mutant_cases;
  std::string seed = "1";
  std::string jobs;
  std::string timeout = "60";
  std::string shrink = "20";

  // ParseNumbers sets these.
  std::optional<size_t> num_mutant_cases = std::nullopt;
  int num_jobs = 0;  // 0: as many as there are processors
  uint64_t seed_number = 1;
  double timeout_s = 60;
  double shrink_s = 20;
};

// The subcommand with its options and its help, which writes into `options`.
CLI::App* AddVerifyOptions(CLI::App& app, VerifyOptions& options);

// Everything that can be refused without looking at a file. InvalidArgument.
void ParseNumbers(VerifyOptions& options);
void CheckCombination(const VerifyOptions& options);

// Reads --case-file, if there is one.
conformance::PlanOptions PlanOf(const VerifyOptions& options);

// Can every selected case train on the text? InvalidArgument that names the option, its value and what is allowed.
void CheckText(const VerifyOptions& options, const conformance::Plan& plan);

}  // namespace plumbline::cli
