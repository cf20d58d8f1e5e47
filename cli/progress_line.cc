// SPDX-License-Identifier: Apache-2.0
#include "cli/progress_line.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>
#include <string>

namespace plumbline::cli {
namespace {

constexpr double kRedrawSeconds = 0.1;

size_t TerminalWidth() {
  winsize size{};
  constexpr size_t kUsual = 80;
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : kUsual;
}

}  // namespace

std::string ProgressText(const conformance::VerifyProgress& progress) {
  if (progress.shrink_left_s) {
    return fmt::format("making it smaller: {} tried, at most {:.0f} s left: {}", progress.done, *progress.shrink_left_s,
                       progress.last);
  }
  const double left =
      progress.elapsed_s * static_cast<double>(progress.total - progress.done) / static_cast<double>(progress.done);
  return fmt::format("{}: {}/{} runs, {:.0f} s, about {:.0f} s left of this phase: {}", progress.phase, progress.done,
                     progress.total, progress.elapsed_s, left, progress.last);
}

ProgressLine::ProgressLine() : terminal_(isatty(STDERR_FILENO) == 1) {}

ProgressLine::~ProgressLine() {
  if (terminal_ && shown_at_s_ >= 0) std::fputs("\r\033[K", stderr);
}

void ProgressLine::Show(const conformance::VerifyProgress& progress) {
  if (!terminal_ || progress.total == 0) return;
  const bool last = progress.done == progress.total;
  if (!last && shown_at_s_ >= 0 && progress.elapsed_s - shown_at_s_ < kRedrawSeconds) return;
  shown_at_s_ = progress.elapsed_s;
  Draw(ProgressText(progress));
}

void ProgressLine::Draw(std::string line) {
  if (line.size() >= TerminalWidth()) line.resize(TerminalWidth() - 1);
  std::fprintf(stderr, "\r\033[K%s", line.c_str());
  std::fflush(stderr);
}

}  // namespace plumbline::cli
