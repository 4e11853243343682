#include "core/engine/stream_order.h"

#include <algorithm>
#include <utility>

namespace interp::engine {

Var::~Var() { delete order.load(std::memory_order_relaxed); }

absl::Status StreamOrder::AddStream(Device& device, Stream& stream) {
  auto added = std::make_unique<PerStream>();
  added->stream = &stream;
  added->device = &device;
  for (std::unique_ptr<DeviceEvent>& event : added->events) {
    INTERP_ASSIGN_OR_RETURN(event, device.CreateEvent());
  }
  streams_.push_back(std::move(added));
  failures_.AddStream();
  for (auto& s : streams_) s->seen.resize(streams_.size());
  host_seen_.resize(streams_.size());
  return absl::OkStatus();
}

void StreamOrder::Collect(const VarOrder& order, bool readers, int own,
                          std::vector<StreamUse>& uses) {
  if (order.writer.stream >= 0 && order.writer.stream != own) uses.push_back(order.writer);
  if (!readers) return;
  for (const StreamUse& use : order.readers) {
    if (use.stream != own) uses.push_back(use);
  }
}

StreamOrder::Covering StreamOrder::EventFor(StreamUse use) const {
  const PerStream& s = *streams_[use.stream];
  const uint64_t oldest = s.issued < kEventsKept ? 1 : s.issued - kEventsKept + 1;
  const uint64_t ticket = std::max(use.ticket, oldest);
  return {*s.events[ticket % kEventsKept], ticket};
}

absl::StatusOr<bool> StreamOrder::WaitOnHost(const std::vector<StreamUse>& uses,
                                             std::unique_lock<std::mutex>& lock,
                                             Deadline deadline) {
  absl::Status loss;
  for (const StreamUse& use : uses) {
    if (host_seen_[use.stream] >= use.ticket) continue;
    const Covering covering = EventFor(use);
    lock.unlock();
    // It may be recorded anew meanwhile, for later work: that is a longer wait, no wrong one.
    const absl::StatusOr<bool> done = covering.event.SynchronizeUntil(deadline);
    lock.lock();
    if (!done.ok()) {
      loss.Update(done.status());
      continue;
    }
    if (!*done) return false;
    host_seen_[use.stream] = std::max(host_seen_[use.stream], covering.ticket);
  }
  if (!loss.ok()) return loss;
  return true;
}

bool StreamOrder::IsOfAnotherKind(const PerStream& own, const StreamUse& use) const {
  return streams_[use.stream]->device->place().kind != own.device->place().kind;
}

absl::Status StreamOrder::WaitForOtherKinds(const PerStream& own,
                                            const std::vector<StreamUse>& uses,
                                            std::unique_lock<std::mutex>& lock) {
  std::vector<StreamUse> others;
  for (const StreamUse& use : uses) {
    if (IsOfAnotherKind(own, use)) others.push_back(use);
  }
  return others.empty() ? absl::OkStatus() : WaitOnHost(others, lock, Deadline::max()).status();
}

void StreamOrder::Begin(Record& record) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (failures_.num_kept() > kMaxFailuresKept) {
    lock.unlock();
    Synchronize();
    lock.lock();
  }
  record.issue = failures_.Begin(record.name, record.number);
  record.flags |= kBegun;
}

void StreamOrder::Skip(Record& record) {
  std::lock_guard<std::mutex> lock(mutex_);
  failures_.End(record.issue);
}

bool StreamOrder::Concerns(const DeviceFailures::Failure& failure, const StreamUse& use) const {
  if (use.issue < failure.first || use.issue > failure.last) return false;
  const PerStream& stream = *streams_[use.stream];
  return stream.device == streams_[failure.stream]->device || stream.last_joined >= failure.first;
}

void StreamOrder::NoticeFailures(const absl::Status& waited) {
  for (const DeviceFailures::Failure& failure : failures_.Notice()) {
    for (VarOrder* order : orders_) {
      if (order->writer.stream >= 0 && Concerns(failure, order->writer)) {
        order->error = failure.error;
      }
    }
    const Device& device = *streams_[failure.stream]->device;
    if (!device.status().ok()) KeepLoss(device, failure.error);
  }
  if (waited.ok()) return;
  for (size_t i = 0; i < streams_.size(); ++i) {
    if (!streams_[i]->loss && !streams_[i]->device->status().ok()) NoticeLoss(static_cast<int>(i));
  }
}

