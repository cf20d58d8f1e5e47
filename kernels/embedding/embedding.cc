// SPDX-License-Identifier: Apache-2.0
// CPU implementation of embedding.h: rows are gathered and scattered in the order of tokens.
#include "kernels/embedding/embedding.h"

#include <algorithm>
#include <cstddef>

#include "kernels/arguments.h"
#include "kernels/bf16.h"
#include "kernels/fp16.h"

namespace plumbline::kernels {
namespace {

bool HasSize(size_t size, int64_t rows, int64_t cols) { return size == static_cast<size_t>(rows * cols); }

void RequireSizes(const EmbeddingSizes& sizes) {
  Require(sizes.positions >= 1 && sizes.width >= 1 && sizes.vocab >= 1, "embedding", "sizes must be at least 1");
  Require(sizes.tokens >= 0 && sizes.tokens % sizes.positions == 0, "embedding",
          "tokens must be a multiple of positions");
}

int64_t CheckedToken(int32_t token, int64_t vocab) {
  Require(token >= 0 && token < vocab, "embedding", "a token is outside the vocabulary");
  return token;
}

template <typename T>
void AddRow(const T* row, int64_t width, float* sum) {
  for (int64_t channel = 0; channel < width; ++channel) sum[channel] += ToFloat(row[channel]);
}

}  // namespace

template <typename T>
void EmbeddingForward(const EmbeddingSizes& sizes, std::span<const int32_t> token, std::span<const T> embed,
                      std::span<const T> pos, std::span<T> x) {
  RequireSizes(sizes);
  Require(HasSize(token.size(), sizes.tokens, 1) && HasSize(embed.size(), sizes.vocab, sizes.width) &&
              HasSize(pos.size(), sizes.positions, sizes.width) && HasSize(x.size(), sizes.tokens, sizes.width),
          "embedding", "an argument does not have the size of its shape");
  for (int64_t i = 0; i < sizes.tokens; ++i) {
    const T* embed_row = embed.data() + CheckedToken(token[i], sizes.vocab) * sizes.width;
    const T* pos_row = pos.data() + i % sizes.positions * sizes.width;
    T* x_row = x.data() + i * sizes.width;
    for (int64_t channel = 0; channel < sizes.width; ++channel) {
      x_row[channel] = FromFloat<T>(ToFloat(embed_row[channel]) + ToFloat(pos_row[channel]));
    }
  }
}

template <typename T>
void PositionBackward(const EmbeddingSizes& sizes, std::span<const T> dx, std::span<float> dpos) {
  RequireSizes(sizes);
  Require(HasSize(dx.size(), sizes.tokens, sizes.width) && HasSize(dpos.size(), sizes.positions, sizes.width),
          "embedding", "an argument does not have the size of its shape");
  for (int64_t i = 0; i < sizes.tokens; ++i) {
    const int64_t position = i % sizes.positions;
    AddRow(dx.data() + i * sizes.width, sizes.width, dpos.data() + position * sizes.width);
  }
}

template <typename T>
void EmbeddingBackward(const EmbeddingSizes& sizes, std::span<const int32_t> token, std::span<const T> dx,
                       std::span<float> dembed) {
  RequireSizes(sizes);
  Require(HasSize(token.size(), sizes.tokens, 1) && HasSize(dx.size(), sizes.tokens, sizes.width) &&
              HasSize(dembed.size(), sizes.vocab, sizes.width),
          "embedding", "an argument does not have the size of its shape");
  for (int64_t i = 0; i < sizes.tokens; ++i) {
    const int64_t row = CheckedToken(token[i], sizes.vocab);
    AddRow(dx.data() + i * sizes.width, sizes.width, dembed.data() + row * sizes.width);
  }
}

template <typename T>
void EmbeddingLookup(const EmbeddingSizes& sizes, std::span<const int32_t> token, std::span<const T> embed,
                     std::span<T> x) {
  RequireSizes(sizes);
  Require(HasSize(token.size(), sizes.tokens, 1) && HasSize(embed.size(), sizes.vocab, sizes.width) &&
              HasSize(x.size(), sizes.tokens, sizes.width),
          "embedding", "an argument does not have the size of its shape");
  for (int64_t i = 0; i < sizes.tokens; ++i) {
    std::copy_n(embed.data() + CheckedToken(token[i], sizes.vocab) * sizes.width, sizes.width,
                x.data() + i * sizes.width);
  }
}

template void EmbeddingForward(const EmbeddingSizes&, std::span<const int32_t>, std::span<const float>,
                               std::span<const float>, std::span<float>);
template void EmbeddingForward(const EmbeddingSizes&, std::span<const int32_t>, std::span<const BFloat16>,
                               std::span<const BFloat16>, std::span<BFloat16>);
template void EmbeddingForward(const EmbeddingSizes&, std::span<const int32_t>, std::span<const Float16>,
                               std::span<const Float16>, std::span<Float16>);
template void EmbeddingLookup(const EmbeddingSizes&, std::span<const int32_t>, std::span<const float>,
                              std::span<float>);
template void EmbeddingLookup(const EmbeddingSizes&, std::span<const int32_t>, std::span<const BFloat16>,
                              std::span<BFloat16>);
template void EmbeddingLookup(const EmbeddingSizes&, std::span<const int32_t>, std::span<const Float16>,
                              std::span<Float16>);
template void PositionBackward(const EmbeddingSizes&, std::span<const float>, std::span<float>);
template void PositionBackward(const EmbeddingSizes&, std::span<const BFloat16>, std::span<float>);
template void PositionBackward(const EmbeddingSizes&, std::span<const Float16>, std::span<float>);
template void EmbeddingBackward(const EmbeddingSizes&, std::span<const int32_t>, std::span<const float>,
                                std::span<float>);
template void EmbeddingBackward(const EmbeddingSizes&, std::span<const int32_t>, std::span<const BFloat16>,
                                std::span<float>);
template void EmbeddingBackward(const EmbeddingSizes&, std::span<const int32_t>, std::span<const Float16>,
                                std::span<float>);

}  // namespace plumbline::kernels
