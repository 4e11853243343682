#include "core/comm/thread_ranks.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "core/resource/random_stream.h"

namespace interp {

// Sends are copied out at once; receives are looked for when they are polled.
class ThreadRanks::Endpoint : public Transport {
 public:
  Endpoint(ThreadRanks& ranks, int rank) : ranks_(ranks), rank_(rank) {}

  int rank() const override { return rank_; }
  int size() const override { return ranks_.options_.size; }
  int max_tag() const override { return std::numeric_limits<int>::max(); }
  size_t max_bytes() const override { return ranks_.options_.max_bytes; }

  absl::StatusOr<Id> Start(const Message& message) override {
    const std::scoped_lock lock(ranks_.mutex_);
    if (ranks_.dead_[rank_]) return Dead(rank_);
    if (message.send) {
      Send(message);
    } else {
      receives_[{message.peer, message.tag}].push_back(next_);
      waiting_[next_] = message;
    }
    return next_++;
  }

  absl::StatusOr<bool> Finished(Id id) override {
    const auto it = waiting_.find(id);
    if (it == waiting_.end()) return true;  // a send
    const Message& message = it->second;
    const std::scoped_lock lock(ranks_.mutex_);
    if (ranks_.dead_[rank_]) return Dead(rank_);
    std::deque<Id>& order = receives_[{message.peer, message.tag}];
    std::deque<Parcel>& line = ranks_.lines_[{message.peer, rank_, message.tag}];
    if (line.empty() && ranks_.dead_[message.peer]) return Dead(message.peer);
    if (line.empty() && !ranks_.gave_up_[message.peer].ok()) return ranks_.gave_up_[message.peer];
    if (order.front() != id || line.empty() || line.front().arrives > Clock::now()) return false;
    const std::vector<char>& bytes = line.front().bytes;
    if (bytes.size() != message.bytes) {
      return absl::InternalError(absl::StrCat("rank ", message.peer, " has sent ", bytes.size(),
                                              " bytes to rank ", rank_, ", which expects ",
                                              message.bytes));
    }
    std::memcpy(message.data, bytes.data(), bytes.size());
    line.pop_front();
    order.pop_front();
    waiting_.erase(it);
    return true;
  }

  absl::Status CheckPeers(const std::vector<int>& ranks) override {
    const std::scoped_lock lock(ranks_.mutex_);
    if (ranks_.dead_[rank_]) return Dead(rank_);
    for (const int rank : ranks) {
      if (ranks_.dead_[rank]) return Dead(rank);
      // A copy that shares nothing: references are counted in a library that ThreadSanitizer cannot
      // see into.
      const absl::Status& gave_up = ranks_.gave_up_[rank];
      if (!gave_up.ok()) return absl::Status(gave_up.code(), gave_up.message());
    }
    return absl::OkStatus();
  }

  void GiveUp(const absl::Status& error) override {
    const std::scoped_lock lock(ranks_.mutex_);
    ranks_.gave_up_[rank_] = absl::Status(
        error.code(), absl::StrCat("rank ", rank_, " has given up: ", error.message()));
    ranks_.moved_.notify_all();
  }

  void Idle(std::chrono::microseconds longest) override {
    std::unique_lock lock(ranks_.mutex_);
    ranks_.moved_.wait_for(lock, longest);
  }

 private:
  static absl::Status Dead(int rank) {
    return absl::UnavailableError(absl::StrCat("rank ", rank, " has died"));
  }

  void Send(const Message& message) {
    std::deque<Parcel>& line = ranks_.lines_[{rank_, message.peer, message.tag}];
    const auto* const data = static_cast<const char*>(message.data);
    const RandomStream random(RandomState{.seed = ranks_.options_.seed}, ranks_.num_messages_++);
    const auto longest = static_cast<uint64_t>(ranks_.options_.longest_delay.count()) + 1;
    Clock::time_point arrives = Clock::now() + std::chrono::microseconds(random.Word(0) % longest);
    if (!line.empty()) arrives = std::max(arrives, line.back().arrives);
    line.push_back({std::vector<char>(data, data + message.bytes), arrives});
    ranks_.moved_.notify_all();
  }

  ThreadRanks& ranks_;
  const int rank_;
  Id next_ = 0;
  std::map<Id, Message> waiting_;                           // receives
  std::map<std::pair<int, int>, std::deque<Id>> receives_;  // by peer and tag, in order
};

ThreadRanks::ThreadRanks(ThreadRanksOptions options)
    : options_(options), dead_(options.size), gave_up_(options.size) {}

MakeTransport ThreadRanks::Of(int rank) {
  return [this, rank]() -> absl::StatusOr<std::unique_ptr<Transport>> {
    return std::make_unique<Endpoint>(*this, rank);
  };
}

void ThreadRanks::Kill(int rank) {
  const std::scoped_lock lock(mutex_);
  dead_[rank] = true;
  moved_.notify_all();
}

}  // namespace interp
