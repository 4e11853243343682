// StoreServer: keeps the values of some keys for all ranks of a store of kind dist_async. It is a
// store of kind local on a runtime of its own: so it makes room in no queue, and waits for none, of
// those that ask.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "core/array/array_runtime.h"
#include "core/kvstore/kvstore.h"
#include "core/kvstore/store_messages.h"

namespace interp {

// Thread-safety: all methods.
class StoreServer {
 public:
  struct Key {
    std::string name;
    Shape shape;
    DType dtype = DType::kUndefined;
    absl::Status error = {};  // of the first push that was refused
  };
  struct Task {
    StoreRequest request;
    Tensor values = {};  // or codes
    std::vector<int64_t> rows = {};
    // Gets what was asked for, once: on a thread of the server, and so not for long. Null where
    // nothing is to be answered.
    std::function<void(absl::StatusOr<Tensor>)> answer = nullptr;
    // When the next task of the same rank may come; may be null.
    std::function<void()> then = nullptr;
  };

  // With the ops of `like`.
  static absl::StatusOr<std::unique_ptr<StoreServer>> Make(const ArrayRuntime& like);
  // Does what was submitted.
  ~StoreServer();
  StoreServer(const StoreServer&) = delete;
  StoreServer& operator=(const StoreServer&) = delete;

  // Updaters and optimizers are set there.
  KVStore& store() { return *store_; }
  ArrayRuntime& runtime() { return *runtime_; }
  absl::Status Init(int key, const std::string& name, const Tensor& value);
  // NotFound for a number of a key that is not kept here.
  absl::StatusOr<Key> Find(int number);
  // Tasks are begun in the order of the calls. What fails in a push is told by all later flushes,
  // and by pulls of the key.
  void Submit(Task task);

 private:
  StoreServer() = default;
  void Work();
  void Refuse(const Task& task, const absl::Status& error);
  absl::Status Handle(const Task& task);
  absl::Status Push(const Key& key, const Task& task);
  absl::Status Pull(const Key& key, const Task& task);
  absl::Status Answer(const Array& array, const Task& task);

  std::unique_ptr<ArrayRuntime> runtime_;
  std::unique_ptr<KVStore> store_;
  absl::Status error_;  // the first; of the thread alone

  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::vector<Key> keys_;  // by number; those that are kept elsewhere have no dtype
  std::deque<Task> tasks_;
  bool stop_ = false;

  std::thread thread_;
};

}  // namespace interp
