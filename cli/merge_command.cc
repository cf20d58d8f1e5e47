// SPDX-License-Identifier: Apache-2.0
// `plumbline merge`: the records of all shards of one run into one record.
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/result_folder.h"
#include "cli/verify_table.h"
#include "reports/record/merge.h"
#include "reports/record/record.h"

namespace plumbline::cli {
namespace {

struct Options {
  std::vector<std::string> records;
  std::string out;
  bool partial = false;
  bool require = false;
  bool json = false;
};

int Run(const Options& options) {
  std::vector<reports::Record> shards;
  for (const std::string& path : options.records) shards.push_back(reports::ReadRecord(path));
  reports::MergeOptions merge;
  merge.allow_partial = options.partial;
  merge.require = options.require;
  const reports::Record record = reports::Merge(shards, merge);
  const ResultFolder folder(options.out, "merge");
  PrintAndWrite(folder, record, options.json ? reports::ToJson(record) : VerifyTable(record, false), !options.json);
  return static_cast<int>(record.exit_code);
}

}  // namespace

Command AddMerge(CLI::App& app) {
  CLI::App* command = app.add_subcommand("merge", "Join the records of `verify --shard 1/n ... n/n` into one");
  const auto options = std::make_shared<Options>();
  command->add_option("records", options->records, "record.json of each shard")->type_name("FILE")->required();
  command
      ->add_option("--out", options->out, "New or empty folder for the result (default: a new one in plumbline-out/)")
      ->type_name("FOLDER");
  command->add_flag("--partial", options->partial, "Accept missing shards; they are listed, and the exit code is 1");
  command->add_flag("--require", options->require, "NOT_RUN is a failure");
  command->add_flag("--json", options->json, "Print the record as JSON");
  command->footer(std::string("Examples:\n"
                              "  ./plumbline verify --shard 1/2 --out shard1\n"
                              "  ./plumbline verify --shard 2/2 --out shard2\n"
                              "  ./plumbline merge shard1/record.json shard2/record.json --out whole\n\n") +
                  kExitCodes);
  return [options] { return Run(*options); };
}

}  // namespace plumbline::cli
