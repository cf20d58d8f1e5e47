// SPDX-License-Identifier: Apache-2.0
// Implements embedding.h.
#include "reference/ops/embedding.h"

#include <cmath>

#include "conformance/contract/error.h"

namespace plumbline::reference {
namespace {

void CheckTokens(const std::vector<int64_t>& tokens, int64_t vocab) {
  for (const int64_t token : tokens) contract::Check(token >= 0 && token < vocab, "embedding: token in the vocabulary");
}

// sum[row] += terms[n]
void AddRow(Sum& sum, int64_t row, const Matrix& terms, int64_t n) {
  for (int64_t c = 0; c < terms.cols(); ++c) {
    sum.value(row, c) += terms(n, c);
    sum.magnitude(row, c) += std::abs(terms(n, c));
  }
}

}  // namespace

Sum EmbeddingForward(const Matrix& embed, const Matrix& pos, const std::vector<int64_t>& tokens) {
  contract::Check(embed.cols() == pos.cols(), "embedding: equal widths");
  CheckTokens(tokens, embed.rows());
  const auto num_tokens = static_cast<int64_t>(tokens.size());
  Sum x(num_tokens, embed.cols());
  for (int64_t n = 0; n < num_tokens; ++n) {
    AddRow(x, n, embed, tokens[static_cast<size_t>(n)]);
    AddRow(x, n, pos, n % pos.rows());
  }
  return x;
}

Sum TokenEmbeddingBackward(const Matrix& dx, const std::vector<int64_t>& tokens, int64_t vocab) {
  contract::Check(static_cast<int64_t>(tokens.size()) == dx.rows(), "embedding: a row of dx for each token");
  CheckTokens(tokens, vocab);
  Sum dembed(vocab, dx.cols());
  for (int64_t n = 0; n < dx.rows(); ++n) AddRow(dembed, tokens[static_cast<size_t>(n)], dx, n);
  return dembed;
}

Sum PositionEmbeddingBackward(const Matrix& dx, int64_t positions) {
  contract::Check(positions > 0 && dx.rows() % positions == 0, "embedding: whole samples");
  Sum dpos(positions, dx.cols());
  for (int64_t n = 0; n < dx.rows(); ++n) AddRow(dpos, n % positions, dx, n);
  return dpos;
}

}  // namespace plumbline::reference
