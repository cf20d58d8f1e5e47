// SPDX-License-Identifier: Apache-2.0
// Guards: every byte of both sides is seen, at the end of a step and after a free; correct use is never accused; what
// is handed out is the inner backend's.
#include "optimized/backend/guarded_backend.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "conformance/contract/error.h"
#include "optimized/backend/cpu_backend.h"

namespace plumbline::optimized {
namespace {

constexpr int64_t kSizes[] = {0, 1, 4, 63, 64, 65, 4096};

std::string Accusation(MemoryGuards& guards) {
  try {
    guards.Check();
    return "";
  } catch (const contract::Error& error) {
    return error.what();
  }
}

void ExpectSays(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "\"" << text << "\" does not say \"" << part << "\"";
}

TEST(GuardedBackend, WritingEveryByteOfWhatWasAskedForIsNoFault) {
  MemoryGuards guards;
  const auto backend = MakeGuardedBackend(MakeCpuBackend(), guards);
  for (const int64_t bytes : kSizes) {
    const Storage storage = backend->Allocate(bytes, MemoryCategory::kActivations);
    EXPECT_EQ(storage.size_bytes(), bytes);
    for (int64_t i = 0; i < bytes; ++i) storage.data()[i] = std::byte{7};
    EXPECT_EQ(Accusation(guards), "");
  }
  EXPECT_EQ(Accusation(guards), "");
}

TEST(GuardedBackend, SeesEachByteThatIsWrittenBeforeOrBehindABuffer) {
  for (const int64_t bytes : kSizes) {
    for (const int64_t offset : {-kGuardBytes, -int64_t{1}, bytes, bytes + 1, bytes + kGuardBytes - 1}) {
      MemoryGuards guards;
      const auto backend = MakeGuardedBackend(MakeCpuBackend(), guards);
      const Storage other = backend->Allocate(8, MemoryCategory::kWeights);
      const Storage storage = backend->Allocate(bytes, MemoryCategory::kGradients);
      storage.data()[offset] = std::byte{0xFF};
      const std::string accusation = Accusation(guards);
      ExpectSays(accusation, "a buffer of " + std::to_string(bytes) + " bytes of gradients");
      ExpectSays(accusation, offset < 0 ? std::to_string(-offset) + " bytes before"
                                        : std::to_string(offset - bytes) + " bytes behind");
    }
  }
}

TEST(GuardedBackend, WhatIsWrittenBesideMemoryThatWasFreedIsToldAtTheNextCheck) {
  MemoryGuards guards;
  const auto backend = MakeGuardedBackend(MakeCpuBackend(), guards);
  {
    const Storage gathered = backend->Allocate(12, MemoryCategory::kGatheredWeights);
    gathered.data()[12] = std::byte{1};
  }
  ExpectSays(Accusation(guards), "a buffer of 12 bytes of gathered_weights");
}

TEST(GuardedBackend, WhatIsCopiedFromOneGuardIntoAnotherShows) {
  MemoryGuards guards;
  const auto backend = MakeGuardedBackend(MakeCpuBackend(), guards);
  const Storage from = backend->Allocate(16, MemoryCategory::kActivations);
  const Storage to = backend->Allocate(16, MemoryCategory::kActivations);
  reinterpret_cast<float*>(to.data())[4] = reinterpret_cast<const float*>(from.data())[4];
  ExpectSays(Accusation(guards), "0 bytes behind");
}

TEST(GuardedBackend, HandsOutAlignedPoisonedMemory) {
  MemoryGuards guards;
  const auto backend = MakeGuardedBackend(MakeCpuBackend(), guards);
  for (const int64_t bytes : kSizes) {
    const Storage storage = backend->Allocate(bytes, MemoryCategory::kWeights);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(storage.data()) % 64, 0u);
    for (int64_t i = 0; i < bytes; ++i) EXPECT_EQ(storage.data()[i], std::byte{0xFF});
  }
}

}  // namespace
}  // namespace plumbline::optimized
