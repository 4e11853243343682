#include "core/engine/stand_ins.h"

#include <pthread.h>

#include <system_error>

#include "core/engine/engine_core.h"

namespace interp::engine {

StandIns::StandIns(EngineCore& core, int most, int first_number)
    : core_(core), most_(most), first_number_(first_number) {
  all_.resize(most);
}

bool StandIns::StartThread() {
  if (num_threads_ == most_ || ending_) return false;
  std::unique_ptr<StandIn>& slot = all_[num_threads_];
  if (slot == nullptr) {
    slot = std::make_unique<StandIn>();
    slot->worker.core = &core_;
    slot->worker.stands_in = true;
    slot->worker.number = first_number_ + num_threads_;
    num_made_.store(num_threads_ + 1, std::memory_order_release);
  }
  try {
    slot->thread = std::thread([this, &self = *slot] { Loop(self); });
  } catch (const std::system_error&) {
    return false;
  }
  pthread_setname_np(slot->thread.native_handle(), "stand-in");
  parked_.push_back(slot.get());
  ++num_threads_;
  return true;
}

bool StandIns::Reserve() {
  if (reserved_ == num_threads_ && !StartThread()) return false;
  ++reserved_;
  return true;
}

absl::Status StandIns::Lend(WorkerGroup& group) {
  if (group.spec.own) {
    return absl::FailedPreconditionError(
        absl::StrCat("a wait inside an operation of queue '", group.spec.name,
                     "', whose one thread nobody can stand in for"));
  }
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (group.waiting.load() >= group.stand_ins.load() && !Reserve()) {
      return absl::ResourceExhaustedError(
          absl::StrCat("no thread is left to stand in for one that waits inside an operation; ",
                       reserved_, " stand in, and EngineOptions::max_stand_ins is ", most_));
    }
    // Before the look at the queue: see EngineCore::Enqueue.
    group.waiting.fetch_add(1);
  }
  if (!group.ready.seems_empty()) SendIfLacking(group);
  return absl::OkStatus();
}

void StandIns::TakeBack(WorkerGroup& group) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (Lacks(group)) --reserved_;
  group.waiting.fetch_sub(1);
}

StandIns::StandIn& StandIns::TakeParked() {
  StandIn& stand_in = *parked_.back();
  parked_.pop_back();
  stand_in.sent = true;
  return stand_in;
}

void StandIns::Send(WorkerGroup& group) {
  StandIn* sent = nullptr;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!Lacks(group)) return;
    group.stand_ins.fetch_add(1);
    sent = &TakeParked();
    sent->group = &group;
  }
  sent->wake.notify_one();
}

bool StandIns::RunBacklog(const RecordList& backlog) {
  StandIn* sent = nullptr;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!Reserve()) return false;
    sent = &TakeParked();
    sent->group = nullptr;
    sent->backlog = backlog;
  }
  sent->wake.notify_one();
  return true;
}

bool StandIns::Leaves(Worker& worker, bool has_work) {
  WorkerGroup& group = *worker.group;
  if (has_work && !IsSurplus(group)) return false;
  std::lock_guard<std::mutex> lock(mutex_);
  const bool surplus = IsSurplus(group);
  if (!surplus && has_work) return false;
  // Before the last look at the queue: who puts something there sees that a stand-in lacks.
  group.stand_ins.fetch_sub(1);
  if (surplus) {
    --reserved_;
  } else if (!group.stop.load() && !group.ready.seems_empty()) {
    group.stand_ins.fetch_add(1);
    return false;
  }
  parked_.push_back(all_[worker.number - first_number_].get());
  return true;
}

void StandIns::Loop(StandIn& self) {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    self.wake.wait(lock, [&] { return self.sent || ending_; });
    if (!self.sent) return;
    self.sent = false;
    WorkerGroup* const group = self.group;
    const RecordList backlog = self.backlog;
    lock.unlock();
    if (group != nullptr) {
      self.worker.group = group;
      self.worker.index = group->spec.num_threads + self.worker.number - first_number_;
      core_.WorkerLoop(self.worker);
    } else {
      core_.RunBacklog(backlog);
    }
    lock.lock();
    if (group != nullptr) continue;
    --reserved_;
    parked_.push_back(&self);
  }
}

void StandIns::End() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    ending_ = true;
    for (const auto& stand_in : all_) {
      if (stand_in != nullptr) stand_in->wake.notify_one();
    }
  }
  for (const auto& stand_in : all_) {
    if (stand_in != nullptr && stand_in->thread.joinable()) stand_in->thread.join();
  }
  std::lock_guard<std::mutex> lock(mutex_);
  parked_.clear();
  num_threads_ = 0;
  ending_ = false;
}

uint64_t StandIns::completed() const {
  uint64_t completed = 0;
  for (int i = 0; i < num_made_.load(std::memory_order_acquire); ++i) {
    completed += all_[i]->worker.completed.load(std::memory_order_acquire);
  }
  return completed;
}

LentPlace::LentPlace() : worker_(ThisThread().worker) {
  if (worker_ != nullptr) status_ = worker_->core->stand_ins().Lend(*worker_->group);
}

LentPlace::~LentPlace() {
  if (worker_ != nullptr && status_.ok()) worker_->core->stand_ins().TakeBack(*worker_->group);
}

}  // namespace interp::engine
