// SPDX-License-Identifier: Apache-2.0
// A record that holds every verdict and every field, for tests only.
#pragma once

#include "reports/record/record.h"

namespace plumbline::reports {

inline Record ExampleRecord() {
  Record record;
  record.created = "2030-01-31T23:59:59Z";
  record.seed = 7;
  record.options = {{"jobs", "2"}, {"text_file", "data.txt"}};
  record.text = {.name = "data.txt", .size_bytes = 12345};
  record.environment = {{"commit", "abc"}, {"cores", "2"}};
  record.engine = {.name = "optimized", .version = "0.1", .program = "optimized"};
  for (Verdict verdict : kVerdicts) {
    CaseRecord entry;
    entry.id = "exact/" + std::string(Name(verdict));
    entry.verdict = verdict;
    entry.engine = "optimized";
    record.cases.push_back(entry);
  }
  CaseRecord& first = record.cases[0];
  first.axes = {{"data", "3"}, {"zero", "2"}};
  first.checks = {{.name = "weights", .outcome = CheckOutcome::kPass, .compared = 228, .detail = ""},
                  {.name = "ledger", .outcome = CheckOutcome::kNotApplicable, .compared = 0, .detail = "no feature"}};
  first.reproduce = "plumbline verify --case exact/PASS";
  first.seconds = 0.25;
  first.steps = 60;
  first.ranks = 3;
  CaseRecord second = first;
  second.id = "exact/second";
  second.steps = 61;
  second.seconds = 1.5;
  second.axes = {};
  second.checks = {};
  record.cases[1].checks = {{.name = "weights", .outcome = CheckOutcome::kFail, .compared = 9, .detail = "step 3"}};
  record.cases[1].message = "differs at step 3 in embed.weight";
  record.cases[1].shrunk = {.reduced = "data 8 → 2, steps 60 → 1",
                            .tried = 23,
                            .seconds = 6.5,
                            .finished = true,
                            .message = "differs at step 0 in embed.weight",
                            .reproduce = "./plumbline verify --case-file failures/x/shrunk.json",
                            .note = "none"};
  record.cases[1].divergence = {.step = 3,
                                .quantity = "gradient",
                                .tensor = "layers.1.mlp.down",
                                .layer = 1,
                                .ranks = {0, 2},
                                .region = "elements 114 to 227 of 228",
                                .hypotheses = {{.name = "missing_rank",
                                                .says = "a rank's share is missing: rank 2",
                                                .residual = 0.25,
                                                .fits = true}},
                                .residual_limit = 0.5,
                                .undiagnosed = ""};
  record.cases[3].expected_unsupported = true;
  record.cases.push_back(second);
  record.defects = {{.id = "G1",
                     .title = "gradient scaled twice",
                     .caught = true,
                     .verdict = Verdict::kFail,
                     .caught_by = {"weights", "gradients"},
                     .first_step = 0,
                     .tensor = "embed.weight",
                     .message = "differs",
                     .expect = "weights: step 0",
                     .hypothesis = "factor_ranks",
                     .divergence = DivergenceRecord{.step = 0, .quantity = "loss", .undiagnosed = "a number"}}};
  record.listed = 7;
  Finish(record, false);
  return record;
}

}  // namespace plumbline::reports
