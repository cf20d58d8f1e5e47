// SPDX-License-Identifier: Apache-2.0
#include "cli/engine_check/case_runs.h"

#include <utility>

#include "cli/shell_words.h"
#include "conformance/contract/file_io.h"
#include "conformance/engines/run_cases.h"

namespace plumbline::cli {
namespace {

std::string Shown(const std::filesystem::path& path) {
  std::error_code error;
  const std::filesystem::path relative = std::filesystem::relative(path, error);
  return Quoted((error || relative.empty() ? path : relative).string());
}

}  // namespace

std::filesystem::path CaseRuns::MakeCase(const std::string& name, const contract::CaseData& data,
                                         const std::filesystem::path& checkpoint) const {
  const std::filesystem::path dir = folder_ / name;
  std::filesystem::create_directories(dir);
  contract::WriteCase(dir, data);
  if (!checkpoint.empty()) std::filesystem::create_directory_symlink(checkpoint, dir / "checkpoint");
  return dir;
}

SeenRun CaseRuns::Run(const std::filesystem::path& case_dir, const std::string& out) const {
  return std::move(RunAll(case_dir, {out}, false).front());
}

std::vector<SeenRun> CaseRuns::RunList(const std::filesystem::path& case_dir, const std::string& out,
                                       size_t times) const {
  std::vector<std::string> outs;
  for (size_t i = 0; i < times; ++i) outs.push_back(out + std::to_string(i));
  return RunAll(case_dir, outs, true);
}

std::vector<SeenRun> CaseRuns::RunAll(const std::filesystem::path& case_dir, const std::vector<std::string>& outs,
                                      bool in_list) const {
  const contract::Case spec = contract::ReadCase(case_dir).spec;
  contract::EngineDescription description = engine_.description;
  description.batch = in_list;
  std::vector<conformance::CaseRun> runs;
  for (const std::string& out : outs) runs.push_back({case_dir, folder_ / out, spec.timeout_s, 1});
  std::vector<SeenRun> seen(runs.size());
  conformance::RunCases(engine_.program, description, runs, folder_ / "logs", stop_,
                        [&](size_t index, const conformance::CaseOutcome& outcome) {
                          const std::filesystem::path& out_dir = runs[index].out_dir;
                          seen[index] = {conformance::Observe(spec, engine_.description, out_dir, outcome), out_dir,
                                         Again(case_dir, out_dir)};
                        });
  return seen;
}

std::string CaseRuns::Again(const std::filesystem::path& case_dir, const std::filesystem::path& out_dir) const {
  const std::string out = Shown(out_dir.string() + "-again");
  const std::string place = engine_.description.starts_itself
                                ? ""
                                : "RANK=0 LOCAL_RANK=0 WORLD_SIZE=1 MASTER_ADDR=127.0.0.1 MASTER_PORT=29500 ";
  return "rm -rf " + out + " && mkdir " + out + " && " + place + Quoted(engine_.program.program.string()) +
         " run --case " + Shown(case_dir) + " --out " + out;
}

}  // namespace plumbline::cli
