// SPDX-License-Identifier: Apache-2.0
// Ranks as processes, on one host or several: how they find each other (torch.distributed's TCP store), what they say
// to all through that store, and communicators between them over Gloo's connections. Nothing here reads the
// environment. The program ignores SIGPIPE, which Gloo's writes to a peer that has left would else end it by.
//
//   const auto world = GlooWorld::Join({.rank = 0, .size = 2, .address = "127.0.0.1", .port = 29500}, 30s);
//   const auto communicator = world->MakeCommunicator("case 0", 60s);
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "optimized/comm/communicator.h"

namespace plumbline::optimized {

struct ProcessPlace {
  int64_t rank = 0;
  int64_t size = 1;
  std::string address;  // of the store
  int port = 0;
  bool hosts_store = false;  // else it is there, or another rank brings it
  int64_t attempt = 0;       // of several starts that share a store
};

class GlooWorld {
 public:
  virtual ~GlooWorld() = default;

  // Waits for all ranks. Environment if the port cannot be had, Timeout if ranks do not come; their numbers are named.
  static std::unique_ptr<GlooWorld> Join(const ProcessPlace& place, std::chrono::duration<double> timeout);

  // Every rank calls it with the same name, once each. Timeout naming the ranks that do not; Internal with the words of
  // a rank that declined.
  virtual std::unique_ptr<Communicator> MakeCommunicator(const std::string& name,
                                                         std::chrono::duration<double> timeout) = 0;
  // In the place of MakeCommunicator, on a rank that cannot take part.
  virtual void Decline(const std::string& name, const std::string& reason) = 0;

  // Texts that all ranks can read, and counters. All of them throw Environment where the store is gone, with rank 0.
  virtual void Publish(const std::string& key, const std::string& text) = 0;
  virtual std::optional<std::string> Read(const std::string& key, std::chrono::duration<double> timeout) = 0;
  virtual int64_t Count(const std::string& key) = 0;  // how many have called it with this key, this call included
};

}  // namespace plumbline::optimized
