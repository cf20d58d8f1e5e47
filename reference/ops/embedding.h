// SPDX-License-Identifier: Apache-2.0
// Token embedding, alone (docs/semantics.md, family llama) and plus position embedding (docs/exact-family.md), and the
// adjoints. The head's share of dE is not here: it is a product.
#pragma once

#include <cstdint>
#include <vector>

#include "reference/ops/matrix.h"
#include "reference/ops/sum.h"

namespace plumbline::reference {

// Stands where there is no token, in padding: its row is 0, and belongs to the gradient of no token.
inline constexpr int64_t kNoToken = -1;

// x[n] = E[token[n]], or 0 where token[n] is kNoToken
//   embed  E [vocab, width]
//   tokens [tokens], each in [0, vocab) or kNoToken
//   x      [tokens, width]
Matrix TokenEmbeddingForward(const Matrix& embed, const std::vector<int64_t>& tokens);

// x[n] = E[token[n]] + P[n mod positions]
//   embed  E [vocab, width]
//   pos    P [positions, width]
//   tokens [samples · positions], each in [0, vocab)
//   x      [samples · positions, width]
Sum EmbeddingForward(const Matrix& embed, const Matrix& pos, const std::vector<int64_t>& tokens);

// dE[v] = Σ of dx[n] over n with token[n] = v
//   dx     [tokens, width]
//   tokens [tokens], each in [0, vocab) or kNoToken
//   result [vocab, width]
Sum TokenEmbeddingBackward(const Matrix& dx, const std::vector<int64_t>& tokens, int64_t vocab);

// dP[t] = Σ of dx[n] over n with n mod positions = t
//   dx [tokens, width]  →  [positions, width]
Sum PositionEmbeddingBackward(const Matrix& dx, int64_t positions);

}  // namespace plumbline::reference
