// SPDX-License-Identifier: Apache-2.0
// Makes the folder of a case of a real family from its case.json and a text, as the harness does: initial weights, zero
// moments and batches from the contract. It trains nothing and judges nothing.
//
//   write_case CASE_JSON TEXT CASE_DIR
#include <cstdio>
#include <exception>
#include <filesystem>

#include "conformance/contract/batch_source.h"
#include "conformance/contract/case_file.h"
#include "conformance/contract/error.h"
#include "conformance/contract/file_io.h"
#include "conformance/contract/model_spec.h"

namespace {

using plumbline::contract::CaseData;

void WriteRealCase(const std::filesystem::path& case_json, const std::filesystem::path& text,
                   const std::filesystem::path& case_dir) {
  CaseData data;
  data.spec = plumbline::contract::ParseCase(plumbline::contract::ReadFile(case_json), case_json.filename().string());
  data.parameters = plumbline::contract::Parameters(data.spec.model);
  data.real_state = plumbline::contract::MakeInitialRealState(data.spec.model, data.spec.config, data.spec.seed);
  data.batches = plumbline::contract::MakeBatches(plumbline::contract::ReadTokenSource(text), data.spec.model,
                                                  {.seed = data.spec.seed,
                                                   .first_step = data.spec.first_step,
                                                   .steps = data.spec.steps,
                                                   .batch = data.spec.config.train_batch_size});
  std::filesystem::create_directories(case_dir);
  plumbline::contract::WriteCase(case_dir, data);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: write_case CASE_JSON TEXT CASE_DIR\n");
    return static_cast<int>(plumbline::contract::ExitCode::kUsage);
  }
  try {
    WriteRealCase(argv[1], argv[2], argv[3]);
  } catch (const plumbline::contract::Error& error) {
    std::fprintf(stderr, "write_case: %s\n", error.what());
    return static_cast<int>(plumbline::contract::ExitCodeOf(error.code()));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "write_case: %s\n", error.what());
    return static_cast<int>(plumbline::contract::ExitCode::kInternal);
  }
  return 0;
}
