// Rings: the groups of ranks by number, as programs name them (attribute ring_id).
//
//   auto rings = Rings::Join(make_transport, {});   // every rank of the program does
//   (*rings)->World()                               // all ranks
//   (*rings)->Add(3, {0, 2});                       // on ranks 0 and 2
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/comm/communicator.h"

namespace interp {

// Thread-safety: all methods. What Find returns lives as long as the Rings.
class Rings {
 public:
  static constexpr int kMaxRingId = 65535;

  // One rank and no others: any ring is that rank alone, and collectives are copies.
  static std::shared_ptr<Rings> Alone();
  // Meets the other ranks. Errors: those of `make`; Unimplemented where the transport has too few
  // tags.
  static absl::StatusOr<std::shared_ptr<Rings>> Join(MakeTransport make, CommOptions options);

  int rank() const { return thread_ == nullptr ? 0 : thread_->rank(); }
  int size() const { return thread_ == nullptr ? 1 : thread_->size(); }
  // In their order: 0, 1, ...
  std::vector<int> AllRanks() const;

  // All ranks.
  Communicator& World() { return *world_; }
  // All ranks, too, for the collectives of stores (core/kvstore) alone: nothing orders those and
  // what programs do on ring 0.
  Communicator& Stores() { return *stores_; }
  // A ring of these ranks in this order; a ring may be added again with the same ones. Ranks that
  // are not in it do not call. Errors: InvalidArgument for ranks that are not there or come twice,
  // and for another group under the same number; Unimplemented for Communicator::kOwnRing0 and for
  // numbers that the transport has no tags for.
  absl::Status Add(int ring_id, std::vector<int> members);
  // NotFound for a ring that was not added; ring 0 is all ranks then.
  absl::StatusOr<Communicator*> Find(int ring_id);
  bool Has(int ring_id);  // it was added

  // The ranks that have these names, for programs that name them by their addresses. All ranks
  // call this for the first time in the same order as collectives of World(), and say what they are
  // called; what comes of that stays. Errors: those of the ranks' communication; InvalidArgument
  // for names that are too long or of two ranks; NotFound for names of none.
  absl::StatusOr<std::vector<int>> RanksNamed(const std::string& own,
                                              const std::vector<std::string>& names);

  // The first of so many tags of messages of ring 0 that are the caller's alone. They are dealt
  // from the last one downwards: programs' messages use the first ones. Ranks that make the same
  // calls in the same order have the same. ResourceExhausted where none are left. GiveTags gives
  // back what TakeTags returned, when no message under way has them any more: for others as soon as
  // all that were taken later are back, too.
  absl::StatusOr<int> TakeTags(int count);
  void GiveTags(int first);

  // A value that all who ask with this key have in common, made by the first of them while nobody
  // keeps one.
  std::shared_ptr<void> Share(const void* key, const std::function<std::shared_ptr<void>()>& make);
  std::chrono::milliseconds timeout() const { return timeout_; }  // CommOptions::timeout

  // This rank has failed in what all of them do, and cannot catch up: nothing works any more, and
  // the others are told where that is possible. What follows fails with the first such error.
  void Fail(const absl::Status& error);
  // Ends the processes of all ranks, where ranks are processes. Returns where they are not.
  void Abort(int exit_code);

  // As of CommThread; alone there is nothing to note.
  void StartTrace();
  std::vector<CommSpan> StopTrace();

 private:
  Rings(std::unique_ptr<CommThread> thread, std::chrono::milliseconds timeout);

  absl::Status CheckTags(int number) const;
  absl::Status LearnNames(const std::string& own);

  const std::unique_ptr<CommThread> thread_;  // null: alone
  const std::chrono::milliseconds timeout_;
  const std::unique_ptr<Communicator> world_;
  const std::unique_ptr<Communicator> stores_;
  std::mutex naming_;  // guards what follows, over a collective
  std::optional<absl::Status> asked_;
  std::map<std::string, int> named_;
  std::mutex mutex_;  // guards what follows, not what rings hold
  std::map<int, std::unique_ptr<Communicator>> rings_;
  std::map<int, std::vector<int>> members_;
  std::map<const void*, std::weak_ptr<void>> shared_;
  struct TakenTags {
    int first = 0;
    bool in_use = true;
  };
  std::vector<TakenTags> taken_tags_;  // each from below the one before
};

// Rings as a resource of a place (core/resource/place_resources.h): what kernels find.
struct RingsHandle {
  std::shared_ptr<Rings> rings;
};

}  // namespace interp
