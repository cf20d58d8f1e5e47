// SPDX-License-Identifier: Apache-2.0
// Owns one file descriptor and closes it. Nothing else: what a descriptor means is its user's business.
#pragma once

#include <unistd.h>

#include <utility>

namespace plumbline::conformance {

class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    if (this != &other) {
      Reset();
      fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
  }
  ~UniqueFd() { Reset(); }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }

  void Reset() {
    if (fd_ >= 0) close(fd_);  // the result says nothing useful: Linux frees the descriptor even on EINTR
    fd_ = -1;
  }

 private:
  int fd_ = -1;
};

}  // namespace plumbline::conformance
