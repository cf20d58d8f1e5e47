// SPDX-License-Identifier: Apache-2.0
// The claims of all communicators over Gloo's connections between threads of this process, and how ranks meet. Ranks
// that are processes, and die, are in //optimized/engine:processes_test.
#include "optimized/comm/gloo_communicator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include "conformance/contract/error.h"
#include "optimized/comm/testing/communicator_claims.h"
#include "optimized/comm/testing/free_port.h"

namespace plumbline::optimized {
namespace testing {

// The worlds of all ranks; the communicators of the tests below outlive theirs, as the connections do the store.
std::vector<std::unique_ptr<GlooWorld>> Worlds(int64_t size) {
  std::signal(SIGPIPE, SIG_IGN);
  const int port = FreePort();
  std::vector<std::unique_ptr<GlooWorld>> worlds(size);
  std::vector<std::jthread> threads;
  for (int64_t rank = 0; rank < size; ++rank) {
    threads.emplace_back([&worlds, rank, size, port] {
      worlds[rank] = GlooWorld::Join({rank, size, "127.0.0.1", port, rank == 0}, std::chrono::seconds(20));
    });
  }
  threads.clear();
  return worlds;
}

Ranks OverGloo(int64_t size) {
  const auto worlds = Worlds(size);
  Ranks ranks(size);
  std::vector<std::jthread> threads;
  for (int64_t rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] { ranks[rank] = worlds[rank]->MakeCommunicator("t", std::chrono::seconds(20)); });
  }
  threads.clear();
  return ranks;
}

std::vector<Implementation> Implementations() { return {{"Gloo", {1, 2, 3, 5}, &OverGloo}}; }

}  // namespace testing

namespace {

using contract::Error;
using contract::ErrorCode;
using ::testing::HasSubstr;
using testing::Worlds;
using namespace std::chrono_literals;

// What `body` threw.
std::optional<Error> ErrorOf(const std::function<void()>& body) {
  try {
    body();
    return std::nullopt;
  } catch (const Error& error) {
    return error;
  }
}

TEST(GlooWorld, RanksThatDoNotComeAreNamed) {
  const int port = testing::FreePort();
  std::optional<Error> zero, two;
  {
    const std::jthread other([&] { two = ErrorOf([&] { GlooWorld::Join({2, 4, "127.0.0.1", port, false}, 1s); }); });
    zero = ErrorOf([&] { GlooWorld::Join({0, 4, "127.0.0.1", port, true}, 1s); });
  }
  ASSERT_TRUE(zero && two);
  EXPECT_EQ(zero->code(), ErrorCode::kTimeout);
  EXPECT_THAT(zero->what(), HasSubstr("missing ranks: 1, 3"));
}

TEST(GlooWorld, WithoutAStoreItsPlaceIsNamed) {
  const int port = testing::FreePort();
  const auto error = ErrorOf([&] { GlooWorld::Join({1, 2, "127.0.0.1", port, false}, 1s); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), ErrorCode::kEnvironment);
  EXPECT_THAT(error->what(), HasSubstr("no store at 127.0.0.1:" + std::to_string(port)));
}

TEST(GlooWorld, APortThatIsTakenIsNamed) {
  const int port = testing::FreePort();
  const auto first = GlooWorld::Join({0, 1, "127.0.0.1", port, true}, 5s);
  const auto error = ErrorOf([&] { GlooWorld::Join({0, 1, "127.0.0.1", port, true}, 5s); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), ErrorCode::kEnvironment);
  EXPECT_THAT(error->what(), HasSubstr("127.0.0.1:" + std::to_string(port)));
}

TEST(GlooWorld, ARankThatDeclinesIsHeardByTheOthersAtOnce) {
  const auto worlds = Worlds(3);
  worlds[2]->Decline("case 0", "no such file");
  const std::jthread other([&] { ErrorOf([&] { worlds[1]->MakeCommunicator("case 0", 20s); }); });
  const auto error = ErrorOf([&] { worlds[0]->MakeCommunicator("case 0", 20s); });
  ASSERT_TRUE(error);
  EXPECT_THAT(error->what(), HasSubstr("rank 2 failed: no such file"));
}

// As under torchrun, whose agent has the store and keeps it while it starts the ranks again.
TEST(GlooWorld, RanksMeetInAStoreOfSomebodyElseAndAgainAfterARestart) {
  const int port = testing::FreePort();
  const auto agent = GlooWorld::Join(
      {.rank = 0, .size = 1, .address = "127.0.0.1", .port = port, .hosts_store = true, .attempt = 1000}, 20s);
  for (const int64_t attempt : {0, 1}) {
    std::vector<std::unique_ptr<GlooWorld>> worlds(2);
    testing::Ranks ranks(2);
    std::vector<std::jthread> threads;
    for (int64_t rank = 0; rank < 2; ++rank) {
      threads.emplace_back([&, rank] {
        worlds[rank] = GlooWorld::Join({rank, 2, "127.0.0.1", port, false, attempt}, 20s);
        ranks[rank] = worlds[rank]->MakeCommunicator("case 0", 20s);
      });
    }
    threads.clear();
    EXPECT_EQ(worlds[0]->Count("failures"), 1) << "of this attempt";
    testing::RunOk(ranks, [](Communicator& comm) { comm.Barrier(testing::Tag("t")).Wait(); });
  }
}

TEST(GlooWorld, WhatOneRankPublishesAllCanReadAndCountersCount) {
  const auto worlds = Worlds(3);
  worlds[1]->Publish("key", "text of rank 1");
  for (const auto& world : worlds) EXPECT_EQ(world->Read("key", 5s), "text of rank 1");
  EXPECT_EQ(worlds[0]->Read("no such key", 10ms), std::nullopt);
  EXPECT_EQ(worlds[0]->Read("key", 10ms), "text of rank 1") << "after a time-out";
  for (int64_t i = 0; i < 3; ++i) EXPECT_EQ(worlds[i]->Count("calls"), i + 1);
}

}  // namespace
}  // namespace plumbline::optimized
