// StreamOrder: what operations that run on devices still do with a variable after the engine has
// let its successors go. Internal to core/engine.
//
// An operation with a stream completes when its work is enqueued. What comes after it is ordered on
// the device where that suffices: work of the same stream needs nothing, work of another stream
// waits for an event there; only operations of the host, and waits, block. Per variable the last
// writer and the last reader on each stream since are kept, as (stream, ticket), a ticket being the
// number of operations its stream has been given so far. Each operation is followed by an event,
// the last of which a stream keeps, so that who waits for one waits for no later work, however late
// it asks; nobody waits twice for what it knows already. Whether what the last writer left is any
// good, DeviceFailures knows.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/device/device.h"
#include "core/engine/device_failures.h"
#include "core/engine/event_count.h"
#include "core/engine/record.h"

namespace interp::engine {

// A point in the work of a stream.
struct StreamUse {
  int16_t stream = -1;  // by index; -1: none
  uint64_t ticket = 0;
  Issue issue = 0;
};

struct VarOrder {
  StreamUse writer;
  std::vector<StreamUse> readers;  // since, one per stream
  // What devices have spoilt of the content, as far as noticed. It outlasts the writer where an
  // operation of the host has updated the content since.
  ErrorRef error;
  size_t index = 0;  // among StreamOrder::orders_
};

// Thread-safety: all methods but AddStream.
class StreamOrder {
 public:
  using Deadline = EventCount::Clock::time_point;

  explicit StreamOrder(DeviceFailures::MakeError make_error) : failures_(std::move(make_error)) {}
  // Both are borrowed.
  absl::Status AddStream(Device& device, Stream& stream);
  Stream& stream(int index) { return *streams_[index]->stream; }
  int num_streams() const { return static_cast<int>(streams_.size()); }

  // Of an operation that has a stream, before anything else is asked for it.
  void Begin(Record& record);
  Work WorkOf(const Record& record);
  // Before an operation starts: makes its stream, or for one of the host the calling thread, wait
  // for what the accesses conflict with. Returns what has spoilt something it reads, as far as is
  // known without waiting more. REQUIRES: the accesses are granted.
  ErrorRef Before(Record& record);
  // After it has enqueued its work: notes the use. Before the accesses are released.
  void After(Record& record);
  // In place of After, for an operation that was skipped after Begin.
  void Skip(Record& record);
  // After an operation of the host, which has waited for everything: what it wrote is at rest. Here
  // as in After what is overwritten is good, and what is updated stays spoilt.
  void AfterHost(Record& record);
  // Blocks until the last writer, or with `readers` everybody, is done; false when the deadline
  // came first. Then `error` is what spoilt the variable, if anything. REQUIRES: a grant.
  bool WaitOnHost(Var& var, bool readers, Deadline deadline, ErrorRef& error);
  // What devices have spoilt of the content, as far as is known without waiting.
  ErrorRef NoticedError(const VarOrder& order);
  // Forgets a variable. REQUIRES: no other thread uses it, no lock is held.
  void Forget(Var& var);

  // Blocks until all work of all streams is done, and takes note of failures; false when the
  // deadline came first.
  bool Synchronize(Deadline deadline = Deadline::max());
  // Around a fork: all work is done, so the child, where devices do not work, need not wait for
  // any.
  void BeforeFork() {
    Synchronize();
    mutex_.lock();
  }
  void AfterFork() { mutex_.unlock(); }

 private:
  // Operations of a stream that may be waited for by themselves; for older ones the oldest of these
  // is waited for.
  static constexpr uint64_t kEventsKept = 64;

  struct PerStream {
    Stream* stream = nullptr;
    const Device* device = nullptr;
    // Event i covers the last ticket given out that is i modulo kEventsKept.
    std::array<std::unique_ptr<DeviceEvent>, kEventsKept> events;
    uint64_t issued = 0;    // tickets given out
    Issue last_joined = 0;  // whose work came after work of another device, by whatever streams
    ErrorRef loss;          // of the device, as far as noticed
    // By stream: the ticket that this stream comes after anyway.
    std::vector<uint64_t> seen;
  };

  // What an access has to wait for, but for uses on `own`.
  static void Collect(const VarOrder& order, bool readers, int own, std::vector<StreamUse>& uses);
  // The event that covers the use, and what else it covers.
  struct Covering {
    DeviceEvent& event;
    uint64_t ticket;
  };
  Covering EventFor(StreamUse use) const;
  // False when the deadline came first; Unavailable when all is over and a device is lost.
  absl::StatusOr<bool> WaitOnHost(const std::vector<StreamUse>& uses,
                                  std::unique_lock<std::mutex>& lock, Deadline deadline);
  // Whether no stream of the device of `own` can wait for it.
  bool IsOfAnotherKind(const PerStream& own, const StreamUse& use) const;
  // For what that is true of: the host waits, without the lock.
  absl::Status WaitForOtherKinds(const PerStream& own, const std::vector<StreamUse>& uses,
                                 std::unique_lock<std::mutex>& lock);
  // For the rest: `own` waits, for an operation that is issued as `issue`.
  absl::Status WaitInStream(PerStream& own, const StreamUse& use, Issue issue);
  // What Before returns after such waits.
  ErrorRef ErrorAfter(const absl::Status& waited, Record& record);
  static ErrorRef InheritedError(Record& record);
  bool Concerns(const DeviceFailures::Failure& failure, const StreamUse& use) const;
  // Takes note of what has failed by now, in all orders that it concerns. `waited`: how the wait
  // before it ended; work that no longer runs may report its failure until a wait for it fails.
  void NoticeFailures(const absl::Status& waited);
  // Whatever else is written on the device is spoilt by `error`, but for an earlier loss.
  void KeepLoss(const Device& device, const ErrorRef& error);
  // For the device of a stream, which is lost and whose work did not report it: what nobody knows
  // to be done is spoilt. No error where all was done.
  void NoticeLoss(int stream);
  VarOrder& OrderOf(Var& var);

  // With more failures and old sinks than this, an operation waits for the devices before it
  // begins.
  static constexpr size_t kMaxFailuresKept = 256;

  std::mutex mutex_;  // guards what follows, and all VarOrders
  DeviceFailures failures_;
  std::vector<std::unique_ptr<PerStream>> streams_;
  std::vector<uint64_t> host_seen_;  // by stream
  std::vector<VarOrder*> orders_;    // of all variables that have one
};

}  // namespace interp::engine
