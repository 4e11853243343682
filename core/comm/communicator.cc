#include "core/comm/communicator.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <type_traits>
#include <utility>

#include "absl/strings/string_view.h"

namespace interp {
namespace {

// What all ranks of a ring have in common in one collective, as they tell each other.
struct CallHeader {
  int64_t number = 0;
  int64_t count = 0;
  int32_t root = 0;
  CommKind kind = CommKind::kBarrier;
  DType dtype = DType::kUndefined;
  ReduceKind reduce = ReduceKind::kSum;
  uint64_t key = 0;  // of a store, as a number; elsewhere ranks may call a collective differently
  std::array<char, 41> name = {};

  bool Matches(const CallHeader& other) const {
    return number == other.number && count == other.count && root == other.root &&
           kind == other.kind && dtype == other.dtype && reduce == other.reduce && key == other.key;
  }
};
static_assert(std::is_trivially_copyable_v<CallHeader>);

// FNV-1a: the same in all processes, and of all of a name where the header has its beginning.
uint64_t NumberOf(absl::string_view name) {
  uint64_t number = 0xcbf29ce484222325;
  for (const char c : name) number = (number ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  return number;
}

CallHeader HeaderOf(const CommCall& call, int64_t number, bool has_key) {
  CallHeader header{.number = number,
                    .count = call.counts.empty() ? call.count : 0,
                    .root = call.root,
                    .kind = call.kind,
                    .dtype = call.dtype,
                    .reduce = call.reduce,
                    .key = has_key ? NumberOf(call.name) : 0};
  const size_t length = std::min(call.name.size(), header.name.size() - 1);
  std::memcpy(header.name.data(), call.name.data(), length);
  return header;
}

std::string ToText(const CallHeader& header) {
  std::string text = absl::StrCat("number ", header.number, ", ", Name(header.kind));
  if (Reduces(header.kind)) absl::StrAppend(&text, " ", Name(header.reduce));
  absl::StrAppend(&text, " of ", header.count, " ", Name(header.dtype));
  if (header.root != 0) absl::StrAppend(&text, " at root ", header.root);
  std::array<char, 41> name = header.name;
  name.back() = 0;
  if (name[0] != 0) absl::StrAppend(&text, " (", name.data(), ")");
  return text;
}

}  // namespace

std::string RingName(int number) {
  if (number == Communicator::kOwnRing0) return "the program's own ring 0";
  if (number == Communicator::kStores) return "the stores' ring";
  return absl::StrCat("ring ", number);
}

Communicator::Communicator(int number, std::vector<int> members, CommThread* thread)
    : number_(number), members_(std::move(members)), thread_(thread) {
  if (thread_ == nullptr) return;
  const auto it = std::find(members_.begin(), members_.end(), thread_->rank());
  rank_ = static_cast<int>(it - members_.begin());
}

std::string Communicator::Describe(const CommCall& call, int64_t number) const {
  constexpr size_t kMostBytes = 80;  // many keys may go together
  std::string text(call.name.empty() ? Name(call.kind) : absl::string_view(call.name));
  if (text.size() > kMostBytes) text.replace(kMostBytes - 3, text.npos, "...");
  absl::StrAppend(&text, " on ", RingName(number_));
  if (!IsPointToPoint(call.kind)) absl::StrAppend(&text, ", number ", number);
  return text;
}

absl::StatusOr<Schedule> Communicator::ScheduleOf(const CommCall& call) const {
  if (call.tag < 0 || call.tag >= kNumTags) {
    return InvalidArgument("tag ", call.tag, ", expected one from 0 to ", kNumTags - 1);
  }
  if (number_ == kStores && IsPointToPoint(call.kind)) {
    return InvalidArgument("a message on ", RingName(number_), ", which has collectives alone");
  }
  return MakeSchedule(call, rank_, size());
}

absl::StatusOr<std::shared_ptr<CommRequest>> Communicator::Start(const CommCall& call,
                                                                 std::vector<BufferRef> memory) {
  CommJob job;
  absl::StatusOr<Schedule> schedule = ScheduleOf(call);
  if (!schedule.ok()) {
    // The others do not know of it.
    if (thread_ != nullptr) thread_->Fail(schedule.status());
    return schedule.status();
  }
  job.schedule = *std::move(schedule);
  job.memory = std::move(memory);
  job.patient = call.patient;
  if (thread_ == nullptr) {
    for (const Round& round : job.schedule) {
      if (round.then != nullptr) INTERP_RETURN_IF_ERROR(round.then());
    }
    auto request = std::make_shared<CommRequest>();
    request->Finish(absl::OkStatus());
    return request;
  }
  return Submit(call, std::move(job));
}

absl::StatusOr<std::shared_ptr<CommRequest>> Communicator::Submit(const CommCall& call,
                                                                  CommJob job) {
  job.members = members_;
  job.tag = number_ == kStores ? kTagsOfRing - 1 : number_ * kTagsOfRing;
  const std::scoped_lock lock(mutex_);
  if (IsPointToPoint(call.kind)) {
    job.tag += 1 + call.tag;
  } else {
    job.lane = number_;
    INTERP_RETURN_IF_ERROR(AddCheck(call, job));
    ++num_started_;
  }
  job.what = Describe(call, num_started_);
  return thread_->Submit(std::move(job));
}

absl::Status Communicator::Compare(const CommCall& call) {
  if (thread_ == nullptr || !thread_->options().check) return absl::OkStatus();
  CommJob job;
  job.patient = call.patient;
  INTERP_ASSIGN_OR_RETURN(const auto request, Submit(call, std::move(job)));
  return request->Wait();
}

absl::Status Communicator::CheckPeers() {
  return thread_ == nullptr ? absl::OkStatus() : thread_->CheckPeers(members_);
}

void Communicator::Fail(const absl::Status& error) {
  if (thread_ != nullptr) thread_->Fail(error);
}

// In front: each rank tells all others what it is about to do.
absl::Status Communicator::AddCheck(const CommCall& call, CommJob& job) {
  if (!thread_->options().check || size() == 1) return absl::OkStatus();
  const auto headers = std::make_shared<std::vector<CallHeader>>(size());
  (*headers)[rank_] = HeaderOf(call, num_started_ + 1, number_ == kStores);
  Round check;
  for (int peer = 0; peer < size(); ++peer) {
    if (peer == rank_) continue;
    check.transfers.push_back({true, peer, &(*headers)[rank_], sizeof(CallHeader)});
    check.transfers.push_back({false, peer, &(*headers)[peer], sizeof(CallHeader)});
  }
  check.then = [headers, rank = rank_, members = members_, ring = number_] {
    const CallHeader& own = (*headers)[rank];
    for (size_t peer = 0; peer < headers->size(); ++peer) {
      const CallHeader& other = (*headers)[peer];
      if (own.Matches(other)) continue;
      return absl::FailedPreconditionError(
          absl::StrCat("ranks differ in what they do on ", RingName(ring), ": rank ", members[rank],
                       " is at ", ToText(own), ", rank ", members[peer], " at ", ToText(other)));
    }
    return absl::OkStatus();
  };
  job.schedule.insert(job.schedule.begin(), std::move(check));
  return absl::OkStatus();
}

absl::Status Communicator::Run(const CommCall& call, std::vector<BufferRef> memory) {
  INTERP_ASSIGN_OR_RETURN(const std::shared_ptr<CommRequest> request,
                          Start(call, std::move(memory)));
  return request->Wait();
}

absl::Status Communicator::Run(const CommCall& call) {
  // Alone nothing is left under way, and what cannot be is for Start to refuse.
  const bool starts = thread_ != nullptr && CheckCall(call, rank_, size()).ok();
  return starts ? RunOnCopies(call, CountsOf(call, rank_, size())) : Run(call, {});
}

absl::Status Communicator::RunOnCopies(CommCall call, const CommCounts& counts) {
  const size_t in_bytes = static_cast<size_t>(counts.in) * SizeOf(call.dtype);
  const size_t out_bytes = static_cast<size_t>(counts.out) * SizeOf(call.dtype);
  absl::StatusOr<BufferRef> in = SystemAllocator().Allocate(in_bytes);
  absl::StatusOr<BufferRef> out = SystemAllocator().Allocate(out_bytes);
  for (const auto* const buffer : {&in, &out}) {
    if (buffer->ok()) continue;
    Fail(buffer->status());  // the others wait for this rank's part
    return buffer->status();
  }
  if (in_bytes > 0) std::memcpy((*in)->data, call.in, in_bytes);
  void* const result = call.out;
  call.in = (*in)->data;
  call.out = (*out)->data;
  INTERP_RETURN_IF_ERROR(Run(call, {*in, *out}));
  if (out_bytes > 0) std::memcpy(result, (*out)->data, out_bytes);
  return absl::OkStatus();
}

absl::Status Communicator::Launch(const CommCall& call, std::vector<BufferRef> memory) {
  INTERP_ASSIGN_OR_RETURN(std::shared_ptr<CommRequest> request, Start(call, std::move(memory)));
  const std::scoped_lock lock(mutex_);
  // Left by runs that failed before they came to wait.
  std::erase_if(launched_,
                [&](const Launched& old) { return old.request->done() && old.out == call.out; });
  launched_.push_back({call.out, std::move(request)});
  return absl::OkStatus();
}

absl::Status Communicator::WaitFor(const void* out) {
  std::vector<Launched> mine;
  {
    const std::scoped_lock lock(mutex_);
    const auto others = [out](const Launched& one) { return out != nullptr && one.out != out; };
    const auto it = std::stable_partition(launched_.begin(), launched_.end(), others);
    mine.assign(std::make_move_iterator(it), std::make_move_iterator(launched_.end()));
    launched_.erase(it, launched_.end());
  }
  absl::Status status;
  for (const Launched& one : mine) status.Update(one.request->Wait());
  return status;
}

}  // namespace interp
