// SPDX-License-Identifier: Apache-2.0
// Fuzz target: a checkpoint's manifest and shard, loaded into memory that holds something else. A checkpoint that is
// refused leaves that memory as it was; one that is accepted is saved and loaded as the same. An empty manifest stands
// for one that fits the shard, or no mutation would get beyond the checksum.
#include <map>
#include <utility>

#include "conformance/contract/error.h"
#include "conformance/contract/fuzz/only_errors.h"
#include "conformance/contract/fuzz/parts.h"
#include "optimized/checkpoint/checkpoint.h"
#include "optimized/comm/thread_communicator.h"

namespace plumbline::contract::fuzz {
namespace {

using namespace optimized;  // NOLINT: everything that checkpoint.h has

const CheckpointIdentity kIdentity{"{}", "w [3]", 5};
constexpr std::chrono::seconds kTimeout{10};

class MemoryFileSystem final : public FileSystem {
 public:
  void CreateDirectories(const std::filesystem::path&) override {}
  void Write(const std::filesystem::path& path, std::string_view content) override { files_[path] = content; }
  void SyncFile(const std::filesystem::path&) override {}
  void SyncDirectory(const std::filesystem::path&) override {}
  void Rename(const std::filesystem::path& from, const std::filesystem::path& to) override {
    files_[to] = std::exchange(files_[from], {});
    files_.erase(from);
  }
  bool Exists(const std::filesystem::path& path) override { return files_.contains(path); }
  std::string Read(const std::filesystem::path& path) override {
    if (!Exists(path)) Fail(ErrorCode::kInvalidArgument, path.string() + ": cannot be read");
    return files_[path];
  }

 private:
  std::map<std::filesystem::path, std::string> files_;
};

// What a rank holds: three types, one slice without elements.
struct Held {
  std::vector<float> master = {1, 2, 3};
  std::vector<uint16_t> weight = {4, 5, 6};
  std::vector<int64_t> counts = {7};

  std::vector<CheckpointSlice> Slices() {
    return {{"master/w@0", {master.data(), 3, DType::kF32}},
            {"weight/w@0", {weight.data(), 3, DType::kF16}},
            {"moment/w@0", {counts.data(), 1, DType::kI64}},
            {"moment/none@0", {nullptr, 0, DType::kF32}}};
  }
  std::string Bytes() const {
    std::string bytes(reinterpret_cast<const char*>(master.data()), master.size() * sizeof(float));
    bytes.append(reinterpret_cast<const char*>(weight.data()), weight.size() * sizeof(uint16_t));
    return bytes.append(reinterpret_cast<const char*>(counts.data()), counts.size() * sizeof(int64_t));
  }
};

std::string FittingManifest(std::string_view shard) {
  const Manifest manifest{{1, 1}, kIdentity, {{ShardFileName(0), static_cast<int64_t>(shard.size()), Checksum(shard)}}};
  return ToJson(manifest);
}

void DemandSavesTheSame(const TrainingProgress& progress, Held& held) {
  MemoryFileSystem files;
  const auto communicators = MakeThreadCommunicators(1, Progress::kLastArriver);
  SaveCheckpoint("saved", progress, kIdentity, held.Slices(), *communicators[0], kTimeout, files);
  Held again;
  const auto loaded = ParseOrRefuse([&] { return LoadCheckpoint("saved", kIdentity, again.Slices(), 0, 1, files); });
  Demand(loaded.has_value() && *loaded == progress, "what was saved is loaded");
  Demand(again.Bytes() == held.Bytes(), "what is loaded is what was saved");
}

}  // namespace

bool Accepts(const uint8_t* data, size_t size) {
  const std::vector<std::string_view> parts = Parts(Text(data, size), 2);
  MemoryFileSystem files;
  const std::filesystem::path folder = "input";
  files.Write(folder / kManifestName, parts[0].empty() ? FittingManifest(parts[1]) : std::string(parts[0]));
  files.Write(folder / ShardFileName(0), parts[1]);
  Held held;
  const std::string before = held.Bytes();
  const auto progress = ParseOrRefuse([&] { return LoadCheckpoint(folder, kIdentity, held.Slices(), 0, 1, files); });
  if (!progress.has_value()) {
    Demand(held.Bytes() == before, "a checkpoint that is refused changes nothing");
    return false;
  }
  DemandSavesTheSame(*progress, held);
  return true;
}

}  // namespace plumbline::contract::fuzz
