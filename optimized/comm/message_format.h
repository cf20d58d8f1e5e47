// SPDX-License-Identifier: Apache-2.0
// What ranks say to each other: a head of fixed size, then a tag, elements, or a reason. Both ends are processes of one
// build on machines of one byte order; nothing here is read by anybody else.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "conformance/contract/error.h"
#include "optimized/comm/posting_communicator.h"
#include "optimized/comm/wire.h"

namespace plumbline::optimized {

enum class MessageType : int32_t {
  kAnnounce,  // this rank has made the call; the body is the tag
  kPart,      // elements for the receiver to sum or to gather
  kResult,    // elements that the sender has summed
  kAbort,     // the body is the reason
};

struct alignas(64) MessageHead {
  MessageType type = MessageType::kAnnounce;
  int32_t stream = 0;
  int64_t number = 0;  // of the call in its stream
  CollectiveKind kind = CollectiveKind::kBarrier;
  contract::DType dtype = contract::DType::kF32;
  int64_t input_elems = 0;
  contract::ErrorCode code = contract::ErrorCode::kInternal;  // of an abort
};

inline Message MakeMessage(const MessageHead& head, const void* body, int64_t body_bytes) {
  Message message(sizeof head + static_cast<size_t>(body_bytes));
  std::memcpy(message.data(), &head, sizeof head);
  if (body_bytes > 0) std::memcpy(message.data() + sizeof head, body, static_cast<size_t>(body_bytes));
  return message;
}

inline MessageHead HeadOf(const Message& message) {
  contract::Check(message.size() >= sizeof(MessageHead), "a message has a head");
  MessageHead head;
  std::memcpy(&head, message.data(), sizeof head);
  return head;
}

inline std::string TextOf(const Message& message) {
  return {reinterpret_cast<const char*>(message.data()) + sizeof(MessageHead), message.size() - sizeof(MessageHead)};
}

inline std::byte* BodyOf(Message& message) { return message.data() + sizeof(MessageHead); }
inline const std::byte* BodyOf(const Message& message) { return message.data() + sizeof(MessageHead); }
inline int64_t BodyBytes(const Message& message) { return static_cast<int64_t>(message.size() - sizeof(MessageHead)); }

}  // namespace plumbline::optimized
