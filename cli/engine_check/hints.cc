// SPDX-License-Identifier: Apache-2.0
#include "cli/engine_check/hints.h"

namespace plumbline::cli {
namespace {

struct Hint {
  std::string_view step;
  std::string_view text;
};

constexpr Hint kHints[] = {
    {"describe",
     "`PROGRAM describe` prints one JSON object with all keys, and nothing else on standard output, and ends with 0 "
     "(docs/formats.md, An engine is a program)"},
    {"case",
     "`run --case CASE_DIR --out OUT_DIR` trains, writes OUT_DIR/status.json when the case is over, and ends with 0 "
     "(docs/formats.md, An engine is a program)"},
    {"trace",
     "OUT_DIR/rank0/trace.jsonl has a header with the case's config, a line for each step that lists every tensor of "
     "the model by its canonical name, and an end (docs/formats.md, OUT_DIR)"},
    {"loss",
     "the forward pass, from weights.safetensors and batches.safetensors: loss = (1 / N) times a sum over all tokens, "
     "N the tokens whose weight u is not 0 (docs/exact-family.md, Forward)"},
    {"gradient",
     "the backward pass: the slope of each fold, G at its marked places after the sum is complete, the first of equal "
     "logits (docs/exact-family.md, Two maps, Backward). Backward runs from the last parameter to the first: begin "
     "with the one that is named"},
    {"update",
     "the optimizer, with t = 1 in the first step and the mathematical mod; entries of the trace are what is there "
     "after the update (docs/exact-family.md, Optimizers)"},
    {"dump",
     "after each of dump_steps OUT_DIR/rank0/tensors-SSSSSS.safetensors holds KIND/NAME@BEGIN, one-dimensional, of "
     "every entry of the trace, with the values that were digested (docs/formats.md, OUT_DIR)"},
    {"steps",
     "later steps: gradients begin at zero in each, t and the moments go on, the batch is the step's "
     "(docs/exact-family.md, Optimizers)"},
    {"resume",
     "a case with save_steps leaves OUT_DIR/checkpoint-SSSSSS; one with resume goes on from CASE_DIR/checkpoint, "
     "takes weights, moments and counters from there and none from the case, and traces the steps after the saved one "
     "(docs/formats.md, CASE_DIR)"},
    {"batch",
     "`run --batch FILE` runs a list in one start: a status for each case as soon as it is over, nothing left of the "
     "case before, exit code 0 (docs/formats.md, An engine is a program)"},
    {"long run", "50 steps, which make one wrong unit anywhere show (docs/exact-mode.md)"},
    {"grouped_heads", "query head i reads key and value head floor(i K / H) (docs/exact-family.md, Forward)"},
    {"dropout",
     "masks are words of Philox by seed, step, site, layer and element of the global batch (docs/exact-family.md, "
     "Random draws)"},
    {"accumulation",
     "gradients of A micro-batches are added, in fp32, and divided once by the N of the whole batch "
     "(docs/exact-family.md, Who computes which sample)"},
    {"bf16",
     "weights and activations in bf16, sums in fp32, gradients of weights in fp32 (docs/exact-family.md, "
     "Certificate)"},
    {"fp16",
     "weights and activations in fp16, gradients scaled by fp16.loss_scale and divided by it once "
     "(docs/exact-family.md, Loss scale)"},
    {"optimizer", "docs/exact-family.md, Optimizers"},
    {"ranks",
     "rank r has the samples (a R + r) m ... of micro-batch a; N, the loss and gradients are summed over ranks; each "
     "writes its own rankR/trace.jsonl; rank 0 writes status.json when all are over (docs/formats.md, Starting ranks)"},
    {"zero 1", "gradients, moments and master weights are each on one rank (docs/formats.md, Buckets and the ledger)"},
    {"zero 2", "as ZeRO 1, reduced in each micro-batch (docs/formats.md, Buckets and the ledger)"},
    {"zero 3", "weights too are on one rank each, unless frozen or persistent (docs/zero3.md)"},
    {"gpt2", "docs/semantics.md, Family gpt2 and One step"},
    {"gpt2 ranks",
     "the loss is one sum over all tokens, divided once by their number on all ranks "
     "(docs/semantics.md, One step)"},
    {"llama", "docs/semantics.md, Family llama and One step"},
    {"llama ranks",
     "the loss is one sum over all tokens, divided once by their number on all ranks "
     "(docs/semantics.md, One step)"},
};

}  // namespace

std::string_view HintOf(std::string_view step) {
  for (const Hint& hint : kHints) {
    if (hint.step == step) return hint.text;
  }
  return "";
}

}  // namespace plumbline::cli
