// SPDX-License-Identifier: Apache-2.0
// Environments, command lines, ports.
#include "conformance/engines/engine_environment.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <system_error>

#include "conformance/contract/error.h"
#include "conformance/engines/unique_fd.h"

namespace plumbline::conformance {
namespace {

using contract::ErrorCode;

constexpr std::array<std::string_view, 5> kRankVariables = {"RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR",
                                                            "MASTER_PORT"};

bool IsRankVariable(std::string_view entry) {
  const std::string_view name = entry.substr(0, entry.find('='));
  return std::find(kRankVariables.begin(), kRankVariables.end(), name) != kRankVariables.end();
}

}  // namespace

std::vector<std::string> EnvironmentWithoutRank() {
  std::vector<std::string> environment;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    if (!IsRankVariable(*entry)) environment.emplace_back(*entry);
  }
  return environment;
}

std::vector<std::string> EnvironmentOfRank(const RankPlace& place) {
  std::vector<std::string> environment = EnvironmentWithoutRank();
  environment.push_back("RANK=" + std::to_string(place.rank));
  environment.push_back("LOCAL_RANK=" + std::to_string(place.rank));
  environment.push_back("WORLD_SIZE=" + std::to_string(place.world));
  environment.push_back("MASTER_ADDR=127.0.0.1");
  environment.push_back("MASTER_PORT=" + std::to_string(place.port));
  return environment;
}

std::vector<std::string> CommandLine(const std::filesystem::path& program, const std::vector<std::string>& extra_args,
                                     const std::vector<std::string>& args) {
  const std::string where = "engine " + program.string();
  std::error_code reason;
  const std::filesystem::file_status status = std::filesystem::status(program, reason);
  if (status.type() == std::filesystem::file_type::not_found) {
    contract::Fail(ErrorCode::kInvalidArgument, where + ": no such file");
  }
  if (reason) contract::Fail(ErrorCode::kInvalidArgument, where + ": " + reason.message());
  if (!std::filesystem::is_regular_file(status)) {
    contract::Fail(
        ErrorCode::kInvalidArgument,
        where + ": not a file but " + (std::filesystem::is_directory(status) ? "a folder" : "something else"));
  }
  if (access(program.c_str(), X_OK) != 0) {
    contract::Fail(ErrorCode::kInvalidArgument, where + ": not executable");
  }
  // Absolute, since execve searches no PATH and an engine may look at its own name.
  std::vector<std::string> command = {std::filesystem::absolute(program).string()};
  command.insert(command.end(), extra_args.begin(), extra_args.end());
  command.insert(command.end(), args.begin(), args.end());
  return command;
}

int FreePort() {
  const UniqueFd socket_fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  if (!socket_fd || bind(socket_fd.get(), reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      getsockname(socket_fd.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    contract::Fail(ErrorCode::kEnvironment, std::string("no free port on 127.0.0.1: ") + std::strerror(errno));
  }
  return ntohs(address.sin_port);
}

}  // namespace plumbline::conformance
