#include "core/kvstore/store_server.h"

#include <utility>

#include "core/base/catching.h"
#include "core/kvstore/two_bit.h"

namespace interp {

absl::StatusOr<std::unique_ptr<StoreServer>> StoreServer::Make(const ArrayRuntime& like) {
  std::unique_ptr<StoreServer> server(new StoreServer());
  INTERP_ASSIGN_OR_RETURN(
      server->runtime_,
      ArrayRuntime::Create({.ops = &like.ops(), .num_threads = like.num_threads()}));
  INTERP_ASSIGN_OR_RETURN(server->store_, KVStore::Create(*server->runtime_, "local"));
  INTERP_RETURN_IF_ERROR(Catching([&] {
    server->thread_ = std::thread([raw = server.get()] { raw->Work(); });
    return absl::OkStatus();
  }));
  return server;
}

StoreServer::~StoreServer() {
  {
    const std::scoped_lock lock(mutex_);
    stop_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
  if (runtime_ != nullptr) runtime_->WaitForAll().IgnoreError();
}

absl::Status StoreServer::Init(int key, const std::string& name, const Tensor& value) {
  INTERP_ASSIGN_OR_RETURN(const Array array, runtime_->FromTensor(value));
  INTERP_RETURN_IF_ERROR(store_->Init(name, array));
  const std::scoped_lock lock(mutex_);
  if (static_cast<size_t>(key) >= keys_.size()) keys_.resize(static_cast<size_t>(key) + 1);
  keys_[static_cast<size_t>(key)] = {.name = name, .shape = value.shape, .dtype = value.dtype};
  return absl::OkStatus();
}

void StoreServer::Submit(Task task) {
  const std::scoped_lock lock(mutex_);
  tasks_.push_back(std::move(task));
  changed_.notify_all();
}

void StoreServer::Work() {
  for (;;) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return stop_ || !tasks_.empty(); });
    if (tasks_.empty()) return;
    const Task task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    const absl::Status status = Catching([&] { return Handle(task); });
    if (!status.ok()) Refuse(task, status);
    if (task.then != nullptr) task.then();
  }
}

void StoreServer::Refuse(const Task& task, const absl::Status& error) {
  if (task.answer != nullptr) return task.answer(error);
  error_.Update(error);
  const std::scoped_lock lock(mutex_);
  const auto number = static_cast<size_t>(task.request.key);
  if (number < keys_.size()) keys_[number].error.Update(error);
}

absl::StatusOr<StoreServer::Key> StoreServer::Find(int number) {
  const std::scoped_lock lock(mutex_);
  const auto i = static_cast<size_t>(number);
  if (number < 0 || i >= keys_.size() || keys_[i].dtype == DType::kUndefined) {
    return NotFound("key number ", number, " is not kept here");
  }
  return keys_[i];
}

absl::Status StoreServer::Handle(const Task& task) {
  if (task.request.verb == StoreVerb::kFlush) {
    error_.Update(runtime_->WaitForAll());
    task.answer(error_.ok() ? absl::StatusOr<Tensor>(Tensor()) : error_);
    return absl::OkStatus();
  }
  INTERP_ASSIGN_OR_RETURN(const Key key, Find(task.request.key));
  switch (task.request.verb) {
    case StoreVerb::kPull:
    case StoreVerb::kPullRows:
      return Pull(key, task);
    default:
      return Push(key, task);
  }
}

absl::Status StoreServer::Push(const Key& key, const Task& task) {
  const StoreRequest& request = task.request;
  if (request.verb == StoreVerb::kPushRows) {
    INTERP_ASSIGN_OR_RETURN(const Array rows,
                            runtime_->FromRows(task.values, {task.rows, key.shape[0]}));
    return store_->Push(key.name, {rows}, request.priority);
  }
  INTERP_ASSIGN_OR_RETURN(Array pushed, runtime_->Adopt(task.values));
  if (request.verb == StoreVerb::kPushCodes) {
    INTERP_ASSIGN_OR_RETURN(pushed,
                            ValuesOfCodes(pushed, key.shape, request.threshold, request.priority));
  }
  return store_->Push(key.name, {pushed}, request.priority);
}

absl::Status StoreServer::Pull(const Key& key, const Task& task) {
  INTERP_RETURN_IF_ERROR(key.error);
  const int32_t priority = task.request.priority;
  if (task.request.verb == StoreVerb::kPullRows) {
    INTERP_ASSIGN_OR_RETURN(const Array out, runtime_->NewRows(key.shape, key.dtype));
    INTERP_RETURN_IF_ERROR(store_->PullRows(key.name, task.rows, out, priority));
    return Answer(out, task);
  }
  INTERP_ASSIGN_OR_RETURN(const Array out, runtime_->New(key.shape, key.dtype));
  INTERP_RETURN_IF_ERROR(store_->Pull(key.name, {out}, priority));
  return Answer(out, task);
}

// Answers where the values are spoilt, too.
absl::Status StoreServer::Answer(const Array& array, const Task& task) {
  const engine::Variable read = array.variable();
  return runtime_->engine().Push(
      [array, answer = task.answer] {
        const engine::ErrorRef spoilt = array.runtime().engine().ErrorOf(array.variable());
        if (spoilt) {
          answer(Annotate(spoilt->status, absl::StrCat("operation '", spoilt->operation, "'")));
        } else if (array.is_rows()) {
          answer(ArrayAccess::chunk(array)->value.tensor);
        } else {
          answer(ArrayAccess::Readable(array));
        }
        return absl::OkStatus();
      },
      {.reads = {&read, 1}},
      {.name = "answer a pull",
       .property = engine::Property::kNoSkip,
       .priority = task.request.priority});
}

}  // namespace interp
