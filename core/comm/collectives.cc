#include "core/comm/collectives.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <numeric>
#include <utility>

namespace interp {
namespace {

// Up to so many bytes everybody gets all values: one round instead of two.
constexpr size_t kSmallBytes = 4096;

using Staging = std::shared_ptr<char[]>;

absl::StatusOr<Staging> NewStaging(size_t bytes) {
  char* const memory = new (std::nothrow) char[bytes];
  if (memory == nullptr) return ResourceExhausted("no ", bytes, " bytes for a collective");
  return Staging(memory);
}

struct RankPart {
  int64_t begin = 0;
  int64_t size = 0;
};

// Part `i` of `count` elements in `n` parts.
RankPart PartOf(int64_t count, int n, int i) {
  const int64_t each = count / n;
  const int64_t more = count % n;  // the first parts have one more
  return {.begin = each * i + std::min<int64_t>(i, more), .size = each + (i < more ? 1 : 0)};
}

void Copy(void* to, const void* from, size_t bytes) {
  if (bytes > 0 && to != from) std::memcpy(to, from, bytes);
}

class Builder {
 public:
  Builder(const CommCall& call, int rank, int size)
      : call_(call),
        rank_(rank),
        size_(size),
        width_(SizeOf(call.dtype)),
        in_(static_cast<char*>(const_cast<void*>(call.in))),
        out_(static_cast<char*>(call.out)) {}

  absl::StatusOr<Schedule> Make() {
    INTERP_RETURN_IF_ERROR(CheckCall(call_, rank_, size_));
    INTERP_RETURN_IF_ERROR(Add());
    return std::move(schedule_);
  }

 private:
  absl::Status Add() {
    switch (call_.kind) {
      case CommKind::kAllReduce:
        if (Bytes(call_.count) <= kSmallBytes || size_ == 1) return AddSmallAllReduce();
        INTERP_RETURN_IF_ERROR(AddReduceOfParts());
        AddGatherOfParts();
        return absl::OkStatus();
      case CommKind::kReduce:
        INTERP_RETURN_IF_ERROR(AddReduceOfParts());
        AddPartsToRoot();
        return absl::OkStatus();
      case CommKind::kBroadcast:
        AddBroadcast();
        return absl::OkStatus();
      case CommKind::kAllGather:
        AddAllGather();
        return absl::OkStatus();
      case CommKind::kReduceScatter:
        return AddReduceScatter();
      case CommKind::kScatter:
        return AddScatter();
      case CommKind::kAllToAll:
        return AddAllToAll();
      case CommKind::kBarrier:
        return AddBarrier();
      case CommKind::kSend:
        Send(schedule_.emplace_back(), call_.root, in_, call_.count);
        break;
      case CommKind::kReceive:
        Receive(schedule_.emplace_back(), call_.root, out_, call_.count);
        break;
    }
    return absl::OkStatus();
  }

  size_t Bytes(int64_t elements) const { return static_cast<size_t>(elements) * width_; }

  void Send(Round& round, int peer, char* data, int64_t elements) const {
    if (elements > 0) round.transfers.push_back({true, peer, data, Bytes(elements)});
  }
  void Receive(Round& round, int peer, char* data, int64_t elements) const {
    if (elements > 0) round.transfers.push_back({false, peer, data, Bytes(elements)});
  }
  template <typename F>
  void ForEachPeer(F f) const {
    // From the next rank on, so that not all of them begin with the same one.
    for (int step = 1; step < size_; ++step) f((rank_ + step) % size_);
  }

  // Out of the parts of all ranks, which lie in `staging` but for the own one.
  std::function<absl::Status()> Reduction(const Staging& staging, const char* own, int64_t count,
                                          char* out) const {
    return [=, dtype = call_.dtype, kind = call_.reduce, rank = rank_, size = size_,
            bytes = Bytes(count)] {
      std::vector<const void*> parts;
      for (int r = 0; r < size; ++r) parts.push_back(staging.get() + bytes * r);
      parts[rank] = own;
      ReduceParts(dtype, kind, parts, count, out);
      return absl::OkStatus();
    };
  }

  absl::Status AddSmallAllReduce() {
    INTERP_ASSIGN_OR_RETURN(const Staging staging, NewStaging(Bytes(call_.count) * size_));
    Round& round = schedule_.emplace_back();
    ForEachPeer([&](int peer) {
      Send(round, peer, in_, call_.count);
      Receive(round, peer, staging.get() + Bytes(call_.count) * peer, call_.count);
    });
    round.then = Reduction(staging, in_, call_.count, out_);
    return absl::OkStatus();
  }

