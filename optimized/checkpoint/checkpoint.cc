// SPDX-License-Identifier: Apache-2.0
// See checkpoint.h.
#include "optimized/checkpoint/checkpoint.h"

#include <cstring>
#include <map>
#include <span>
#include <utility>

#include "conformance/contract/error.h"
#include "conformance/contract/strict_json.h"
#include "conformance/contract/tensor_file.h"

namespace plumbline::optimized {
namespace {

constexpr int kCheckpointStream = 4;
constexpr const char* kStepsKey = "finished_steps";
constexpr const char* kRankKey = "rank";

[[noreturn]] void Invalid(const std::filesystem::path& path, const std::string& reason) {
  contract::Fail(contract::ErrorCode::kInvalidArgument, path.string() + ": " + reason);
}

// A safetensors file as docs/formats.md defines it, straight from the slices' memory.
std::string Serialize(const std::vector<CheckpointSlice>& slices, int64_t finished_steps, int64_t rank) {
  std::string header = std::string("{\"__metadata__\":{\"") + kStepsKey + "\":\"" + std::to_string(finished_steps) +
                       "\",\"" + kRankKey + "\":\"" + std::to_string(rank) + "\"}";
  int64_t offset = 0;
  for (const CheckpointSlice& slice : slices) {
    const int64_t end = offset + slice.values.size_bytes();
    header += "," + contract::JsonQuote(slice.name) + ":{\"dtype\":\"" +
              std::string(contract::Name(slice.values.dtype)) + "\",\"shape\":[" + std::to_string(slice.values.elems) +
              "],\"data_offsets\":[" + std::to_string(offset) + "," + std::to_string(end) + "]}";
    offset = end;
  }
  header += "}";
  header.append((8 - header.size() % 8) % 8, ' ');
  contract::Check(header.size() <= contract::kMaxHeaderBytes, "a written header is one that we read");
  const uint64_t header_bytes = header.size();
  std::string content(reinterpret_cast<const char*>(&header_bytes), sizeof header_bytes);
  content += header;
  for (const CheckpointSlice& slice : slices) {
    content.append(static_cast<const char*>(slice.values.data), static_cast<size_t>(slice.values.size_bytes()));
  }
  return content;
}

// What a rank tells the others about the shard that it has made durable. Sizes and checksums travel as they are.
struct Receipt {
  int64_t size_bytes;
  uint64_t checksum;
};

std::vector<Receipt> ExchangeReceipts(const Receipt& own, Communicator& communicator,
                                      std::chrono::duration<double> timeout) {
  constexpr int64_t kWords = sizeof(Receipt) / sizeof(int64_t);
  Receipt mine = own;
  std::vector<Receipt> all(static_cast<size_t>(communicator.size()));
  communicator
      .AllGather({&mine, kWords, contract::DType::kI64},
                 {all.data(), kWords * communicator.size(), contract::DType::kI64},
                 {"checkpoint receipts", timeout, kCheckpointStream})
      .Wait();
  return all;
}

void WriteManifest(const std::filesystem::path& folder, const Manifest& manifest, FileSystem& files) {
  const std::filesystem::path temporary = folder / (std::string(kManifestName) + ".partial");
  files.Write(temporary, ToJson(manifest));
  files.SyncFile(temporary);
  // The shards' names must be durable before the manifest's.
  files.SyncDirectory(folder);
  files.Rename(temporary, folder / kManifestName);
  files.SyncDirectory(folder);
}

void RequireIdentity(const std::filesystem::path& path, const Manifest& manifest, const CheckpointIdentity& identity,
                     int64_t world) {
  const auto refuse = [&](const std::string& what) {
    contract::Fail(contract::ErrorCode::kUnsupported,
                   path.string() + ": is of another " + what + "; supported: resuming the same run");
  };
  if (manifest.identity.config != identity.config) refuse("config: " + manifest.identity.config);
  if (manifest.identity.model != identity.model) refuse("model: " + manifest.identity.model);
  if (manifest.identity.seed != identity.seed) refuse("seed");
  if (static_cast<int64_t>(manifest.shards.size()) != world) {
    refuse("world of " + std::to_string(manifest.shards.size()) + " ranks");
  }
}

// Every slice has its tensor, of its size and type, and no tensor is left over.
std::map<std::string, const contract::HostTensor*> MatchSlices(const std::filesystem::path& path,
                                                               const contract::TensorFile& file,
                                                               const std::vector<CheckpointSlice>& slices) {
  std::map<std::string, const contract::HostTensor*> tensors;
  for (const contract::HostTensor& tensor : file.tensors) tensors[tensor.name] = &tensor;
  for (const CheckpointSlice& slice : slices) {
    const auto place = tensors.find(slice.name);
    if (place == tensors.end()) Invalid(path, "slice " + slice.name + " is missing");
    const contract::HostTensor& tensor = *place->second;
    if (tensor.dtype != slice.values.dtype || tensor.shape != std::vector<int64_t>{slice.values.elems}) {
      Invalid(path, "slice " + slice.name + " has " + std::to_string(tensor.numel()) + " elements of " +
                        std::string(contract::Name(tensor.dtype)) + "; allowed: " + std::to_string(slice.values.elems) +
                        " of " + std::string(contract::Name(slice.values.dtype)));
    }
  }
  if (tensors.size() != slices.size()) {
    Invalid(path, "holds " + std::to_string(tensors.size()) + " slices; allowed: " + std::to_string(slices.size()));
  }
  return tensors;
}

void RequireMetadata(const std::filesystem::path& path, const contract::TensorFile& file, const char* key,
                     int64_t expected) {
  const auto place = file.metadata.find(key);
  if (place == file.metadata.end() || place->second != std::to_string(expected)) {
    Invalid(path, std::string(key) + " is " + (place == file.metadata.end() ? "missing" : place->second) +
                      "; allowed: " + std::to_string(expected));
  }
}

}  // namespace

void SaveCheckpoint(const std::filesystem::path& folder, const TrainingProgress& progress,
                    const CheckpointIdentity& identity, const std::vector<CheckpointSlice>& slices,
                    Communicator& communicator, std::chrono::duration<double> timeout, FileSystem& files) {
  files.CreateDirectories(folder);
  if (files.Exists(folder / kManifestName)) Invalid(folder, "holds a finished checkpoint; allowed: a new folder");
  const std::string content = Serialize(slices, progress.finished_steps, communicator.rank());
  const std::filesystem::path path = folder / ShardFileName(communicator.rank());
  files.Write(path, content);
  files.SyncFile(path);

  // Nobody has this answer before every rank's shard is durable.
  const std::vector<Receipt> receipts =
      ExchangeReceipts({static_cast<int64_t>(content.size()), Checksum(content)}, communicator, timeout);
  if (communicator.rank() == 0) {
    Manifest manifest{progress, identity, {}};
    for (size_t rank = 0; rank < receipts.size(); ++rank) {
      manifest.shards.push_back(
          {ShardFileName(static_cast<int64_t>(rank)), receipts[rank].size_bytes, receipts[rank].checksum});
    }
    WriteManifest(folder, manifest, files);
    if (folder.has_parent_path()) files.SyncDirectory(folder.parent_path());
  }
  communicator.Barrier({"checkpoint is complete", timeout, kCheckpointStream}).Wait();
}

TrainingProgress LoadCheckpoint(const std::filesystem::path& folder, const CheckpointIdentity& identity,
                                const std::vector<CheckpointSlice>& slices, int64_t rank, int64_t world,
                                FileSystem& files) {
  const std::filesystem::path manifest_path = folder / kManifestName;
  const Manifest manifest = ParseManifest(files.Read(manifest_path), manifest_path.string());
  RequireIdentity(manifest_path, manifest, identity, world);

  const ShardFile& shard = manifest.shards.at(rank);
  const std::filesystem::path path = folder / shard.name;
  const std::string content = files.Read(path);
  if (static_cast<int64_t>(content.size()) != shard.size_bytes || Checksum(content) != shard.checksum) {
    Invalid(path, "is not the file that the manifest names: size or checksum differ");
  }
  const contract::TensorFile file =
      contract::ParseTensorFile(std::as_bytes(std::span(content.data(), content.size())), path.string());
  RequireMetadata(path, file, kStepsKey, manifest.progress.finished_steps);
  RequireMetadata(path, file, kRankKey, rank);
  const auto tensors = MatchSlices(path, file, slices);
  for (const CheckpointSlice& slice : slices) {
    const contract::HostTensor& tensor = *tensors.at(slice.name);
    if (!tensor.data.empty()) std::memcpy(slice.values.data, tensor.data.data(), tensor.data.size());
  }
  return manifest.progress;
}

}  // namespace plumbline::optimized
