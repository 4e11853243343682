#include "core/comm/rings.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <utility>

namespace interp {

namespace {

// A rank's name as it goes to the others.
using NameBytes = std::array<char, 256>;

}  // namespace

Rings::Rings(std::unique_ptr<CommThread> thread, std::chrono::milliseconds timeout)
    : thread_(std::move(thread)),
      timeout_(timeout),
      world_(std::make_unique<Communicator>(0, AllRanks(), thread_.get())),
      stores_(std::make_unique<Communicator>(Communicator::kStores, AllRanks(), thread_.get())) {
  static_assert(Communicator::kStores > kMaxRingId);
}

std::vector<int> Rings::AllRanks() const {
  std::vector<int> ranks(size());
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

std::shared_ptr<Rings> Rings::Alone() {
  return std::shared_ptr<Rings>(new Rings(nullptr, CommOptions().timeout));
}

absl::StatusOr<std::shared_ptr<Rings>> Rings::Join(MakeTransport make, CommOptions options) {
  INTERP_ASSIGN_OR_RETURN(std::unique_ptr<CommThread> thread,
                          CommThread::Start(std::move(make), options));
  const std::chrono::milliseconds timeout = thread->options().timeout;
  std::shared_ptr<Rings> rings(new Rings(std::move(thread), timeout));
  INTERP_RETURN_IF_ERROR(rings->CheckTags(0));
  return rings;
}

// MPI promises 32,767; Open MPI over UCX has 8,388,607.
absl::Status Rings::CheckTags(int number) const {
  const int last_tag = (number + 1) * Communicator::kTagsOfRing - 1;
  if (thread_ == nullptr || thread_->max_tag() >= last_tag) return absl::OkStatus();
  return Unimplemented(RingName(number), " needs messages with tags up to ", last_tag,
                       ", and this MPI has tags up to ", thread_->max_tag(),
                       "; expected a smaller number for the ring");
}

absl::Status Rings::Add(int ring_id, std::vector<int> members) {
  if (ring_id < 0 || ring_id > kMaxRingId) {
    return InvalidArgument("ring ", ring_id, ", expected one from 0 to ", kMaxRingId);
  }
  if (ring_id == Communicator::kOwnRing0 && thread_ != nullptr) {
    return Unimplemented("ring ", ring_id, ", whose messages are those of a ring 0 of some ranks; ",
                         "expected another number");
  }
  const bool own = ring_id == 0 && members != AllRanks();
  const int number = own ? Communicator::kOwnRing0 : ring_id;
  INTERP_RETURN_IF_ERROR(CheckTags(number));
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
  if (number == 0) return absl::OkStatus();
  rings_[ring_id] = std::make_unique<Communicator>(number, std::move(members), thread_.get());
  return absl::OkStatus();
}

bool Rings::Has(int ring_id) {
  const std::scoped_lock lock(mutex_);
  return members_.contains(ring_id);
}

absl::StatusOr<Communicator*> Rings::Find(int ring_id) {
  const bool alone = thread_ == nullptr && ring_id != 0;
  if (alone) INTERP_RETURN_IF_ERROR(Add(ring_id, {0}));
  const std::scoped_lock lock(mutex_);
  if (const auto it = rings_.find(ring_id); it != rings_.end()) return it->second.get();
  if (ring_id == 0) return world_.get();
  return NotFound("there is no ring ", ring_id,
                  ": a startup program makes it (c_comm_init), or --ring ", ring_id,
                  "=RANK,RANK...");
}

absl::StatusOr<std::vector<int>> Rings::RanksNamed(const std::string& own,
                                                   const std::vector<std::string>& names) {
  const std::scoped_lock lock(naming_);
  if (!asked_.has_value()) asked_ = LearnNames(own);
  INTERP_RETURN_IF_ERROR(*asked_);
  std::vector<int> ranks;
  for (const std::string& name : names) {
    const auto it = named_.find(name);
    if (it == named_.end()) return NotFound("no rank is called '", name, "'");
    ranks.push_back(it->second);
  }
  return ranks;
}

absl::Status Rings::LearnNames(const std::string& own) {
  std::vector<NameBytes> names(size());
  // One that is too long goes as it is cut off, so that all ranks find it out.
  names[rank()].fill(0);
  std::memcpy(names[rank()].data(), own.data(), std::min(own.size(), sizeof(NameBytes)));
  const NameBytes mine = names[rank()];
  INTERP_RETURN_IF_ERROR(world_->Run({.kind = CommKind::kAllGather,
                                      .count = sizeof(NameBytes),
                                      .in = mine.data(),
                                      .out = names.data(),
                                      .name = "names of ranks"}));
  std::map<std::string, int> named;
  for (int rank = 0; rank < size(); ++rank) {
    if (names[rank].back() != 0) {
      return InvalidArgument("rank ", rank, " has a name of ", sizeof(NameBytes), " bytes or more");
    }
    const auto [other, added] = named.emplace(names[rank].data(), rank);
    if (added) continue;
    return InvalidArgument("ranks ", other->second, " and ", rank, " are both called '",
                           other->first,
                           "': expected the program of each rank, as fleet writes it");
  }
  named_ = std::move(named);
  return absl::OkStatus();
}

absl::StatusOr<int> Rings::TakeTags(int count) {
  constexpr int kLeftForPrograms = 128;
  const std::scoped_lock lock(mutex_);
  const int num_free = taken_tags_.empty() ? Communicator::kNumTags : taken_tags_.back().first;
  if (num_free - count < kLeftForPrograms) {
    return ResourceExhausted("no more tags of messages are left: too many stores over these ranks");
  }
  taken_tags_.push_back({.first = num_free - count});
  return num_free - count;
}

void Rings::GiveTags(int first) {
  const std::scoped_lock lock(mutex_);
  const auto given = std::ranges::find(taken_tags_, first, &TakenTags::first);
  if (given != taken_tags_.end()) given->in_use = false;
  while (!taken_tags_.empty() && !taken_tags_.back().in_use) taken_tags_.pop_back();
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
