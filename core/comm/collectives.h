// Collectives as schedules: rounds of messages between ranks, with work on the host after each.
// Pure functions of a call, so that all of them are looked at without a network.
//
// Sums have a fixed order. All-reduce, say: rank r gets part r of everybody's elements, reduces it
// in the order of the ranks, and sends the result to everybody. That moves as little as a ring
// does, and results do not depend on sizes, timing or what carries the messages.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/comm/reduce_parts.h"
#include "core/dtype.h"
#include "core/status.h"

namespace interp {

enum class CommKind : int8_t {
  kAllReduce,      // in[count] of all -> out[count] of all
  kReduce,         // in[count] of all -> out[count] of `root`
  kBroadcast,      // in[count] of `root` -> out[count] of all
  kAllGather,      // in[count] of all -> out[size][count], or by `counts`
  kReduceScatter,  // in[size][count] of all -> out[count]: row `rank` of the reduced rows
  kScatter,        // in[size][count] of `root` -> out[count]: row `rank`
  kAllToAll,       // in[size][count] -> out[size][count]: row i goes to rank i
  kBarrier,        // nobody is through before all have come
  kSend,           // in[count] to `root`
  kReceive,        // out[count] from `root`
};

struct CommCall {
  CommKind kind = CommKind::kBarrier;
  DType dtype = DType::kUInt8;
  ReduceKind reduce = ReduceKind::kSum;
  int root = 0;                      // in the ring; of kSend and kReceive the other side
  int tag = 0;                       // of kSend and kReceive
  int64_t count = 0;                 // elements
  std::vector<int64_t> counts = {};  // of kAllGather: of each rank, where they differ
  const void* in = nullptr;
  void* out = nullptr;    // may be `in` where they have the same size
  std::string name = {};  // who calls, for messages
  bool patient = false;   // may take any time, whatever CommOptions::timeout is
};

// "all-reduce", "send", ...
absl::string_view Name(CommKind kind);
inline bool IsPointToPoint(CommKind kind) {
  return kind == CommKind::kSend || kind == CommKind::kReceive;
}

// Whether values of several ranks are made one.
bool Reduces(CommKind kind);
// Errors: InvalidArgument for roots and counts that cannot be, those of CheckReducible.
absl::Status CheckCall(const CommCall& call, int rank, int size);

// Elements that a rank reads from `in` and writes to `out`. REQUIRES: CheckCall.
struct CommCounts {
  int64_t in = 0;
  int64_t out = 0;
};
CommCounts CountsOf(const CommCall& call, int rank, int size);

struct Transfer {
  bool send = false;
  int peer = 0;  // in the ring
  void* data = nullptr;
  size_t bytes = 0;
};

struct Round {
  std::vector<Transfer> transfers = {};  // in any order
  // When all transfers are done; may be null.
  std::function<absl::Status()> then = nullptr;
};

using Schedule = std::vector<Round>;

// What rank `rank` of `size` does. Memory that it needs goes with the schedule. Errors: those of
// CheckCall, ResourceExhausted.
absl::StatusOr<Schedule> MakeSchedule(const CommCall& call, int rank, int size);

}  // namespace interp
