// SPDX-License-Identifier: Apache-2.0
// Runs a case from folder to traces and adds the slices of all ranks up, so that runs in different layouts can be
// compared. Fails the test where slices leave gaps, overlap, or differ between ranks.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "conformance/contract/case_file.h"
#include "conformance/contract/trace.h"
#include "optimized/engine/run_case.h"

namespace plumbline::optimized::testing {

// Returns the folder of the traces.
inline std::filesystem::path RunInFreshFolders(const contract::CaseData& data,
                                               const std::filesystem::path& checkpoint = {}) {
  static int next = 0;
  const std::filesystem::path root =
      std::filesystem::path(::testing::TempDir()) / ("case_run_" + std::to_string(next++));
  std::filesystem::remove_all(root);
  std::filesystem::create_directories(root / "case");
  std::filesystem::create_directories(root / "out");
  contract::WriteCase(root / "case", data);
  if (!checkpoint.empty()) std::filesystem::copy(checkpoint, root / "case" / "checkpoint");
  RunCase(root / "case", root / "out");
  return root / "out";
}

// NaN is like NaN: a trace has one kind of it.
inline bool SameNumbers(const std::vector<double>& a, const std::vector<double>& b) {
  return std::ranges::equal(a, b, [](double x, double y) { return x == y || (std::isnan(x) && std::isnan(y)); });
}

// What two runs of one layout, or a run and its resumed rest, must share in a step whatever the family: calls and
// bytes, their order, and every slice of every tensor.
inline void ExpectSameCommAndTensors(const contract::StepRecord& record, const contract::StepRecord& expected) {
  EXPECT_EQ(record.comm, expected.comm);
  EXPECT_EQ(record.comm_sequence, expected.comm_sequence);
  for (const contract::TensorKind kind : contract::kTensorKinds) {
    ASSERT_EQ(record.of(kind).size(), expected.of(kind).size());
    for (size_t i = 0; i < record.of(kind).size(); ++i) {
      EXPECT_EQ(record.of(kind)[i].digest, expected.of(kind)[i].digest) << record.of(kind)[i].tensor;
    }
  }
}

struct Combined {
  // (step, kind, tensor) -> digest of the whole tensor
  std::map<std::tuple<int64_t, contract::TensorKind, std::string>, contract::Digest> digests;
  std::vector<double> losses;
  std::vector<double> norms;  // real families
  friend bool operator==(const Combined&, const Combined&) = default;
};

inline Combined Combine(const std::filesystem::path& out_dir, const contract::CaseData& data) {
  Combined combined;
  std::map<std::tuple<int64_t, contract::TensorKind, std::string>,
           std::map<std::pair<int64_t, int64_t>, contract::Digest>>
      slices;
  for (int64_t rank = 0; rank < data.spec.config.data_degree; ++rank) {
    const contract::Trace trace = contract::ReadTrace(out_dir, rank);
    EXPECT_TRUE(trace.complete);
    EXPECT_EQ(trace.steps.size(), static_cast<size_t>(data.spec.steps));
    std::vector<double> losses, norms;
    for (const contract::StepRecord& record : trace.steps) {
      losses.push_back(record.loss);
      if (record.real) norms.push_back(record.real->gradient_norm);
      for (const contract::TensorKind kind : contract::kTensorKinds) {
        for (const contract::SliceDigest& slice : record.of(kind)) {
          auto& held = slices[{record.step, kind, slice.tensor}];
          const auto [place, is_new] = held.insert({{slice.begin, slice.end}, slice.digest});
          EXPECT_TRUE(is_new || place->second == slice.digest) << "ranks disagree on " << slice.tensor;
        }
      }
    }
    if (rank == 0) {
      combined.losses = losses;
      combined.norms = norms;
    }
    EXPECT_TRUE(SameNumbers(losses, combined.losses)) << "rank " << rank;
    EXPECT_TRUE(SameNumbers(norms, combined.norms)) << "rank " << rank;
  }
  for (const auto& [key, held] : slices) {
    int64_t end = 0;
    for (const auto& [range, digest] : held) {
      EXPECT_EQ(range.first, end) << std::get<2>(key);
      end = range.second;
      combined.digests[key] += digest;
    }
    const auto parameter = std::find_if(data.parameters.begin(), data.parameters.end(),
                                        [&](const auto& p) { return p.name == std::get<2>(key); });
    EXPECT_EQ(end, parameter->numel()) << std::get<2>(key);
  }
  return combined;
}

}  // namespace plumbline::optimized::testing
