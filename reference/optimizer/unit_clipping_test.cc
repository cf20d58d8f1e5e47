// SPDX-License-Identifier: Apache-2.0
// Clipping by units against values worked out by hand, with norms of triangles of 3, 4 and 5.
#include "reference/optimizer/unit_clipping.h"

#include <gtest/gtest.h>

#include <vector>

#include "conformance/contract/error.h"

namespace plumbline::reference {
namespace {

using contract::UnitShape;

constexpr double kRatio = 0.5;
constexpr double kEps = 2;

// Units in rows. First: ‖g‖ = 5 is κ ‖w‖ = 5, not above it. Second: 10 above 2.5, a quarter. Third: ‖w‖ = 1 is below ε,
// so 2 above 1, a half. Fourth: below its limit. Fifth: no gradient, no weight.
const Matrix kGradient(5, 2, {3, 4, 6, -8, 0, -2, 0.75, 1, 0, 0});
const Matrix kMaster(5, 2, {-6, 8, 3, 4, 1, 0, 3, 0, 0, 0});
const Matrix kClipped(5, 2, {3, 4, 1.5, -2, 0, -1, 0.75, 1, 0, 0});

TEST(UnitNorms, AreOfTheWholeOfRowsOrOfColumns) {
  const Matrix x(2, 3, {3, -4, 0, 0, 0, 12});
  EXPECT_EQ(UnitNorms(x, UnitShape::kWhole), std::vector<double>{13});
  EXPECT_EQ(UnitNorms(x, UnitShape::kRows), (std::vector<double>{5, 12}));
  EXPECT_EQ(UnitNorms(x, UnitShape::kColumns), (std::vector<double>{3, 4, 12}));
}

TEST(ClipUnits, ClipsEachRowByItself) {
  EXPECT_EQ(ClipUnits(kGradient, kMaster, UnitShape::kRows, kRatio, kEps), kClipped);
}

TEST(ClipUnits, ClipsEachColumnByItself) {
  EXPECT_EQ(ClipUnits(Transpose(kGradient), Transpose(kMaster), UnitShape::kColumns, kRatio, kEps),
            Transpose(kClipped));
}

// ‖g‖ = 10 above κ ‖w‖ = 2.5; then ‖w‖ = 0, as biases begin, and the limit κ ε = 1.
TEST(ClipUnits, ClipsAVectorAsOneUnit) {
  const Matrix gradient(1, 2, {6, -8});
  EXPECT_EQ(ClipUnits(gradient, Matrix(1, 2, {-3, 4}), UnitShape::kWhole, kRatio, kEps), Matrix(1, 2, {1.5, -2}));
  EXPECT_EQ(ClipUnits(gradient, Matrix(1, 2), UnitShape::kWhole, kRatio, kEps), Matrix(1, 2, {6 * 0.1, -8 * 0.1}));
}

TEST(ClipUnits, RejectsOtherShapesAndAShapeOfUnitsThatIsNotKnown) {
  const Matrix a(1, 2);
  EXPECT_THROW(ClipUnits(a, Matrix(2, 1), UnitShape::kWhole, kRatio, kEps), contract::Error);
  EXPECT_THROW(ClipUnits(a, a, static_cast<UnitShape>(3), kRatio, kEps), contract::Error);
}

}  // namespace
}  // namespace plumbline::reference
