// StoreClient: this rank's part in a store of kind dist_async. Each key is kept by one rank, in
// turn in the order of Init: its StoreServer updates it with whatever is pushed as it comes.
//
// What a rank asks of one server is asked one after the other, in the order of the calls. So it
// sees what it has pushed itself, and of others what has come by then.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/array/array.h"
#include "core/comm/rings.h"
#include "core/kvstore/call_order.h"
#include "core/kvstore/store_listener.h"
#include "core/kvstore/store_messages.h"
#include "core/kvstore/store_server.h"

namespace interp {

// Thread-safety: all methods but Init, in which all ranks make the same calls in the same order.
// Calls push operations of the runtime's engine. What fails is told by Flush from then on, and by
// what is pulled.
class StoreClient {
 public:
  // All ranks of `rings` make theirs, and make and end several in one order. The runtime is
  // borrowed.
  static absl::StatusOr<std::unique_ptr<StoreClient>> Make(ArrayRuntime& runtime,
                                                           std::shared_ptr<Rings> rings);
  // Waits for what was pushed, as CallOrder::Finish does, and serves the others until all of them
  // have come here, or their communication has failed.
  ~StoreClient();
  StoreClient(const StoreClient&) = delete;
  StoreClient& operator=(const StoreClient&) = delete;

  // Updaters and optimizers of the keys that this rank keeps are set there.
  KVStore& kept() { return server_->store(); }
  ArrayRuntime& runtime_of_kept() { return server_->runtime(); }

  // The number of a new key, which the other calls name. Nobody asks for it before all ranks have
  // returned from Init.
  absl::StatusOr<int> Init(const std::string& name, const Tensor& value);
  // Dense values or rows of the host. With a threshold they are codes.
  absl::Status Push(int key, const Array& values, float threshold, int32_t priority);
  // Into an array of the host, dense or for rows.
  absl::Status Pull(int key, const Array& out, int32_t priority);
  absl::Status PullRows(int key, const std::vector<int64_t>& rows, const Array& out,
                        int32_t priority);
  // Waits until all servers have done what this rank has pushed. Errors: the first that this rank
  // was told of, or met.
  absl::Status Flush();

 private:
  class Asking;

  StoreClient(ArrayRuntime& runtime, std::shared_ptr<Rings> rings, Communicator& ring,
              int first_tag);
  int HomeOf(int key) const { return key % ring_.size(); }
  absl::Status Ask(int home, const StoreRequest& request, const Array& in,
                   std::vector<int64_t> rows, const Array& out);
  void SayGoodbye(int rank);
  void Note(const absl::Status& error);

  ArrayRuntime& runtime_;
  const std::shared_ptr<Rings> rings_;
  Communicator& ring_;
  const int first_tag_;
  std::vector<std::unique_ptr<CallOrder>> orders_;  // of what is asked, by rank
  int num_keys_ = 0;
  std::unique_ptr<StoreListener> listener_;
  std::unique_ptr<StoreServer> server_;  // ends first: it answers

  std::mutex mutex_;    // guards what follows
  absl::Status error_;  // the first
};

}  // namespace interp
