#include "tools/progress.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "absl/strings/str_cat.h"

namespace interp {

ProgressLine::ProgressLine(bool wanted) : on_(wanted && isatty(STDERR_FILENO) != 0) {}

bool ProgressLine::IsDue(bool is_last) const {
  constexpr std::chrono::milliseconds kInterval(100);
  return on_ && (!shown_ || is_last || Clock::now() - shown_at_ >= kInterval);
}

void ProgressLine::Show(const std::string& line) {
  std::fprintf(stderr, "\r\033[K%s", line.c_str());
  shown_at_ = Clock::now();
  shown_ = true;
}

void ProgressLine::Wipe() {
  if (shown_) std::fprintf(stderr, "\r\033[K");
  shown_ = false;
}

double ProgressLine::seconds() const {
  return std::max(std::chrono::duration<double>(Clock::now() - start_).count(), 1e-9);
}

std::string ProgressBar(int64_t done, int64_t total) {
  constexpr int64_t kWidth = 24;
  const auto filled = static_cast<size_t>(kWidth * done / std::max<int64_t>(total, 1));
  return absl::StrCat("[", std::string(filled, '#'), std::string(kWidth - filled, '.'), "]");
}

}  // namespace interp
