// SPDX-License-Identifier: Apache-2.0
// Takes a rectangle out of a matrix and puts one in: the rows of one sample and the channels of one head. Copies, not
// views.
#pragma once

#include "reference/ops/matrix.h"

namespace plumbline::reference {

struct Block {
  int64_t row = 0;  // of the top left corner
  int64_t col = 0;
  int64_t rows = 0;
  int64_t cols = 0;
};

// result[r, c] = from[block.row + r, block.col + c]   → [block.rows, block.cols]
Matrix Take(const Matrix& from, const Block& block);

// into[block.row + r, block.col + c] = part[r, c]; the adjoint of Take where blocks do not overlap.
void Put(const Matrix& part, const Block& block, Matrix& into);

}  // namespace plumbline::reference
