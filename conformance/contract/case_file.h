// SPDX-License-Identifier: Apache-2.0
// A case: the folder that an engine is given (case.json, weights, state, batches). Format: docs/formats.md.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/contract/batches.h"
#include "conformance/contract/loss_scale.h"
#include "conformance/contract/model_spec.h"
#include "conformance/contract/norm_history.h"
#include "conformance/contract/run_config.h"

namespace plumbline::contract {

// One unit added on purpose, to measure amplification.
struct Perturbation {
  enum class Kind { kGradient, kMoment, kMaster, kWeight, kCounter };
  Kind kind = Kind::kGradient;
  std::string tensor;  // empty for kCounter
  int64_t index = 0;
  int64_t step = 0;
  int64_t delta = 1;

  friend bool operator==(const Perturbation&, const Perturbation&) = default;
};

std::string_view Name(Perturbation::Kind kind);

struct Case {
  std::string id;
  ModelSpec model;
  RunConfig config;
  uint64_t seed = 0;
  int64_t first_step = 0;  // steps first_step ... first_step + steps - 1 are run
  int64_t steps = 0;
  double timeout_s = 60;
  std::vector<int64_t> dump_steps;
  std::vector<int64_t> save_steps;  // a checkpoint is written after these
  bool resume = false;              // the state is CASE_DIR/checkpoint
  std::optional<Perturbation> perturbation;
  bool phase_marks = false;

  friend bool operator==(const Case&, const Case&) = default;
};

Case ParseCase(std::string_view json, std::string_view where);
std::string ToJson(const Case& spec);

// Values of one parameter where a run of family exact starts, row-major.
struct ParameterState {
  std::vector<int64_t> weight;  // W
  std::vector<int64_t> master;  // U
  std::vector<int64_t> moment;  // M; empty with ModularSGD
};

// The same for the real families. The working weight is the master weight rounded to the storage type.
struct RealParameterState {
  std::vector<float> master;
  std::vector<float> moment;         // m, or SGD's b with momentum; else empty. Empty for a frozen parameter.
  std::vector<float> second_moment;  // v of AdamW, Adam and LAMB; else empty
};

// Everything in a case folder, validated: names, shapes, ranges, sizes of the batches against config and model. Of the
// two states the one of the model's family is filled.
struct CaseData {
  Case spec;
  std::vector<ParameterSpec> parameters;       // canonical order
  std::vector<ParameterState> state;           // same order
  std::vector<RealParameterState> real_state;  // same order
  int64_t num_updates = 0;                     // updates made before first_step: t of the next one is this plus 1
  NormHistory norm_history;                    // before first_step; with HasNormHistory
  LossScaler loss_scaler;                      // before first_step; with HasDynamicLossScale
  Batches batches;                             // of the steps that are run
};

// Whether the optimizer keeps these for a parameter that is not frozen.
bool HasMoment(const RunConfig& config);
bool HasSecondMoment(const RunConfig& config);

// Whether clipping remembers norms: the state, traces and checkpoints then hold a NormHistory.
bool HasNormHistory(const RunConfig& config);

CaseData ReadCase(const std::filesystem::path& case_dir);
void WriteCase(const std::filesystem::path& case_dir, const CaseData& data);

}  // namespace plumbline::contract
