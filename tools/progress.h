// How far a command is, in one line on a terminal.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace interp {

// Shows nothing where standard error is no terminal. The line goes with the object.
class Progress {
 public:
  // `total` things, called `what`: "pictures".
  Progress(int64_t total, std::string what);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void Show(int64_t done);

 private:
  using Clock = std::chrono::steady_clock;

  const int64_t total_;
  const std::string what_;
  const bool on_;
  const Clock::time_point start_ = Clock::now();
  Clock::time_point shown_at_;
  bool shown_ = false;
};

}  // namespace interp
