// SPDX-License-Identifier: Apache-2.0
// The smallest case that an engine may be given: one rank, one layer, one micro-batch, of the first family and storage
// type that it claims. It is for an author with a debugger: a few hundred weights, and what the reference holds after
// each step beside it.
#pragma once

#include <cstdint>

#include "conformance/contract/batch_source.h"
#include "conformance/contract/case_file.h"
#include "conformance/contract/engine_protocol.h"

namespace plumbline::cli {

// InvalidArgument if the description lists no optimizer of its family, or no family or storage type at all.
contract::Case FirstCase(const contract::EngineDescription& description, int64_t steps);

// With initial state and batches.
contract::CaseData DataOf(const contract::Case& spec, const contract::TokenSource& source);

}  // namespace plumbline::cli
