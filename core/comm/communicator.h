// Communicator: a ring, which is a group of ranks that talk with each other. The ring of all ranks
// is ring 0 unless a program makes another one of that number; Rings (core/comm/rings.h) has them
// by number.
//
// Collectives of one ring happen in the order of the calls, which is to be the same on all its
// ranks. Messages match by sender, receiver and tag, in order.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/buffer.h"
#include "core/comm/collectives.h"
#include "core/comm/comm_thread.h"
#include "core/status.h"

namespace interp {

// Thread-safety: all methods; calls whose order matters come from one thread, or one after another.
class Communicator {
 public:
  // Tags of messages are less than this.
  static constexpr int kNumTags = 1022;
  // What a ring has of the transport's tags: one of its collectives, those of its messages, and one
  // that ring 0 leaves to the stores' collectives.
  static constexpr int kTagsOfRing = kNumTags + 2;
  // The number of a ring 0 that a program makes of some ranks, or in another order.
  static constexpr int kOwnRing0 = 8191;
  // The number of the stores' ring (Rings::Stores), which has collectives alone. It needs no tags
  // but those of ring 0, as some transports have few.
  static constexpr int kStores = 65536;

  // `members`: the ranks of the ring in its order, with that of `thread` among them. A null
  // `thread`, which is borrowed otherwise: there is one rank, and nothing to talk.
  Communicator(int number, std::vector<int> members, CommThread* thread);

  // By which its messages are told from those of other rings.
  int number() const { return number_; }
  int rank() const { return rank_; }  // in the ring
  int size() const { return static_cast<int>(members_.size()); }
  const std::vector<int>& members() const { return members_; }  // ranks, in the ring's order

  // Starts a call and returns at once; its memory stays as it is until the request is done. Where
  // the ranks' communication fails, messages under way may still touch it: `memory`, that of `in`
  // and `out`, is kept until they are over.
  // Errors, which end the others' calls, too, as they do not come to meet this one: those of
  // MakeSchedule; InvalidArgument for a tag out of range.
  absl::StatusOr<std::shared_ptr<CommRequest>> Start(const CommCall& call,
                                                     std::vector<BufferRef> memory = {});
  // The same to its end. Errors: those of the ranks' communication (CommThread), too.
  absl::Status Run(const CommCall& call, std::vector<BufferRef> memory);
  // On copies of what `in` and `out` hold, for little that lies anywhere. `out` changes only where
  // all is well. Errors: ResourceExhausted, too.
  absl::Status Run(const CommCall& call);

  // Where CommOptions::check is set, compares a collective over the ranks as Start does, and does
  // nothing else: something other than messages carries it out. Errors: as Run.
  absl::Status Compare(const CommCall& call);
  // CommThread::CheckPeers of the ring's ranks; OK alone.
  absl::Status CheckPeers();
  // As Rings::Fail.
  void Fail(const absl::Status& error);
  // A collective for messages: "c_allreduce on ring 0, number 2".
  std::string Describe(const CommCall& call, int64_t number) const;

  // Starts a call that another op of the program waits for (WaitFor). `memory` is kept until it is
  // done, also where nobody comes to wait.
  absl::Status Launch(const CommCall& call, std::vector<BufferRef> memory);
  // Waits for the launched calls with that `out`; null: for all.
  absl::Status WaitFor(const void* out);

 private:
  struct Launched {
    const void* out = nullptr;
    std::shared_ptr<CommRequest> request;
  };

  absl::StatusOr<Schedule> ScheduleOf(const CommCall& call) const;
  absl::Status RunOnCopies(CommCall call, const CommCounts& counts);
  absl::Status AddCheck(const CommCall& call, CommJob& job);
  absl::StatusOr<std::shared_ptr<CommRequest>> Submit(const CommCall& call, CommJob job);

  const int number_;
  const std::vector<int> members_;
  CommThread* const thread_;
  int rank_ = 0;

  std::mutex mutex_;         // guards what follows
  int64_t num_started_ = 0;  // collectives
  std::vector<Launched> launched_;
};

// A ring in messages: "ring 3".
std::string RingName(int number);

}  // namespace interp
