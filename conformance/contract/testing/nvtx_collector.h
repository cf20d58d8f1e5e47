// SPDX-License-Identifier: Apache-2.0
// Collects this process's NVTX push/pop ranges in memory: no profiler, no environment variable, no CUDA. It sees the
// code that is linked statically with it; ranges inside LibTorch's and NCCL's shared objects have their own copy of
// NVTX and stay invisible. Marks, start/end ranges and payloads are not collected.
//
//   NvtxCollector& collector = NvtxCollector::Install();   // before the first NVTX call of the process
//   { ScopedRange range(Category::kComm, range::kAllReduce); }
//   collector.Take();   // one range: "plumbline", "all_reduce", category 2, depth 0, begin and end
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <thread>
#include <vector>

namespace plumbline::contract::testing {

struct NvtxRange {
  std::string domain;
  std::string name;
  uint32_t category = 0;
  int depth = 0;  // number of ranges of the same thread and domain that it lies in
  std::thread::id thread;
  std::chrono::steady_clock::time_point begin;
  std::chrono::steady_clock::time_point end;
};

class NvtxCollector {
 public:
  // The one collector of the process, for as long as the process lives: NVTX knows no way to take a tool out again.
  // Throws Internal if NVTX was used before the first call of Install, since it has then settled on having no tool.
  static NvtxCollector& Install();

  // The ranges that ended since the last call, in the order of their ends.
  std::vector<NvtxRange> Take();
  // Names of the categories of a domain, as it has declared them.
  std::map<uint32_t, std::string> Categories(const std::string& domain);
  // Pops without a push, over all threads and domains; each is a bug of the code under observation.
  int64_t NumUnmatchedPops();

 private:
  NvtxCollector() = default;
};

}  // namespace plumbline::contract::testing
