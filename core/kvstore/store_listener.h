// StoreListener: hears what other ranks ask of the keys that this one keeps, hands it to the
// StoreServer, and answers.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>

#include "core/comm/rings.h"
#include "core/kvstore/store_server.h"

namespace interp {

// A request that cannot be understood, and memory that is not there, fail the rings.
class StoreListener {
 public:
  // Listens from now on. `ring` is one of `rings`; all are borrowed.
  StoreListener(Rings& rings, Communicator& ring, int first_tag, StoreServer& server);
  // REQUIRES: WaitUntilAllHaveLeft has returned, and the server has ended.
  ~StoreListener() = default;
  StoreListener(const StoreListener&) = delete;
  StoreListener& operator=(const StoreListener&) = delete;

  // Or until the ranks' communication has failed, as it does when nothing is heard for
  // CommOptions::timeout. The server gets nothing any more then.
  void WaitUntilAllHaveLeft();

 private:
  class Hearing;

  void Hear(int rank);
  void Count();
  void Answer(int rank, const absl::StatusOr<Tensor>& answer);
  void End(const absl::Status& status);

  Rings& rings_;
  Communicator& ring_;
  const int first_tag_;
  StoreServer& server_;

  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  int num_heard_ = 0;         // ranks that have not left
  int64_t num_requests_ = 0;  // of all of them
};

}  // namespace interp
