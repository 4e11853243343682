#include "core/comm/rings.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace interp {

std::shared_ptr<Rings> Rings::Alone() {
  return std::shared_ptr<Rings>(new Rings(nullptr, CommOptions().timeout));
}

absl::StatusOr<std::shared_ptr<Rings>> Rings::Join(MakeTransport make, CommOptions options) {
  INTERP_ASSIGN_OR_RETURN(std::unique_ptr<CommThread> thread,
                          CommThread::Start(std::move(make), options));
  std::vector<int> everybody(thread->size());
  std::iota(everybody.begin(), everybody.end(), 0);
  std::shared_ptr<Rings> rings(new Rings(std::move(thread), options.timeout));
  INTERP_RETURN_IF_ERROR(rings->Add(0, everybody));
  return rings;
}

absl::Status Rings::Add(int ring_id, std::vector<int> members) {
  if (ring_id < 0 || ring_id > kMaxRingId) {
    return InvalidArgument("ring ", ring_id, ", expected one from 0 to ", kMaxRingId);
  }
  // MPI promises 32,767; Open MPI over UCX has 8,388,607.
  const int last_tag = (ring_id + 1) * (Communicator::kNumTags + 1) - 1;
  if (thread_ != nullptr && thread_->max_tag() < last_tag) {
    return Unimplemented("ring ", ring_id, " needs messages with tags up to ", last_tag,
                         ", and this MPI has tags up to ", thread_->max_tag(),
                         "; expected a smaller number for the ring");
  }
  std::vector<int> sorted = members;
  std::ranges::sort(sorted);
  if (std::ranges::adjacent_find(sorted) != sorted.end()) {
    return InvalidArgument("a rank is twice in ring ", ring_id);
  }
  if (sorted.empty() || sorted.front() < 0 || sorted.back() >= size()) {
    return InvalidArgument("ring ", ring_id, " has ranks that are not from 0 to ", size() - 1);
  }
  if (!std::ranges::binary_search(sorted, rank())) {
    return InvalidArgument("rank ", rank(), " is not in ring ", ring_id);
  }
  const std::scoped_lock lock(mutex_);
  if (const auto it = members_.find(ring_id); it != members_.end()) {
    if (it->second == members) return absl::OkStatus();
    return InvalidArgument("ring ", ring_id, " is there already, with other ranks");
  }
  members_[ring_id] = members;
  rings_[ring_id] = std::make_unique<Communicator>(ring_id, std::move(members), thread_.get());
  return absl::OkStatus();
}

bool Rings::Has(int ring_id) {
  const std::scoped_lock lock(mutex_);
  return rings_.contains(ring_id);
}

absl::StatusOr<Communicator*> Rings::Find(int ring_id) {
  if (thread_ == nullptr && !Has(ring_id)) INTERP_RETURN_IF_ERROR(Add(ring_id, {0}));
  const std::scoped_lock lock(mutex_);
  if (const auto it = rings_.find(ring_id); it != rings_.end()) return it->second.get();
  return NotFound("there is no ring ", ring_id,
                  ": a startup program makes it (c_comm_init), or --ring ", ring_id,
                  "=RANK,RANK...");
}

absl::StatusOr<int> Rings::TakeTags(int count) {
  constexpr int kLeftForPrograms = 128;
  const std::scoped_lock lock(mutex_);
  if (num_free_tags_ - count < kLeftForPrograms) {
    return ResourceExhausted("no more tags of messages are left: too many stores over these ranks");
  }
  num_free_tags_ -= count;
  return num_free_tags_;
}

std::shared_ptr<void> Rings::Share(const void* key,
                                   const std::function<std::shared_ptr<void>()>& make) {
  const std::scoped_lock lock(mutex_);
  std::weak_ptr<void>& slot = shared_[key];
  std::shared_ptr<void> value = slot.lock();
  if (value == nullptr) {
    value = make();
    slot = value;
  }
  return value;
}

void Rings::Fail(const absl::Status& error) {
  if (thread_ != nullptr) thread_->Fail(error);
}

void Rings::Abort(int exit_code) {
  if (thread_ != nullptr) thread_->Abort(exit_code);
}

void Rings::StartTrace() {
  if (thread_ != nullptr) thread_->StartTrace();
}

std::vector<CommSpan> Rings::StopTrace() {
  return thread_ == nullptr ? std::vector<CommSpan>() : thread_->StopTrace();
}

}  // namespace interp
