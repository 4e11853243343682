// StreamOrder: which work of streams comes before which, from what was enqueued alone.
//
// Work comes after the work before it in its stream, after what its stream waited for, and after
// what the host waited for before it enqueued it: vector clocks (Fidge, "Timestamps in
// message-passing systems that preserve the partial ordering", 1988). So a dropped wait shows in
// every order in which work runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace interp::cuda_emulation {

// One piece of work, by its stream and its number there, in 32 bits. The value 0 stands for none.
class WorkStamp {
 public:
  WorkStamp() = default;
  // REQUIRES: queue < 1024. Numbers start at 1; very high ones are all one.
  WorkStamp(uint32_t queue, uint32_t number)
      : value_(queue << kNumberBits | (number < kMostNumber ? number : kMostNumber)) {}

  uint32_t queue() const { return value_ >> kNumberBits; }
  uint32_t number() const { return value_ & kMostNumber; }
  uint32_t value() const { return value_; }
  bool operator==(const WorkStamp&) const = default;

 private:
  static constexpr uint32_t kNumberBits = 22;
  static constexpr uint32_t kMostNumber = (1u << kNumberBits) - 1;

  uint32_t value_ = 0;
};

// For each queue, how much of its work comes before.
class Moment {
 public:
  void Join(const Moment& other);
  void Set(uint32_t queue, uint32_t number);
  uint32_t Get(uint32_t queue) const { return queue < numbers_.size() ? numbers_[queue] : 0; }
  bool Covers(WorkStamp work) const {
    return work.value() == 0 || work.number() <= Get(work.queue());
  }

 private:
  std::vector<uint32_t> numbers_;
};

// A piece of work and all that comes before it, itself included.
struct StreamWork {
  WorkStamp stamp;
  std::shared_ptr<const Moment> moment;
};

// Thread-safety: none. `queue` numbers the streams of all devices.
class StreamOrder {
 public:
  StreamWork Enqueue(uint32_t queue);
  // All that comes before what is enqueued on `queue` next.
  std::shared_ptr<const Moment> Now(uint32_t queue);
  void Wait(uint32_t queue, const Moment& moment);
  // What any thread of the host enqueues from now on comes after `moment`.
  void HostWait(const Moment& moment) { host_.Join(moment); }

 private:
  Moment& OfQueue(uint32_t queue);

  std::vector<Moment> queues_;
  Moment host_;
};

}  // namespace interp::cuda_emulation
