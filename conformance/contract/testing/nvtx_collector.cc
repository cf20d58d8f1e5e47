// SPDX-License-Identifier: Apache-2.0
#include "conformance/contract/testing/nvtx_collector.h"

#include <nvtx3/nvToolsExt.h>

#include <atomic>
#include <deque>
#include <mutex>
#include <utility>

#include "conformance/contract/error.h"

namespace plumbline::contract::testing {
namespace {

using Clock = std::chrono::steady_clock;

struct Domain {
  std::string name;
  std::map<uint32_t, std::string> categories;
};

// NVTX calls plain functions without a context, so what they write to must be reachable from anywhere.
struct State {
  std::mutex mutex;
  std::deque<Domain> domains = {{"", {}}};  // the first is NVTX's default domain; addresses are the handles
  std::map<std::pair<std::thread::id, const Domain*>, std::vector<NvtxRange>> open;
  std::vector<NvtxRange> ended;
  int64_t num_unmatched_pops = 0;
  std::atomic<bool> installed = false;
};

// Never destroyed: threads may pop ranges while the process ends.
State& TheState() {
  static State& state = *new State;
  return state;
}

Domain* DomainOf(nvtxDomainHandle_t handle) {
  return handle == nullptr ? &TheState().domains.front() : reinterpret_cast<Domain*>(handle);
}

nvtxDomainHandle_t NVTX_API CreateDomain(const char* name) {
  State& state = TheState();
  const std::lock_guard lock(state.mutex);
  return reinterpret_cast<nvtxDomainHandle_t>(&state.domains.emplace_back(Domain{name, {}}));
}

void NVTX_API NameCategory(nvtxDomainHandle_t domain, uint32_t category, const char* name) {
  State& state = TheState();
  const std::lock_guard lock(state.mutex);
  DomainOf(domain)->categories[category] = name;
}

int NVTX_API Push(nvtxDomainHandle_t handle, const nvtxEventAttributes_t* attributes) {
  State& state = TheState();
  const std::lock_guard lock(state.mutex);
  const Domain* domain = DomainOf(handle);
  std::vector<NvtxRange>& stack = state.open[{std::this_thread::get_id(), domain}];
  const bool ascii = attributes->messageType == NVTX_MESSAGE_TYPE_ASCII && attributes->message.ascii != nullptr;
  const int depth = static_cast<int>(stack.size());
  stack.push_back({domain->name,
                   ascii ? attributes->message.ascii : "(no ASCII name)",
                   attributes->category,
                   depth,
                   std::this_thread::get_id(),
                   Clock::now(),
                   {}});
  return depth;
}

int NVTX_API Pop(nvtxDomainHandle_t handle) {
  const Clock::time_point now = Clock::now();  // before waiting for the lock
  State& state = TheState();
  const std::lock_guard lock(state.mutex);
  std::vector<NvtxRange>& stack = state.open[{std::this_thread::get_id(), DomainOf(handle)}];
  if (stack.empty()) {
    ++state.num_unmatched_pops;
    return NVTX_NO_PUSH_POP_TRACKING;
  }
  stack.back().end = now;
  state.ended.push_back(std::move(stack.back()));
  stack.pop_back();
  return static_cast<int>(stack.size());
}

template <typename Function>
void Set(NvtxFunctionTable table, unsigned size, unsigned id, Function* function) {
  Check(id < size, "NVTX's table of functions has the entries of version 3");
  *table[id] = reinterpret_cast<NvtxFunctionPointer>(function);
}

int NVTX_API Initialise(NvtxGetExportTableFunc_t get_table) {
  const auto* callbacks = static_cast<const NvtxExportTableCallbacks*>(get_table(NVTX_ETID_CALLBACKS));
  NvtxFunctionTable table = nullptr;
  unsigned size = 0;
  if (callbacks == nullptr || !callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &table, &size)) return 0;
  Set(table, size, NVTX_CBID_CORE2_DomainCreateA, CreateDomain);
  Set(table, size, NVTX_CBID_CORE2_DomainNameCategoryA, NameCategory);
  Set(table, size, NVTX_CBID_CORE2_DomainRangePushEx, Push);
  Set(table, size, NVTX_CBID_CORE2_DomainRangePop, Pop);
  TheState().installed = true;
  return 1;
}

}  // namespace

NvtxCollector& NvtxCollector::Install() {
  static NvtxCollector& collector = [&]() -> NvtxCollector& {
    // NVTX reads this variable once, in its first call; nvtxInitialize makes that call now.
    InitializeInjectionNvtx2_fnptr = &Initialise;
    nvtxInitialize(nullptr);
    return *new NvtxCollector;
  }();
  Check(TheState().installed, "the NVTX collector is installed before the process's first NVTX call");
  return collector;
}

std::vector<NvtxRange> NvtxCollector::Take() {
  State& state = TheState();
  const std::lock_guard lock(state.mutex);
  return std::exchange(state.ended, {});
}

std::map<uint32_t, std::string> NvtxCollector::Categories(const std::string& domain) {
  State& state = TheState();
  const std::lock_guard lock(state.mutex);
  for (const Domain& known : state.domains) {
    if (known.name == domain) return known.categories;
  }
  return {};
}

int64_t NvtxCollector::NumUnmatchedPops() {
  State& state = TheState();
  const std::lock_guard lock(state.mutex);
  return state.num_unmatched_pops;
}

}  // namespace plumbline::contract::testing