void StreamOrder::KeepLoss(const Device& device, const ErrorRef& error) {
  for (auto& stream : streams_) {
    if (stream->device == &device && !stream->loss) stream->loss = error;
  }
}

void StreamOrder::NoticeLoss(int stream) {
  const Device& device = *streams_[stream]->device;
  const auto unfinished = [&](const StreamUse& use) {
    return use.stream >= 0 && use.ticket > host_seen_[use.stream];
  };
  bool any = false;
  for (size_t i = 0; i < streams_.size(); ++i) {
    any |= streams_[i]->device == &device && streams_[i]->issued > host_seen_[i];
  }
  if (!any) return;
  Issue first = failures_.last_issued();
  for (const VarOrder* order : orders_) {
    if (unfinished(order->writer) && streams_[order->writer.stream]->device == &device) {
      first = std::min(first, order->writer.issue);
    }
  }
  const DeviceFailures::Failure loss = failures_.NoteLoss(stream, first, device.status());
  KeepLoss(device, loss.error);
  for (VarOrder* order : orders_) {
    if (unfinished(order->writer) && Concerns(loss, order->writer) && !order->error) {
      order->error = loss.error;
    }
  }
}

VarOrder& StreamOrder::OrderOf(Var& var) {
  VarOrder* order = var.order.load(std::memory_order_relaxed);
  if (order == nullptr) {
    order = new VarOrder;
    order->index = orders_.size();
    orders_.push_back(order);
    var.order.store(order, std::memory_order_release);
  }
  return *order;
}

Work StreamOrder::WorkOf(const Record& record) {
  std::lock_guard<std::mutex> lock(mutex_);
  return failures_.WorkOf(record.stream, record.issue);
}

ErrorRef StreamOrder::InheritedError(Record& record) {
  Access* const begin = record.accesses();
  for (Access* a = begin; a != begin + record.num_accesses; ++a) {
    const VarOrder* order = a->var->order.load(std::memory_order_relaxed);
    if (order == nullptr || a->kind == AccessKind::kWrite) continue;
    if (order->error) return order->error;
  }
  return {};
}

ErrorRef StreamOrder::Before(Record& record) {
  record.flags |= kOrdered;
  Access* const begin = record.accesses();
  Access* const end = begin + record.num_accesses;
  if (std::none_of(begin, end, [](const Access& a) {
        return a.var->order.load(std::memory_order_acquire) != nullptr;
      })) {
    return {};
  }
  std::unique_lock<std::mutex> lock(mutex_);
  std::vector<StreamUse> uses;
  for (Access* a = begin; a != end; ++a) {
    const VarOrder* order = a->var->order.load(std::memory_order_relaxed);
    if (order != nullptr) Collect(*order, Writes(a->kind), record.stream, uses);
  }
  if (record.stream < 0) {
    return ErrorAfter(WaitOnHost(uses, lock, Deadline::max()).status(), record);
  }
  // What fails leaves the rest to be waited for: the operation may run nevertheless, and whoever
  // comes after it on its stream relies on that.
  PerStream& own = *streams_[record.stream];
  absl::Status waited = WaitForOtherKinds(own, uses, lock);
  for (const StreamUse& use : uses) waited.Update(WaitInStream(own, use, record.issue));
  return ErrorAfter(waited, record);
}

absl::Status StreamOrder::WaitInStream(PerStream& own, const StreamUse& use, Issue issue) {
  const PerStream& other = *streams_[use.stream];
  own.last_joined =
      std::max(own.last_joined, other.device != own.device ? issue : other.last_joined);
  if (own.seen[use.stream] >= use.ticket || host_seen_[use.stream] >= use.ticket ||
      IsOfAnotherKind(own, use)) {
    return absl::OkStatus();
  }
  const Covering covering = EventFor(use);
  INTERP_RETURN_IF_ERROR(own.stream->Wait(covering.event));
  own.seen[use.stream] = covering.ticket;
  return absl::OkStatus();
}

