// SPDX-License-Identifier: Apache-2.0
// The engine `torch_eager` as the protocol sees it (docs/formats.md): what it can do, and one case from folder to
// trace. No LibTorch here; the training is behind trainer.h.
#pragma once

#include <filesystem>

#include "conformance/contract/case_file.h"
#include "conformance/contract/engine_protocol.h"

namespace plumbline::conformance::torch_eager {

contract::EngineDescription Describe();

// Unsupported, naming the field, if the case asks for what Describe() does not offer.
void CheckSupported(const contract::Case& spec);

// Reads the case, trains it, writes OUT_DIR/rank0/trace.jsonl and the tensors of dump_steps. Throws contract::Error.
void RunCase(const std::filesystem::path& case_dir, const std::filesystem::path& out_dir);

}  // namespace plumbline::conformance::torch_eager
