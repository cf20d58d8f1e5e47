// SPDX-License-Identifier: Apache-2.0
// Is every tensor alive? Per tensor the mean over the steps of the share of gradient elements that are not 0 and of the
// share of weights that a step moved (docs/exact-family.md, "Certificate"). It measures; the harness judges.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "conformance/contract/trace.h"
#include "reference/ops/matrix.h"

namespace plumbline::reference {

class Liveness {
 public:
  explicit Liveness(std::vector<std::string> tensors);

  // One step of one tensor: its gradient, and its working weight before and after the update.
  void Note(size_t tensor, const Matrix& gradient, const Matrix& weight_before, const Matrix& weight_after);

  // In the order of the constructor; shares are 0 where no step was noted.
  std::vector<contract::Certificate::Liveness> Means() const;

 private:
  struct Shares {
    std::string tensor;
    int64_t steps = 0;
    double nonzero_gradient = 0;  // summed over the steps
    double moving_weight = 0;
  };
  std::vector<Shares> shares_;
};

}  // namespace plumbline::reference
