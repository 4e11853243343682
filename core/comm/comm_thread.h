// CommThread: the one thread that speaks with other ranks. It takes jobs, which are schedules of
// messages, carries out those of different lanes side by side and those of one lane one after the
// other, and tells who waits. Nobody else calls the transport.
//
// It polls: many times at once, then it yields, then it sleeps longer and longer up to a
// millisecond, since ranks may outnumber processors.
//
// Errors: the first failure of any job ends all of them, those that come later too, with the same
// error: what a rank has missed cannot be caught up on. A job that takes longer than
// CommOptions::timeout fails and names the ranks that it waits for.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "core/buffer.h"
#include "core/comm/collectives.h"
#include "core/comm/comm_span.h"
#include "core/comm/transport.h"
#include "core/status.h"

namespace interp {

struct CommOptions {
  // What ranks have for their first meeting at least: they start one after the other.
  static constexpr std::chrono::milliseconds kLeastMeeting = std::chrono::seconds(10);
  // Of the first meeting of all ranks, and of one collective or message, from when it is the first
  // of its lane; a hundred years at most.
  std::chrono::milliseconds timeout = std::chrono::minutes(5);
  // Compares kind, dtype, count, root and position of each collective, and of a store's the key,
  // over the ranks before it starts: a round of small messages more.
  bool check = false;
};

// Something under way. Thread-safety: all methods.
class CommRequest {
 public:
  // Until it is done.
  absl::Status Wait();
  // Calls `then` once it is done: on the thread that communicates, and so not for long, or here
  // where that is over. Once.
  void Then(std::function<void(const absl::Status&)> then);
  bool done() const;
  void Finish(absl::Status status);

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool done_ = false;
  absl::Status status_;
  std::function<void(const absl::Status&)> then_;
};

struct CommJob {
  // Jobs of one lane run in order. -1: at once, beside all others; messages of the same tag and
  // peer still keep their order.
  int lane = -1;
  int tag = 0;
  std::vector<int> members;  // rank in the ring -> rank
  Schedule schedule;
  std::string what;  // for messages
  // What the transfers read and write, where nobody waits for the request to end.
  std::vector<BufferRef> memory = {};
  std::shared_ptr<CommRequest> request = nullptr;
  bool patient = false;  // has no timeout
};

// Thread-safety: all methods.
class CommThread {
 public:
  // Makes the transport on the new thread. Errors: those of `make`; DeadlineExceeded where it has
  // not come back in time. The thread goes on then, and destructors of the process may race with
  // it.
  static absl::StatusOr<std::unique_ptr<CommThread>> Start(MakeTransport make, CommOptions options);
  // Drops what is under way; leaves the others in peace where nothing has failed.
  ~CommThread();
  CommThread(const CommThread&) = delete;
  CommThread& operator=(const CommThread&) = delete;

  int rank() const { return transport_->rank(); }
  int size() const { return transport_->size(); }
  int max_tag() const { return transport_->max_tag(); }
  const CommOptions& options() const { return options_; }

  std::shared_ptr<CommRequest> Submit(CommJob job);
  // Fails all that is under way and all that comes, with the first such error: this rank has missed
  // a collective, so that what follows would meet others of other ranks.
  void Fail(const absl::Status& error);
  // What has ended everything, if anything has. Returns at once, and has the thread look at these
  // ranks, so that a later call knows of one that is gone though no message of it is awaited.
  absl::Status CheckPeers(const std::vector<int>& ranks);
  // Ends the processes of all ranks, where ranks are processes; returns where they are not.
  void Abort(int exit_code);

  // Notes what ends from now on. StopTrace gives it, in the order of the ends.
  void StartTrace();
  std::vector<CommSpan> StopTrace();

 private:
  using Clock = std::chrono::steady_clock;
  struct Flight;
  struct Lane;

  explicit CommThread(CommOptions options);
  void Work(const MakeTransport& make);
  // False when there is no transport, which error_ tells why.
  bool Open(const MakeTransport& make);
  void Close();
  void TakeJobs(bool may_sleep);
  bool HasOrders() const;
  absl::Status CheckAskedPeers();
  absl::StatusOr<bool> Progress();
  absl::StatusOr<bool> Advance(Lane& lane);
  absl::Status Post(Lane& lane);
  absl::StatusOr<bool> Poll(Lane& lane);
  void Note(const Lane& lane);
  absl::Status LateError(const Lane& lane) const;
  absl::Status FailAll(const absl::Status& error);
  void BackOff(int idle_rounds);
  static void KeepForEver(std::vector<std::unique_ptr<Lane>> lanes);

  const CommOptions options_;
  std::unique_ptr<Transport> transport_;
  std::vector<std::unique_ptr<Lane>> lanes_;      // of the thread alone; none is empty
  std::vector<std::unique_ptr<Lane>> abandoned_;  // of the thread alone

  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::deque<CommJob> submitted_;
  bool ready_ = false;
  bool stop_ = false;
  bool fail_ = false;
  absl::Status error_;  // the first
  std::optional<int> abort_code_;
  std::vector<int> peers_to_check_;
  bool traces_ = false;
  std::vector<CommSpan> spans_;

  std::thread thread_;
};

}  // namespace interp
