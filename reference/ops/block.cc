// SPDX-License-Identifier: Apache-2.0
// Implements block.h.
#include "reference/ops/block.h"

#include "conformance/contract/error.h"

namespace plumbline::reference {
namespace {

void CheckInside(const Matrix& whole, const Block& block) {
  contract::Check(block.row >= 0 && block.rows >= 0 && block.row + block.rows <= whole.rows(), "block: rows inside");
  contract::Check(block.col >= 0 && block.cols >= 0 && block.col + block.cols <= whole.cols(), "block: columns inside");
}

}  // namespace

Matrix Take(const Matrix& from, const Block& block) {
  CheckInside(from, block);
  Matrix part(block.rows, block.cols);
  for (int64_t r = 0; r < block.rows; ++r)
    for (int64_t c = 0; c < block.cols; ++c) part(r, c) = from(block.row + r, block.col + c);
  return part;
}

void Put(const Matrix& part, const Block& block, Matrix& into) {
  CheckInside(into, block);
  contract::Check(part.rows() == block.rows && part.cols() == block.cols, "Put: the part has the shape of the block");
  for (int64_t r = 0; r < block.rows; ++r)
    for (int64_t c = 0; c < block.cols; ++c) into(block.row + r, block.col + c) = part(r, c);
}

}  // namespace plumbline::reference
