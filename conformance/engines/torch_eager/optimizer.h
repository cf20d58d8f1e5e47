// SPDX-License-Identifier: Apache-2.0
// The optimizers of docs/semantics.md behind one interface: LibTorch's own where it has one with exactly these
// semantics. They update fp32 (or fp64) master weights from the gradients that those hold in grad(), and keep the
// moments. No header of LibTorch is needed to use it; rates and betas are the schedule's (schedule.h), clipping is the
// trainer's.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "conformance/contract/run_config.h"
#include "conformance/engines/torch_eager/schedule.h"

namespace at {
class Tensor;
}

namespace plumbline::conformance::torch_eager {

// A list for each group, the default group first; empty ones included, so that indices agree.
using ParametersOfGroups = std::vector<std::vector<at::Tensor>>;

class Optimizer {
 public:
  virtual ~Optimizer() = default;

  // What it would hold after `num_updates` updates. It keeps the moments, of which those that it does not have are
  // undefined.
  virtual void Resume(const at::Tensor& parameter, int64_t num_updates, const at::Tensor& moment,
                      const at::Tensor& second_moment) = 0;

  // Of every group its lr and betas.
  virtual void Step(const std::vector<double>& rates, const std::vector<Betas>& betas) = 0;

  // Undefined before the first update of a parameter that was not resumed, and where there is no such moment.
  virtual at::Tensor Moment(const at::Tensor& parameter, bool second) const = 0;
};

// Unsupported if it has not got the config's optimizer.
std::unique_ptr<Optimizer> MakeOptimizer(const contract::RunConfig& config, const ParametersOfGroups& parameters);

// The library's own.
std::unique_ptr<Optimizer> MakeLibraryAdamW(const contract::RunConfig& config, const ParametersOfGroups& parameters);
std::unique_ptr<Optimizer> MakeLibraryAdam(const contract::RunConfig& config, const ParametersOfGroups& parameters);
std::unique_ptr<Optimizer> MakeLibrarySgd(const contract::RunConfig& config, const ParametersOfGroups& parameters);
// Of tensor operations.
std::unique_ptr<Optimizer> MakeLion(const contract::RunConfig& config, const ParametersOfGroups& parameters);
std::unique_ptr<Optimizer> MakeLamb(const contract::RunConfig& config, const ParametersOfGroups& parameters);

}  // namespace plumbline::conformance::torch_eager
