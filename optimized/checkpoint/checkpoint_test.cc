// SPDX-License-Identifier: Apache-2.0
// What a save leaves after a crash at any of its operations, and what a load refuses.
#include "optimized/checkpoint/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <mutex>
#include <thread>

#include "conformance/contract/error.h"
#include "optimized/comm/thread_communicator.h"

namespace plumbline::optimized {
namespace {

namespace fs = std::filesystem;
using contract::DType;
using contract::Error;
using contract::ErrorCode;
using ::testing::HasSubstr;
using namespace std::chrono_literals;

const CheckpointIdentity kIdentity{"{}", "w [3]", 5};

// A disk of which a crash keeps only what was made durable, unless it is kind and keeps everything. Operation number
// `crash_at` and all later ones fail.
class CrashingFileSystem final : public FileSystem {
 public:
  explicit CrashingFileSystem(int crash_at = 1 << 30) : crash_at_(crash_at) {}

  void CreateDirectories(const fs::path&) override { Operation("create"); }
  void Write(const fs::path& path, std::string_view content) override {
    Operation("write " + path.filename().string());
    const std::lock_guard lock(mutex_);
    content_[path] = content;
  }
  void SyncFile(const fs::path& path) override {
    Operation("sync " + path.filename().string());
    const std::lock_guard lock(mutex_);
    synced_[content_.at(path)] = true;
  }
  void SyncDirectory(const fs::path& path) override {
    Operation("sync folder");
    const std::lock_guard lock(mutex_);
    for (const auto& [name, content] : content_) {
      if (name.parent_path() == path) durable_names_[name] = content;
    }
    std::erase_if(durable_names_, [&](const auto& entry) {
      return entry.first.parent_path() == path && !content_.contains(entry.first);
    });
  }
  void Rename(const fs::path& from, const fs::path& to) override {
    Operation("rename " + to.filename().string());
    const std::lock_guard lock(mutex_);
    content_[to] = content_.at(from);
    content_.erase(from);
  }
  bool Exists(const fs::path& path) override {
    const std::lock_guard lock(mutex_);
    return content_.contains(path);
  }
  std::string Read(const fs::path& path) override {
    const std::lock_guard lock(mutex_);
    if (!content_.contains(path)) throw Error(ErrorCode::kInvalidArgument, path.string() + ": cannot be read");
    return content_[path];
  }

  // After the crash the machine is up again. Names that were not synced may or may not be there; so may contents, of
  // which half is left here.
  void Restart(bool keeps_what_was_not_synced) {
    crash_at_ = 1 << 30;
    if (!keeps_what_was_not_synced) content_ = durable_names_;
    for (auto& [name, content] : content_) {
      if (!synced_.contains(content) && !keeps_what_was_not_synced) content.resize(content.size() / 2);
    }
  }

  std::vector<std::string> operations;
  std::map<fs::path, std::string>& content() { return content_; }

 private:
  void Operation(const std::string& what) {
    const std::lock_guard lock(mutex_);
    if (static_cast<int>(operations.size()) >= crash_at_) throw Error(ErrorCode::kEnvironment, "crash");
    operations.push_back(what);
  }

