// SPDX-License-Identifier: Apache-2.0
// Which hypotheses fit: every prediction against the candidate, the best of each hypothesis with its residual.
//
//   residual = |candidate - prediction| / |candidate - truth|        Euclidean norms over the tensor
//
// 0 means that the prediction is the candidate, 1 that it explains nothing. A prediction may hold for the parts of some
// ranks only: each part is then compared with the prediction or with the truth, whichever is nearer.
#pragma once

#include <string>
#include <vector>

#include "conformance/diagnosis/evidence.h"

namespace plumbline::conformance {

// Above it a hypothesis does not fit. Family exact: 0, every bit. Real families: what remains is rounding: a twentieth,
// or four times the rounding of a right engine where the divergence itself is hardly larger than that, at most a half.
// What exceeds a twentieth fits only if no hypothesis with another prediction is within the limit.
double ResidualLimit(const Evidence& evidence);

struct RankedHypothesis {
  std::string name;
  std::string says;  // with the variant: "a rank's share is missing: rank 3"
  double residual = 1;
  bool fits = false;
};

// Best first, at most `most`. None where candidate and truth are equal. A hypothesis of which nothing was predicted, or
// whose prediction is the truth, is not listed; one that rests on too few elements is, and does not fit.
std::vector<RankedHypothesis> RankHypotheses(const Evidence& evidence, size_t most = 3);

}  // namespace plumbline::conformance
