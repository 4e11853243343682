// Rings: the groups of ranks by number, as programs name them (attribute ring_id).
//
//   auto rings = Rings::Join(make_transport, {});   // every rank of the program does
//   (*rings)->Find(0)                               // all ranks
//   (*rings)->Add(3, {0, 2});                       // on ranks 0 and 2
#pragma once

#include <map>
#include <memory>
#include <mutex>
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

  // A ring of these ranks in this order; a ring may be added again with the same ones. Ranks that
  // are not in it do not call. Errors: InvalidArgument for ranks that are not there or come twice,
  // and for another group under the same number.
  absl::Status Add(int ring_id, std::vector<int> members);
  // NotFound for a ring that was not added, but for ring 0.
  absl::StatusOr<Communicator*> Find(int ring_id);
  bool Has(int ring_id);

  // This rank has failed in what all of them do, and cannot catch up: nothing works any more, and
  // the others are told where that is possible. What follows fails with the first such error.
  void Fail(const absl::Status& error);
  // Ends the processes of all ranks, where ranks are processes. Returns where they are not.
  void Abort(int exit_code);

  // As of CommThread; alone there is nothing to note.
  void StartTrace();
  std::vector<CommSpan> StopTrace();

 private:
  explicit Rings(std::unique_ptr<CommThread> thread) : thread_(std::move(thread)) {}

  const std::unique_ptr<CommThread> thread_;  // null: alone
  std::mutex mutex_;                          // guards rings_, not what they hold
  std::map<int, std::unique_ptr<Communicator>> rings_;
  std::map<int, std::vector<int>> members_;
};

// Rings as a resource of a place (core/resource/place_resources.h): what kernels find.
struct RingsHandle {
  std::shared_ptr<Rings> rings;
};

}  // namespace interp
