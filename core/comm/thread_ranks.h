// ThreadRanks: ranks that are threads of one process, for tests of all that runs between ranks.
// Messages can be slow, each by a time of its own, so that ranks meet in other orders every time;
// and a rank can die.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <vector>

#include "core/comm/transport.h"

namespace interp {

struct ThreadRanksOptions {
  int size = 1;
  // Messages take any time up to this, in no order but that of one sender, receiver and tag.
  std::chrono::microseconds longest_delay = std::chrono::microseconds(0);
  uint64_t seed = 0;  // of the delays
  size_t max_bytes = size_t{1} << 30;
};

// Thread-safety: all methods. Outlives its transports.
class ThreadRanks {
 public:
  explicit ThreadRanks(ThreadRanksOptions options);

  // For the thread of one rank (CommThread).
  MakeTransport Of(int rank);
  // The rank is gone: what others wait for from it fails, and so does all that it does itself.
  void Kill(int rank);

 private:
  class Endpoint;
  using Clock = std::chrono::steady_clock;
  // On its way: sent, or taken out by the receiver already.
  struct Parcel {
    std::vector<char> bytes;
    Clock::time_point arrives;
  };
  using Line = std::tuple<int, int, int>;  // sender, receiver, tag

  const ThreadRanksOptions options_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable moved_;
  std::map<Line, std::deque<Parcel>> lines_;
  std::vector<bool> dead_;
  std::vector<absl::Status> gave_up_;  // by rank
  uint64_t num_messages_ = 0;
};

}  // namespace interp
