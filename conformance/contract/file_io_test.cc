// SPDX-License-Identifier: Apache-2.0
// Reading and replacing whole files, and what is left behind when that fails half-way.
#include "conformance/contract/file_io.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "conformance/contract/testing/error_message.h"
#include "conformance/contract/testing/file_size_limit.h"
#include "conformance/contract/testing/temporary_folder.h"

namespace plumbline::contract {
namespace {

using testing::ErrorMessage;
using testing::FileSizeLimit;
using testing::TemporaryFolder;

int NumFiles(const std::filesystem::path& folder) {
  int count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder)) ++count;
  return count;
}

TEST(File, ComesBackAsItWasWritten) {
  const TemporaryFolder folder;
  // Around the size of the reader's chunk, 65536 bytes.
  for (size_t size : {size_t{0}, size_t{1}, size_t{65535}, size_t{65536}, size_t{65537}, size_t{200003}}) {
    std::string content(size, '\0');
    for (size_t i = 0; i < size; ++i) content[i] = static_cast<char>(i * 31 + i / 251);
    WriteFile(folder / "f", content);
    EXPECT_EQ(ReadFile(folder / "f"), content) << size;
  }
}

TEST(ReadFile, NamesAMissingFile) {
  const TemporaryFolder folder;
  const std::string path = (folder / "absent").string();
  EXPECT_EQ(ErrorMessage(ErrorCode::kInvalidArgument, [&] { ReadFile(path); }),
            path + ": cannot be read: No such file or directory");
  EXPECT_EQ(ErrorMessage(ErrorCode::kInvalidArgument, [&] { ReadFile(""); }),
            ": cannot be read: No such file or directory");
}

TEST(ReadFileOf, NamesTheFileWithoutItsFolder) {
  const TemporaryFolder folder;
  WriteFile(folder / "f", "12345");
  EXPECT_EQ(ReadFileOf(folder.path(), "f", 5), "12345");
  EXPECT_EQ(ErrorMessage(ErrorCode::kInvalidArgument, [&] { ReadFileOf(folder.path(), "f", 4); }),
            "f: cannot be read: longer than 4 bytes");
  EXPECT_EQ(ErrorMessage(ErrorCode::kInvalidArgument, [&] { ReadFileOf(folder.path(), "rank0/absent"); }),
            "rank0/absent: cannot be read: No such file or directory");
}

TEST(ReadFile, RefusesAFolder) {
  const TemporaryFolder folder;
  EXPECT_EQ(ErrorMessage(ErrorCode::kInvalidArgument, [&] { ReadFile(folder.path()); }),
            folder.path().string() + ": cannot be read: Is a directory");
}

TEST(ReadFile, AcceptsMaxBytesAndNotOneMore) {
  const TemporaryFolder folder;
  WriteFile(folder / "f", "12345");
  EXPECT_EQ(ReadFile(folder / "f", 5), "12345");
  EXPECT_EQ(ErrorMessage(ErrorCode::kInvalidArgument, [&] { ReadFile(folder / "f", 4); }),
            (folder / "f").string() + ": cannot be read: longer than 4 bytes");
  WriteFile(folder / "empty", "");
  EXPECT_EQ(ReadFile(folder / "empty", 0), "");
  EXPECT_EQ(ErrorMessage(ErrorCode::kInvalidArgument, [&] { ReadFile("/dev/zero", 1'000'000); }),
            "/dev/zero: cannot be read: not a regular file");
}

TEST(WriteFile, ReplacesTheOldContentAndLeavesNothingElse) {
  const TemporaryFolder folder;
  WriteFile(folder / "f", "a long first content");
  WriteFile(folder / "f", "short");
  EXPECT_EQ(ReadFile(folder / "f"), "short");
  EXPECT_EQ(NumFiles(folder.path()), 1);
}

TEST(WriteFile, PutsANewFileInPlaceSoThatAnOpenReaderKeepsTheOldOne) {
  const TemporaryFolder folder;
  WriteFile(folder / "f", "old");
  std::filesystem::create_hard_link(folder / "f", folder / "reader");
  WriteFile(folder / "f", "new");
  EXPECT_EQ(ReadFile(folder / "reader"), "old");
  EXPECT_EQ(ReadFile(folder / "f"), "new");
}

TEST(WriteFile, LeavesTheOldFileAndNoRestsOnAFullDisk) {
  const TemporaryFolder folder;
  WriteFile(folder / "f", "old");
  {
    const FileSizeLimit limit(1000);
    EXPECT_EQ(ErrorMessage(ErrorCode::kEnvironment, [&] { WriteFile(folder / "f", std::string(5000, 'x')); }),
              (folder / "f").string() + ": cannot be written: File too large");
  }
  EXPECT_EQ(ReadFile(folder / "f"), "old");
  EXPECT_EQ(NumFiles(folder.path()), 1);
}

TEST(WriteFile, NamesAFolderThatIsMissingOrNoFolder) {
  const TemporaryFolder folder;
  const std::string below_missing = (folder / "missing" / "f").string();
  EXPECT_EQ(ErrorMessage(ErrorCode::kEnvironment, [&] { WriteFile(below_missing, "x"); }),
            below_missing + ": cannot be written: No such file or directory");
  WriteFile(folder / "file", "old");
  const std::string below_file = (folder / "file" / "f").string();
  EXPECT_EQ(ErrorMessage(ErrorCode::kEnvironment, [&] { WriteFile(below_file, "x"); }),
            below_file + ": cannot be written: Not a directory");
  EXPECT_EQ(ReadFile(folder / "file"), "old");
}

TEST(WriteFile, DoesNotReplaceAFolder) {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "d");
  WriteFile(folder / "d" / "f", "inside");
  ErrorMessage(ErrorCode::kEnvironment, [&] { WriteFile(folder / "d", "x"); });
  EXPECT_EQ(ReadFile(folder / "d" / "f"), "inside");
  EXPECT_EQ(NumFiles(folder.path()), 1);
}

}  // namespace
}  // namespace plumbline::contract