  // Rank r has part r of the result then, in its place in `result_`.
  absl::Status AddReduceOfParts() {
    result_ = out_;
    Staging own;
    if (call_.kind == CommKind::kReduce && rank_ != call_.root) {
      const RankPart part = PartOf(call_.count, size_, rank_);
      INTERP_ASSIGN_OR_RETURN(own, NewStaging(Bytes(part.size)));
      result_ = nullptr;
      own_part_ = own;
    }
    const RankPart mine = PartOf(call_.count, size_, rank_);
    INTERP_ASSIGN_OR_RETURN(const Staging staging, NewStaging(Bytes(mine.size) * size_));
    Round& round = schedule_.emplace_back();
    ForEachPeer([&](int peer) {
      const RankPart part = PartOf(call_.count, size_, peer);
      Send(round, peer, in_ + Bytes(part.begin), part.size);
      Receive(round, peer, staging.get() + Bytes(mine.size) * peer, mine.size);
    });
    round.then = Reduction(staging, in_ + Bytes(mine.begin), mine.size, OwnPart());
    return absl::OkStatus();
  }

  char* OwnPart() const {
    if (result_ == nullptr) return own_part_.get();
    return result_ + Bytes(PartOf(call_.count, size_, rank_).begin);
  }

  void AddGatherOfParts() {
    const RankPart mine = PartOf(call_.count, size_, rank_);
    Round& round = schedule_.emplace_back();
    ForEachPeer([&](int peer) {
      const RankPart part = PartOf(call_.count, size_, peer);
      Send(round, peer, OwnPart(), mine.size);
      Receive(round, peer, out_ + Bytes(part.begin), part.size);
    });
  }

  void AddPartsToRoot() {
    const RankPart mine = PartOf(call_.count, size_, rank_);
    Round& round = schedule_.emplace_back();
    if (rank_ != call_.root) {
      Send(round, call_.root, OwnPart(), mine.size);
      // Keeps the part until it has gone out.
      round.then = [own = own_part_] { return absl::OkStatus(); };
      return;
    }
    ForEachPeer([&](int peer) {
      const RankPart part = PartOf(call_.count, size_, peer);
      Receive(round, peer, out_ + Bytes(part.begin), part.size);
    });
  }

  // A binomial tree, counted from the root: rank r gets the value from r without its lowest bit.
  void AddBroadcast() {
    const int place = (rank_ - call_.root + size_) % size_;
    const auto peer = [this](int at) { return (at + call_.root) % size_; };
    int bit = 1;
    while (bit < size_ && (place & bit) == 0) bit <<= 1;
    if (place == 0) {
      Copy(out_, in_, Bytes(call_.count));
    } else {
      Receive(schedule_.emplace_back(), peer(place - bit), out_, call_.count);
    }
    Round& round = schedule_.emplace_back();
    for (bit >>= 1; bit > 0; bit >>= 1) {
      if (place + bit < size_) Send(round, peer(place + bit), out_, call_.count);
    }
  }

  void AddAllGather() {
    const auto count_of = [this](int r) {
      return call_.counts.empty() ? call_.count : call_.counts[r];
    };
    std::vector<char*> places(size_);
    char* place = out_;
    for (int r = 0; r < size_; ++r) {
      places[r] = place;
      place += Bytes(count_of(r));
    }
    Copy(places[rank_], in_, Bytes(count_of(rank_)));
    Round& round = schedule_.emplace_back();
    ForEachPeer([&](int peer) {
      Send(round, peer, places[rank_], count_of(rank_));
      Receive(round, peer, places[peer], count_of(peer));
    });
  }

  absl::Status AddReduceScatter() {
    INTERP_ASSIGN_OR_RETURN(const Staging staging, NewStaging(Bytes(call_.count) * size_));
    Round& round = schedule_.emplace_back();
    ForEachPeer([&](int peer) {
      Send(round, peer, in_ + Bytes(call_.count) * peer, call_.count);
      Receive(round, peer, staging.get() + Bytes(call_.count) * peer, call_.count);
    });
    round.then = Reduction(staging, in_ + Bytes(call_.count) * rank_, call_.count, out_);
    return absl::OkStatus();
  }

  absl::Status AddScatter() {
    Round& round = schedule_.emplace_back();
    if (rank_ != call_.root) {
      Receive(round, call_.root, out_, call_.count);
      return absl::OkStatus();
    }
    const size_t row = Bytes(call_.count);
    Staging staging;  // the own row lands on the first one, which has to go out
    if (in_ == out_ && rank_ != 0 && row > 0) {
      INTERP_ASSIGN_OR_RETURN(staging, NewStaging(row));
      std::memcpy(staging.get(), in_, row);
    }
    ForEachPeer([&](int peer) {
      Send(round, peer, staging != nullptr && peer == 0 ? staging.get() : in_ + row * peer,
           call_.count);
    });
    Copy(out_, in_ + row * rank_, row);
    round.then = [staging] { return absl::OkStatus(); };
    return absl::OkStatus();
  }

