// SPDX-License-Identifier: Apache-2.0
// The books of memory: by category, current and peak, over frees and steps; and what is handed out is the inner
// backend's.
#include "optimized/backend/counting_backend.h"

#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <utility>

#include "conformance/contract/error.h"
#include "optimized/backend/cpu_backend.h"

namespace plumbline::optimized {
namespace {

TEST(CountingBackend, CountsEachCategoryUntilItIsFreedAndKeepsPeaksForOneStep) {
  MemoryLedger ledger;
  const auto backend = MakeCountingBackend(MakeCpuBackend(), ledger);
  const Storage weights = backend->Allocate(100, MemoryCategory::kWeights);
  {
    const Storage gathered = backend->Allocate(64, MemoryCategory::kGatheredWeights);
    EXPECT_EQ(ledger.of(MemoryCategory::kGatheredWeights), (MemoryUse{64, 64}));
    EXPECT_EQ(ledger.total(), (MemoryUse{164, 164}));
  }
  EXPECT_EQ(ledger.of(MemoryCategory::kGatheredWeights), (MemoryUse{0, 64}));
  const Storage more = backend->Allocate(8, MemoryCategory::kWeights);
  EXPECT_EQ(ledger.of(MemoryCategory::kWeights), (MemoryUse{108, 108}));
  EXPECT_EQ(ledger.total(), (MemoryUse{108, 164})) << "the peak of the sum, not the sum of the peaks";
  ledger.BeginStep();
  EXPECT_EQ(ledger.of(MemoryCategory::kGatheredWeights), (MemoryUse{0, 0}));
  EXPECT_EQ(ledger.total(), (MemoryUse{108, 108}));
}

TEST(CountingBackend, AMovedStorageIsFreedOnce) {
  MemoryLedger ledger;
  const auto backend = MakeCountingBackend(MakeCpuBackend(), ledger);
  std::optional<Storage> first = backend->Allocate(32, MemoryCategory::kGradients);
  Storage second = std::move(*first);
  first.reset();
  EXPECT_EQ(ledger.of(MemoryCategory::kGradients).current_bytes, 32);
  second = backend->Allocate(16, MemoryCategory::kGradients);
  EXPECT_EQ(ledger.of(MemoryCategory::kGradients), (MemoryUse{16, 48}));
  second = Storage();
  EXPECT_EQ(ledger.of(MemoryCategory::kGradients).current_bytes, 0);
}

TEST(CountingBackend, HandsOutPoisonedMemoryAndPoisonsAgain) {
  MemoryLedger ledger;
  const auto backend = MakeCountingBackend(MakeCpuBackend(), ledger);
  const Storage storage = backend->Allocate(8, MemoryCategory::kWeights);
  auto* values = reinterpret_cast<float*>(storage.data());
  EXPECT_TRUE(std::isnan(values[1]));
  values[0] = values[1] = 1;
  backend->Poison(storage.data(), 4);
  EXPECT_TRUE(std::isnan(values[0]));
  EXPECT_EQ(values[1], 1);
}

TEST(MemoryLedger, RefusesToFreeMoreThanWasAllocated) {
  MemoryLedger ledger;
  ledger.Allocated(MemoryCategory::kWeights, 8);
  ledger.Allocated(MemoryCategory::kGradients, 8);
  EXPECT_THROW(ledger.Freed(MemoryCategory::kWeights, 9), contract::Error);
}

}  // namespace
}  // namespace plumbline::optimized
