// OpCache: what is worked out once for calls of one op with the same attributes. Internal to
// core/array.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "core/op_def.h"

namespace interp {

// An op with its attributes parsed, and the states that its kernels left (primitives, scratch
// sizes), to be used again by later calls.
class CachedOp {
 public:
  CachedOp(const OpDef& def, Op op) : def_(def), op_(std::move(op)) {}

  const OpDef& def() const { return def_; }
  const Op& op() const { return op_; }
  const void* attrs() const { return attrs_.get(); }
  // By its first call.
  absl::Status Parse();
  // Whether it stays: a device may use it until its work is done.
  bool kept() const { return kept_; }
  void Keep() { kept_ = true; }

  // A state that no other call uses; null when there is none.
  std::unique_ptr<KernelState> TakeState();
  void ReturnState(std::unique_ptr<KernelState> state);
  // That of a stream, whose work uses it in turn. Kernels that workers call to enqueue that work
  // hold the lock: several may do so for one stream.
  struct OfStream {
    std::mutex mutex;  // guards `state` on the host
    std::unique_ptr<KernelState> state;
  };
  OfStream& StateOf(const Stream& stream);

 private:
  const OpDef& def_;
  const Op op_;
  ParsedAttrs attrs_;
  bool kept_ = false;
  std::mutex mutex_;  // guards what follows
  std::vector<std::unique_ptr<KernelState>> states_;
  std::map<const Stream*, OfStream> of_streams_;
};

// Thread-safety: all methods.
class OpCache {
 public:
  // The op that `op` describes: its type, the counts of its inputs and its attributes matter. Kept
  // for later calls, but for those of a type beyond kMaxOfType. Errors: those of OpDef::parse.
  absl::StatusOr<std::shared_ptr<CachedOp>> Get(const OpDef& def, Op op);

 private:
  static constexpr size_t kMaxOfType = 64;

  std::mutex mutex_;  // guards what follows
  absl::flat_hash_map<const OpDef*, std::vector<std::shared_ptr<CachedOp>>> ops_;
};

}  // namespace interp