  absl::Status AddAllToAll() {
    Staging staging;  // what is sent must not be overwritten by what comes in
    if (in_ == out_ && call_.count > 0) {
      INTERP_ASSIGN_OR_RETURN(staging, NewStaging(Bytes(call_.count) * size_));
      std::memcpy(staging.get(), in_, Bytes(call_.count) * size_);
    }
    char* const from = staging != nullptr ? staging.get() : in_;
    const size_t row = Bytes(call_.count);
    Copy(out_ + row * rank_, from + row * rank_, row);
    Round& round = schedule_.emplace_back();
    ForEachPeer([&](int peer) {
      Send(round, peer, from + row * peer, call_.count);
      Receive(round, peer, out_ + row * peer, call_.count);
    });
    round.then = [staging] { return absl::OkStatus(); };
    return absl::OkStatus();
  }

  absl::Status AddBarrier() {
    INTERP_ASSIGN_OR_RETURN(const Staging staging, NewStaging(size_));
    staging[rank_] = 1;
    Round& round = schedule_.emplace_back();
    ForEachPeer([&](int peer) {
      round.transfers.push_back({true, peer, staging.get() + rank_, 1});
      round.transfers.push_back({false, peer, staging.get() + peer, 1});
    });
    round.then = [staging] { return absl::OkStatus(); };
    return absl::OkStatus();
  }

  const CommCall& call_;
  const int rank_;
  const int size_;
  const size_t width_;
  char* const in_;
  char* const out_;
  char* result_ = nullptr;  // of the reduction; null: only the own part is kept
  Staging own_part_;
  Schedule schedule_;
};

}  // namespace

absl::string_view Name(CommKind kind) {
  switch (kind) {
    case CommKind::kAllReduce:
      return "all-reduce";
    case CommKind::kReduce:
      return "reduce";
    case CommKind::kBroadcast:
      return "broadcast";
    case CommKind::kAllGather:
      return "all-gather";
    case CommKind::kReduceScatter:
      return "reduce-scatter";
    case CommKind::kScatter:
      return "scatter";
    case CommKind::kAllToAll:
      return "all-to-all";
    case CommKind::kBarrier:
      return "barrier";
    case CommKind::kSend:
      return "send";
    case CommKind::kReceive:
      return "receive";
  }
  return "";
}

bool Reduces(CommKind kind) {
  return kind == CommKind::kAllReduce || kind == CommKind::kReduce ||
         kind == CommKind::kReduceScatter;
}

absl::Status CheckCall(const CommCall& call, int rank, int size) {
  if (SizeOf(call.dtype) == 0) {
    return InvalidArgument("a collective of ", Name(call.dtype), " values");
  }
  if (call.root < 0 || call.root >= size) {
    return InvalidArgument("rank ", call.root, " is not in the ring, which has ", size, " ranks");
  }
  if (IsPointToPoint(call.kind) && call.root == rank) {
    return InvalidArgument("rank ", rank, " of the ring is the other side of its own ",
                           Name(call.kind));
  }
  const int64_t most = std::numeric_limits<int64_t>::max() / 64 / size;
  if (call.count < 0 || call.count > most) {
    return InvalidArgument("a collective of ", call.count, " elements");
  }
  if (!call.counts.empty() && std::ssize(call.counts) != size) {
    return InvalidArgument(call.counts.size(), " counts for ", size, " ranks");
  }
  return Reduces(call.kind) ? CheckReducible(call.dtype, call.reduce) : absl::OkStatus();
}

CommCounts CountsOf(const CommCall& call, int rank, int size) {
  const bool is_root = rank == call.root;
  const int64_t one = call.count;
  const int64_t all = call.count * size;
  switch (call.kind) {
    case CommKind::kAllReduce:
      return {.in = one, .out = one};
    case CommKind::kReduce:
      return {.in = one, .out = is_root ? one : 0};
    case CommKind::kBroadcast:
      return {.in = is_root ? one : 0, .out = one};
    case CommKind::kAllGather:
      if (call.counts.empty()) return {.in = one, .out = all};
      return {.in = call.counts[rank],
              .out = std::accumulate(call.counts.begin(), call.counts.end(), int64_t{0})};
    case CommKind::kReduceScatter:
      return {.in = all, .out = one};
    case CommKind::kScatter:
      return {.in = is_root ? all : 0, .out = one};
    case CommKind::kAllToAll:
      return {.in = all, .out = all};
    case CommKind::kBarrier:
      return {};
    case CommKind::kSend:
      return {.in = one, .out = 0};
    case CommKind::kReceive:
      return {.in = 0, .out = one};
  }
  return {};
}

absl::StatusOr<Schedule> MakeSchedule(const CommCall& call, int rank, int size) {
  return Builder(call, rank, size).Make();
}

}  // namespace interp
