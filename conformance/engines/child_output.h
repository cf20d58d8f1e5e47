// SPDX-License-Identifier: Apache-2.0
// What a child prints, read without ever blocking: into a bounded log file, with the last line of its errors at hand.
// A child that prints without end costs neither disk nor memory, and is never blocked by a full pipe for long.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "conformance/engines/unique_fd.h"

namespace plumbline::conformance {

struct Pipe {
  UniqueFd read;   // does not block
  UniqueFd write;  // blocks; for the child
};

// Both ends close-on-exec. Throws contract::Error (Environment).
Pipe MakePipe();

// Gives what is in the pipe to `consume`, at most about 1 MiB at a time so that a flood cannot hold the caller. Returns
// false at the end of the stream.
bool DrainPipe(int fd, const std::function<void(std::string_view)>& consume);

// The last bytes of a stream.
class Tail {
 public:
  void Add(std::string_view text);
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

// Standard output and error of one child, in one file in the order in which they arrive.
class OutputLog {
 public:
  // Creates the file; it must not exist. Throws contract::Error (Environment) here and in Drain if the file cannot be
  // written.
  OutputLog(const std::filesystem::path& path, int64_t max_bytes);

  int stdout_for_child() const { return out_.write.get(); }
  int stderr_for_child() const { return err_.write.get(); }
  void ChildStarted();  // closes our copies of the ends that the child writes to

  // Ends to poll for reading; -1 when closed.
  int stdout_fd() const { return out_.read.get(); }
  int stderr_fd() const { return err_.read.get(); }

  void Drain();
  void Close();  // drains what is there; later output, if somebody still holds the pipe, hits a closed one

  const std::filesystem::path& path() const { return path_; }
  std::string LastErrorLine() const;

 private:
  void DrainOne(UniqueFd& fd, Tail* tail);
  void Append(std::string_view text);
  void WriteAll(std::string_view text);

  std::filesystem::path path_;
  UniqueFd file_;
  int64_t room_bytes_;
  int64_t max_bytes_;
  Pipe out_;
  Pipe err_;
  Tail error_tail_;
};

}  // namespace plumbline::conformance
