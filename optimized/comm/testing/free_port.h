// SPDX-License-Identifier: Apache-2.0
// A port for a test's store: one that the kernel has just given and taken back.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <stdexcept>
#include <system_error>

namespace plumbline::optimized::testing {

inline int FreePort() {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  const bool ok = bind(fd, reinterpret_cast<sockaddr*>(&address), size) == 0 &&
                  getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0;
  const int reason = errno;
  close(fd);
  if (!ok) throw std::system_error(reason, std::generic_category(), "no free port");
  return ntohs(address.sin_port);
}

}  // namespace plumbline::optimized::testing
