// SPDX-License-Identifier: Apache-2.0
// Engines that are shell scripts, for tests of what starts engines: they train nothing, and end as a test says.
#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "conformance/engines/engine_program.h"
#include "conformance/runner/truths.h"

namespace plumbline::conformance {

class ScriptEngine {
 public:
  // Runs `body` for each case, with $case and $out as its folders and these functions, which end it: `error WORDS`,
  // `unsupported WORDS`, `ok`.
  ScriptEngine(const std::filesystem::path& folder, const std::string& name, const std::string& body)
      : starts_(folder / (name + ".starts")) {
    engine_.program.program = folder / name;
    std::ofstream(engine_.program.program)
        << "#!/bin/sh\ncase=$3\nout=$5\necho start >> '" << starts_.string() << "'\n"
        << "leave() { printf '{\"status\": \"%s\", \"message\": \"%s\"}' \"$1\" \"$2\" > \"$out/status.json\"; }\n"
        << "error() { leave error \"$*\"; exit 1; }\nunsupported() { leave unsupported \"$*\"; exit 3; }\n"
        << "ok() { leave ok ''; exit 0; }\n"
        << body << "\n";
    std::filesystem::permissions(engine_.program.program, std::filesystem::perms::owner_all);
    contract::EngineDescription& description = engine_.description;
    description.name = name;
    description.families = {"exact"};
    description.dtypes = {"fp32"};
    description.optimizers = {"ModularMomentum", "ModularSGD"};
    description.zero_stages = {0, 1};
    description.max_data_degree = 4;
    description.features = {"accumulation"};
  }

  Engine& engine() { return engine_; }
  const Engine& engine() const { return engine_; }
  int64_t NumStarts() const {
    std::ifstream file(starts_);
    return std::count(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>(), '\n');
  }

 private:
  std::filesystem::path starts_;
  Engine engine_;
};

// Two ranks, two micro-batches, two layers, three steps: something to make smaller.
inline contract::Case ScriptCase() {
  contract::Case spec;
  spec.id = "exact/x";
  contract::ExactSpec& model = spec.model.exact();
  model.layers = 2;
  model.width = 3;
  model.heads = model.kv_heads = 1;
  model.positions = 12;
  model.hidden = 5;
  model.vocab = 11;
  spec.config.train_batch_size = 8;
  spec.config.micro_batch_size = 2;
  spec.config.accumulation_steps = 2;
  spec.config.data_degree = 2;
  spec.config.zero_stage = 1;
  spec.steps = 3;
  spec.timeout_s = 30;
  return spec;
}

}  // namespace plumbline::conformance