  std::mutex mutex_;
  int crash_at_;
  std::map<fs::path, std::string> content_;
  std::map<fs::path, std::string> durable_names_;
  std::map<std::string, bool> synced_;  // by content, which differs between files here
};

struct RankState {
  std::vector<float> values;
  std::vector<CheckpointSlice> Slices(int64_t rank) {
    return {
        {"master/w@" + std::to_string(2 * rank), {values.data(), static_cast<int64_t>(values.size()), DType::kF32}}};
  }
};

// One thread per rank; true if every rank saved.
bool Save(FileSystem& files, int64_t world, float value, int64_t steps = 3, const fs::path& folder = "run/step-3") {
  auto ranks = MakeThreadCommunicators(world, Progress::kLastArriver);
  std::vector<int> done(world, 0);
  {
    std::vector<std::jthread> threads;
    for (int64_t rank = 0; rank < world; ++rank) {
      threads.emplace_back([&, rank] {
        RankState state{{value, static_cast<float>(rank)}};
        try {
          SaveCheckpoint(folder, {steps, steps + 40}, kIdentity, state.Slices(rank), *ranks[rank], 20s, files);
          done[rank] = 1;
        } catch (const Error& error) {
          ranks[rank]->Abort(error.what());
        }
      });
    }
  }
  return std::ranges::count(done, 1) == world;
}

TrainingProgress Load(FileSystem& files, int64_t rank, int64_t world, RankState& state,
                      const CheckpointIdentity& identity = kIdentity, const fs::path& folder = "run/step-3") {
  return LoadCheckpoint(folder, identity, state.Slices(rank), rank, world, files);
}

TEST(Checkpoint, ComesBackOnEveryRank) {
  for (int64_t world = 1; world <= 12; ++world) {
    CrashingFileSystem files;
    ASSERT_TRUE(Save(files, world, 9));
    for (int64_t rank = 0; rank < world; ++rank) {
      RankState state{{0, 0}};
      EXPECT_EQ(Load(files, rank, world, state), (TrainingProgress{3, 43}));
      EXPECT_EQ(state.values, (std::vector<float>{9, static_cast<float>(rank)}));
    }
  }
}

TEST(Checkpoint, TheManifestIsRenamedAfterEverythingElseIsSynced) {
  CrashingFileSystem files;
  ASSERT_TRUE(Save(files, 1, 9));
  EXPECT_THAT(files.operations,
              testing::ElementsAre("create", "write shard-00000.safetensors", "sync shard-00000.safetensors",
                                   "write manifest.json.partial", "sync manifest.json.partial", "sync folder",
                                   "rename manifest.json", "sync folder", "sync folder"));
}

TEST(Checkpoint, ACrashAtAnyOperationLeavesNoneOrAWholeOne) {
  for (const bool keeps : {false, true}) {
    bool survived = false;
    for (int crash_at = 0; !survived; ++crash_at) {
      ASSERT_LT(crash_at, 100);
      CrashingFileSystem files(crash_at);
      survived = Save(files, 3, 9);
      files.Restart(keeps);
      int loaded = 0;
      for (int64_t rank = 0; rank < 3; ++rank) {
        RankState state{{0, 0}};
        try {
          Load(files, rank, 3, state);
          ++loaded;
          EXPECT_EQ(state.values, (std::vector<float>{9, static_cast<float>(rank)}));
        } catch (const Error&) {
          EXPECT_EQ(state.values, (std::vector<float>{0, 0})) << "nothing is written before everything is checked";
        }
      }
      EXPECT_TRUE(loaded == 0 || loaded == 3) << "crash at " << crash_at;
      EXPECT_TRUE(!survived || loaded == 3) << "a save that returned is durable";
    }
  }
}

void ExpectRefusal(const std::function<void()>& load, ErrorCode code, const std::string& message) {
  try {
    load();
    FAIL() << "was not refused: " << message;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code);
    EXPECT_THAT(error.what(), HasSubstr(message));
  }
}

TEST(Checkpoint, NeverOverwritesAFinishedOne) {
  CrashingFileSystem files;
  ASSERT_TRUE(Save(files, 1, 9));
  EXPECT_FALSE(Save(files, 1, 10));
  RankState state{{0, 0}};
  Load(files, 0, 1, state);
  EXPECT_EQ(state.values[0], 9);
}

TEST(Checkpoint, AnUnfinishedOneIsWrittenAgain) {
  CrashingFileSystem files(4);
  EXPECT_FALSE(Save(files, 1, 9));
  files.Restart(true);
  EXPECT_TRUE(Save(files, 1, 10));
  RankState state{{0, 0}};
  Load(files, 0, 1, state);
  EXPECT_EQ(state.values[0], 10);
}

TEST(Checkpoint, RefusesAnotherRunWorldOrSlices) {
  CrashingFileSystem files;
  ASSERT_TRUE(Save(files, 2, 9));
  RankState state{{0, 0}}, longer{{0, 0, 0}};
  CheckpointIdentity config = kIdentity, model = kIdentity, seed = kIdentity;
  config.config = "{\"x\": 1}";
  model.model = "w [4]";
  seed.seed = 6;
  ExpectRefusal([&] { Load(files, 0, 2, state, config); }, ErrorCode::kUnsupported, "another config");
  ExpectRefusal([&] { Load(files, 0, 2, state, model); }, ErrorCode::kUnsupported, "another model");
  ExpectRefusal([&] { Load(files, 0, 2, state, seed); }, ErrorCode::kUnsupported, "another seed");
  ExpectRefusal([&] { Load(files, 0, 3, state); }, ErrorCode::kUnsupported, "world of 2 ranks");
  ExpectRefusal([&] { Load(files, 0, 2, longer); }, ErrorCode::kInvalidArgument, "2 elements of F32; allowed: 3");
  ExpectRefusal([&] { LoadCheckpoint("run/step-3", kIdentity, state.Slices(1), 0, 2, files); },
                ErrorCode::kInvalidArgument, "master/w@2 is missing");
  ExpectRefusal([&] { LoadCheckpoint("run/step-3", kIdentity, {}, 0, 2, files); }, ErrorCode::kInvalidArgument,
                "holds 1 slices; allowed: 0");
  EXPECT_EQ(state.values, (std::vector<float>{0, 0}));
}

TEST(Checkpoint, RefusesTornStaleAndSwappedShards) {
  CrashingFileSystem files, other;
  ASSERT_TRUE(Save(files, 2, 9));
  ASSERT_TRUE(Save(other, 2, 10));
  const fs::path first = "run/step-3/shard-00000.safetensors", second = "run/step-3/shard-00001.safetensors";
  RankState state{{0, 0}};
  const std::string good = files.content()[first];
  for (const std::string& bad :
       {std::string(), good.substr(0, good.size() - 1), good + '\0', other.content()[first], files.content()[second]}) {
    files.content()[first] = bad;
    ExpectRefusal([&] { Load(files, 0, 2, state); }, ErrorCode::kInvalidArgument, "not the file that the manifest");
  }
  files.content().erase(first);
  ExpectRefusal([&] { Load(files, 0, 2, state); }, ErrorCode::kInvalidArgument, "cannot be read");
}

TEST(LocalFileSystem, WritesSyncsRenamesAndNamesThePathOfAFailure) {
  const fs::path root = fs::path(testing::TempDir()) / "checkpoint_files";
  fs::remove_all(root);
  const auto files = MakeLocalFileSystem();
  files->CreateDirectories(root / "a" / "b");
  files->Write(root / "a" / "x", "old and longer");
  files->Write(root / "a" / "x", std::string("new\0", 4));
  files->SyncFile(root / "a" / "x");
  files->Rename(root / "a" / "x", root / "a" / "y");
  files->SyncDirectory(root / "a");
  EXPECT_FALSE(files->Exists(root / "a" / "x"));
  EXPECT_EQ(files->Read(root / "a" / "y"), std::string("new\0", 4));
  ExpectRefusal([&] { files->Write(root / "none" / "x", ""); }, ErrorCode::kEnvironment, "none/x: cannot be written");
  ExpectRefusal([&] { files->SyncFile(root / "none"); }, ErrorCode::kEnvironment, "cannot be synced");
  ExpectRefusal([&] { files->Rename(root / "none", root / "z"); }, ErrorCode::kEnvironment, "cannot be renamed");
  ExpectRefusal([&] { files->CreateDirectories(root / "a" / "y" / "z"); }, ErrorCode::kEnvironment,
                "cannot be created");
}

}  // namespace
}  // namespace plumbline::optimized
