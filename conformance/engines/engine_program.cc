// SPDX-License-Identifier: Apache-2.0
// Runs `describe` with bounded time and output.
#include "conformance/engines/engine_program.h"

#include <poll.h>

#include <algorithm>
#include <cstdio>

#include "conformance/contract/error.h"
#include "conformance/contract/strict_json.h"
#include "conformance/engines/child_output.h"
#include "conformance/engines/child_process.h"
#include "conformance/engines/engine_environment.h"
#include "conformance/engines/monotonic.h"
#include "conformance/engines/one_line.h"
#include "conformance/engines/start_mark.h"

namespace plumbline::conformance {
namespace {

using contract::ErrorCode;

constexpr size_t kMaxAnswerBytes = size_t{1} << 20;

struct Answer {
  std::string text;
  Tail errors;
  bool too_long = false;

  void Add(std::string_view more) {
    const size_t room = kMaxAnswerBytes - text.size();
    too_long = too_long || more.size() > room;
    text += more.substr(0, room);
  }
};

// Reads both streams until the program has ended, said too much, or run out of time. Its streams may stay open after
// its end (a grandchild holds them), so they do not decide.
void Listen(ChildProcess& child, Pipe& out, Pipe& err, double deadline, Answer& answer) {
  const auto drain = [&] {
    if (out.read && !DrainPipe(out.read.get(), [&](std::string_view text) { answer.Add(text); })) out.read.Reset();
    if (err.read && !DrainPipe(err.read.get(), [&](std::string_view text) { answer.errors.Add(text); }))
      err.read.Reset();
  };
  while (!answer.too_long) {
    const double left_s = deadline - MonotonicSeconds();
    if (left_s <= 0 || child.TryReap()) break;
    pollfd fds[] = {{child.pidfd(), POLLIN, 0}, {out.read.get(), POLLIN, 0}, {err.read.get(), POLLIN, 0}};
    poll(fds, 3, static_cast<int>(std::min(left_s, 1.0) * 1000) + 1);
    drain();
  }
  drain();
}

std::string WithLastLine(const std::string& message, const Answer& answer) {
  const std::string line = LastLine(answer.errors.text());
  return line.empty() ? message : message + "; its last line: " + line;
}

void CheckEnd(const ChildProcess& child, const Answer& answer, double timeout_s, const std::string& where) {
  if (answer.too_long) {
    contract::Fail(ErrorCode::kInvalidArgument,
                   where + "printed more than " + std::to_string(kMaxAnswerBytes) + " bytes");
  }
  if (!child.ended()) {
    char seconds[32];
    std::snprintf(seconds, sizeof seconds, "%g", timeout_s);
    contract::Fail(ErrorCode::kTimeout, WithLastLine(where + "not finished after " + seconds + " s", answer));
  }
  const ChildEnd& end = child.end();
  if (!end.clean()) {
    const ErrorCode code = !end.signaled && end.code == 3   ? ErrorCode::kUnsupported
                           : !end.signaled && end.code == 4 ? ErrorCode::kEnvironment
                                                            : ErrorCode::kInvalidArgument;
    contract::Fail(code, WithLastLine(where + ToString(end), answer));
  }
  if (answer.text.empty()) contract::Fail(ErrorCode::kInvalidArgument, WithLastLine(where + "printed nothing", answer));
}

// Another protocol may have other keys, so its number is looked at before they are.
void CheckProtocol(const std::string& text, const std::string& where) {
  const contract::JsonValue root = contract::JsonValue::Parse(text, where);
  const int64_t protocol = root.At("protocol").Int();
  if (protocol != 1) {
    contract::Fail(ErrorCode::kInvalidArgument,
                   where + ": the engine speaks protocol " + std::to_string(protocol) + ", this harness protocol 1");
  }
}

}  // namespace

contract::EngineDescription Describe(const EngineProgram& engine, double timeout_s) {
  const std::vector<std::string> command = CommandLine(engine.program, engine.extra_args, {"describe"});
  const std::string where = "engine " + engine.program.string();
  const double deadline = MonotonicSeconds() + timeout_s;
  Pipe out = MakePipe();
  Pipe err = MakePipe();
  const StartMark mark;
  std::vector<std::string> environment = EnvironmentWithoutRank();
  environment.push_back(mark.entry());
  ChildProcess child(command, environment, out.write.get(), err.write.get(), where);
  out.write.Reset();
  err.write.Reset();
  Answer answer;
  Listen(child, out, err, deadline, answer);
  CheckEnd(child, answer, timeout_s, where + ": describe: ");
  CheckProtocol(answer.text, where + ": describe");
  return contract::ParseEngineDescription(answer.text, where + ": describe");
}

}  // namespace plumbline::conformance