ErrorRef StreamOrder::ErrorAfter(const absl::Status& waited, Record& record) {
  NoticeFailures(waited);
  ErrorRef error = InheritedError(record);
  if (error || waited.ok()) return error;
  return failures_.ErrorOfLoss(waited, record.name, record.number);
}

void StreamOrder::AfterHost(Record& record) {
  Access* const begin = record.accesses();
  for (Access* a = begin; a != begin + record.num_accesses; ++a) {
    VarOrder* order = a->var->order.load(std::memory_order_acquire);
    if (order == nullptr || !Writes(a->kind)) continue;
    std::lock_guard<std::mutex> lock(mutex_);
    order->writer = {};
    order->readers.clear();
    if (a->kind == AccessKind::kWrite) order->error = {};
  }
}

void StreamOrder::After(Record& record) {
  Access* const begin = record.accesses();
  Access* const end = begin + record.num_accesses;
  std::lock_guard<std::mutex> lock(mutex_);
  PerStream& own = *streams_[record.stream];
  const StreamUse use{record.stream, ++own.issued, record.issue};
  // It fails for a lost device alone, of which those are told who wait for the event.
  own.stream->Record(*own.events[use.ticket % kEventsKept]).IgnoreError();
  for (Access* a = begin; a != end; ++a) {
    VarOrder& order = OrderOf(*a->var);
    if (Writes(a->kind)) {
      order.writer = use;
      order.readers.clear();
      ErrorRef error =
          own.loss ? own.loss
                   : failures_.ErrorOf([&](const auto& failure) { return Concerns(failure, use); });
      if (error || a->kind == AccessKind::kWrite) order.error = std::move(error);
      continue;
    }
    const auto same = std::find_if(order.readers.begin(), order.readers.end(),
                                   [&](const StreamUse& u) { return u.stream == use.stream; });
    if (same == order.readers.end()) {
      order.readers.push_back(use);
    } else {
      *same = use;
    }
  }
  failures_.End(record.issue);
}

bool StreamOrder::WaitOnHost(Var& var, bool readers, Deadline deadline, ErrorRef& error) {
  VarOrder* const order = var.order.load(std::memory_order_acquire);
  if (order == nullptr) return true;
  std::unique_lock<std::mutex> lock(mutex_);
  std::vector<StreamUse> uses;
  Collect(*order, readers, /*own=*/-1, uses);
  const absl::StatusOr<bool> done = WaitOnHost(uses, lock, deadline);
  if (done.ok() && !*done) return false;
  NoticeFailures(done.status());
  // Readers that are lost spoil nothing.
  if (!done.ok() && !order->error && order->writer.stream >= 0) {
    order->error = failures_.ErrorOfLoss(done.status(), "of a device", 0);
  }
  error = order->error;
  return true;
}

ErrorRef StreamOrder::NoticedError(const VarOrder& order) {
  std::lock_guard<std::mutex> lock(mutex_);
  NoticeFailures(absl::OkStatus());
  return order.error;
}

void StreamOrder::Forget(Var& var) {
  const std::unique_ptr<VarOrder> order(var.order.load(std::memory_order_acquire));
  if (order == nullptr) return;
  var.order.store(nullptr, std::memory_order_relaxed);
  std::lock_guard<std::mutex> lock(mutex_);
  orders_[order->index] = orders_.back();
  orders_[order->index]->index = order->index;
  orders_.pop_back();
}

bool StreamOrder::Synchronize(Deadline deadline) {
  std::unique_lock<std::mutex> lock(mutex_);
  const Issue ended = failures_.LastEnded();
  std::vector<StreamUse> uses;
  for (size_t i = 0; i < streams_.size(); ++i) {
    uses.push_back({static_cast<int16_t>(i), streams_[i]->issued});
  }
  const absl::StatusOr<bool> done = WaitOnHost(uses, lock, deadline);
  if (done.ok() && !*done) return false;
  NoticeFailures(done.status());
  failures_.ForgetSinks(ended);
  return true;
}

}  // namespace interp::engine
