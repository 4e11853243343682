// How far a command is, in one line on a terminal.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace interp {

// Shows nothing where standard error is no terminal. The line goes with the object.
class ProgressLine {
 public:
  // Without `wanted`, nothing is shown on terminals either.
  explicit ProgressLine(bool wanted = true);
  ~ProgressLine() { Wipe(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // Whether to show a line now: as often as a reader can follow, and the last one always.
  bool IsDue(bool is_last) const;
  void Show(const std::string& line);
  void Wipe();
  // Since the beginning; above 0.
  double seconds() const;

 private:
  using Clock = std::chrono::steady_clock;

  const bool on_;
  const Clock::time_point start_ = Clock::now();
  Clock::time_point shown_at_;
  bool shown_ = false;
};

// "[######......]": `done` of `total`.
std::string ProgressBar(int64_t done, int64_t total);

}  // namespace interp
