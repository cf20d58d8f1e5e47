// SPDX-License-Identifier: Apache-2.0
// Manifests come back as they were written; anything else is refused; checksums see every byte.
#include "optimized/checkpoint/manifest.h"

#include <gtest/gtest.h>

#include <set>

#include "conformance/contract/error.h"

namespace plumbline::optimized {
namespace {

Manifest Example(int64_t ranks) {
  Manifest manifest{{7, 5, {4, 0.1, 1.0 / 3}, {0x1p126, 9, 8, 2}},
                    {"{\"a\": \"\xE2\x82\xAC\"}", "w [2, 3]", 0xFFFFFFFFFFFFFFFFull},
                    {}};
  for (int64_t rank = 0; rank < ranks; ++rank) {
    manifest.shards.push_back({ShardFileName(rank), 100 + rank, uint64_t{0xABCDEF} << rank});
  }
  return manifest;
}

TEST(Manifest, ComesBackAsItWasWritten) {
  for (const int64_t ranks : {0, 1, 2, 12}) EXPECT_EQ(ParseManifest(ToJson(Example(ranks)), "m"), Example(ranks));
}

TEST(Manifest, OrderOfNamesIsOrderOfRanksBeyondTen) {
  EXPECT_LT(ShardFileName(9), ShardFileName(10));
  EXPECT_LT(ShardFileName(99), ShardFileName(100));
}

TEST(Manifest, RefusesEveryTruncation) {
  std::string json = ToJson(Example(2));
  json.pop_back();  // the newline is not needed
  for (size_t size = 0; size < json.size(); ++size) {
    EXPECT_THROW(ParseManifest(json.substr(0, size), "m"), contract::Error) << size;
  }
}

TEST(Manifest, RefusesOtherFormatsShardsOutOfOrderAndNamesThatLeadElsewhere) {
  const auto replaced = [](std::string from, std::string to) {
    std::string json = ToJson(Example(2));
    return json.replace(json.find(from), from.size(), to);
  };
  for (const std::string& json : {replaced("\"checkpoint\": 4", "\"checkpoint\": 3"),
                                  replaced("steps\": 7", "steps\": 0"),
                                  replaced("updates\": 5", "updates\": -1"),
                                  replaced("\"num_updates\": 5,", ""),
                                  replaced("steps\": 7", "steps\": 9223372036854775807"),
                                  replaced("updates\": 5", "updates\": 9223372036854775807"),
                                  replaced("history\": [4", "history\": [9223372036854775807"),
                                  replaced("history\": [4", "history\": [-4"),
                                  replaced("history\": [4, ", "history\": ["),
                                  replaced("scaler\": [", "scaler\": [3, "),
                                  replaced("scaler\": [8.5", "scaler\": [9.5"),
                                  replaced(", 9, 8, 2]", ", 9, 9, 2]"),
                                  replaced(", 9, 8, 2]", ", 9, -2, 2]"),
                                  replaced(", 9, 8, 2]", ", 9, 8, 0]"),
                                  replaced(", 9, 8, 2]", ", -1, -1, 2]"),
                                  replaced(", 9, 8, 2]", ", 9, 8]"),
                                  replaced(", 9, 8, 2]", ", 9223372036854775807, 8, 2]"),
                                  replaced("shard-00000", "shard-00001"),
                                  replaced("shard-00000", "../shard-00000"),
                                  replaced("\"bytes\": 100", "\"bytes\": -1"),
                                  replaced("\"seed\": \"ffff", "\"seed\": \"FFFF")}) {
    EXPECT_THROW(ParseManifest(json, "m"), contract::Error) << json;
  }
}

TEST(Checksum, ChangesWithEveryBitWithOrderAndWithLength) {
  const std::string content(37, 'x');
  std::set<uint64_t> seen = {Checksum(content), Checksum(content + '\0'), Checksum("")};
  for (size_t byte = 0; byte < content.size(); ++byte) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string other = content;
      other[byte] = static_cast<char>(other[byte] ^ (1 << bit));
      seen.insert(Checksum(other));
    }
  }
  EXPECT_EQ(seen.size(), 3 + 37 * 8u);
  EXPECT_NE(Checksum("aaaaaaaabbbbbbbb"), Checksum("bbbbbbbbaaaaaaaa"));
}

}  // namespace
}  // namespace plumbline::optimized
