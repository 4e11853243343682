#include "tools/progress.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "absl/strings/str_format.h"

namespace interp {

Progress::Progress(int64_t total, std::string what)
    : total_(total), what_(std::move(what)), on_(isatty(STDERR_FILENO) != 0) {}

Progress::~Progress() {
  if (shown_) std::fprintf(stderr, "\r\033[K");
}

void Progress::Show(int64_t done) {
  constexpr std::chrono::milliseconds kInterval(100);  // as often as a reader can follow
  constexpr int kWidth = 24;
  const Clock::time_point now = Clock::now();
  if (!on_ || (shown_ && done < total_ && now - shown_at_ < kInterval)) return;
  const double seconds = std::max(std::chrono::duration<double>(now - start_).count(), 1e-9);
  const auto filled = static_cast<int>(kWidth * done / std::max<int64_t>(total_, 1));
  const std::string line =
      absl::StrFormat("[%s%s] %d/%d %s, %.0f/s", std::string(filled, '#'),
                      std::string(kWidth - filled, '.'), done, total_, what_, done / seconds);
  std::fprintf(stderr, "\r\033[K%s", line.c_str());
  std::fflush(stderr);
  shown_at_ = now;
  shown_ = true;
}

}  // namespace interp
