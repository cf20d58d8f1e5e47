// SPDX-License-Identifier: Apache-2.0
// Calls and bytes on the wire, and the digest of their order, against a formula that is computed here from
// docs/formats.md ("Buckets and the ledger") and from nothing of any engine: a fix that turns off sharding gives right
// numbers, and is found here.
#pragma once

#include <map>
#include <span>
#include <string>

#include "conformance/contract/case_file.h"
#include "conformance/contract/trace.h"
#include "reports/record/record.h"

namespace plumbline::conformance {

// What each rank must count in each step; kinds that are not called are absent.
std::map<std::string, contract::CommCount> ExpectedComm(const contract::ModelSpec& model,
                                                        const contract::RunConfig& config);

// "ledger". Not applicable where the engine keeps none (`required` false) and the traces hold none.
reports::CheckRecord CheckLedger(const contract::Case& spec, std::span<const contract::Trace> ranks, bool required);

}  // namespace plumbline::conformance
