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

void CheckTokensOrNone(const std::vector<int64_t>& tokens, int64_t vocab) {
  for (const int64_t token : tokens)
    contract::Check((token >= 0 && token < vocab) || token == kNoToken, "embedding: token in the vocabulary, or none");
}

// sum[row] += terms[n]
void AddRow(Sum& sum, int64_t row, const Matrix& terms, int64_t n) {
  for (int64_t c = 0; c < terms.cols(); ++c) {
    sum.value(row, c) += terms(n, c);
    sum.magnitude(row, c) += std::abs(terms(n, c));
  }
}

}  // namespace

Matrix TokenEmbeddingForward(const Matrix& embed, const std::vector<int64_t>& tokens) {
  CheckTokensOrNone(tokens, embed.rows());
  const auto num_tokens = static_cast<int64_t>(tokens.size());
  Matrix x(num_tokens, embed.cols());
  for (int64_t n = 0; n < num_tokens; ++n) {
    const int64_t token = tokens[static_cast<size_t>(n)];
    if (token == kNoToken) continue;
    for (int64_t c = 0; c < embed.cols(); ++c) x(n, c) = embed(token, c);
  }
  return x;
}

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
  CheckTokensOrNone(tokens, vocab);
  Sum dembed(vocab, dx.cols());
  for (int64_t n = 0; n < dx.rows(); ++n) {
    const int64_t token = tokens[static_cast<size_t>(n)];
    if (token != kNoToken) AddRow(dembed, token, dx, n);
  }
  return dembed;
}

Sum PositionEmbeddingBackward(const Matrix& dx, int64_t positions) {
  contract::Check(positions > 0 && dx.rows() % positions == 0, "embedding: whole samples");
  Sum dpos(positions, dx.cols());
  for (int64_t n = 0; n < dx.rows(); ++n) AddRow(dpos, n % positions, dx, n);
  return dpos;
}

}  // namespace plumbline::reference
