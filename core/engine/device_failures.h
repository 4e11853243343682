// DeviceFailures: which operations the failed work of devices has spoilt. Internal to core/engine.
//
// Work fails after its operation has completed, when others may have been issued behind it: in the
// same stream they are skipped, elsewhere they may have read what was not written. So when a
// failure is noticed, all that any stream was issued from the failed operation on until then counts
// as spoilt, but for streams of other devices that have waited for nothing elsewhere since. The
// stream gets a new sink for errors, so what is issued afterwards runs again, and what it
// overwrites is good.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/btree_set.h"
#include "absl/functional/function_ref.h"
#include "core/device/work.h"
#include "core/engine/operation_error.h"

namespace interp::engine {

// An operation that is issued to a stream. Numbers count up from 1, in the order in which
// operations start to issue.
using Issue = uint64_t;

// Thread-safety: none.
class DeviceFailures {
 public:
  // Makes the error of an operation and counts it; `name` and `number` are the operation's.
  using MakeError = std::function<ErrorRef(absl::Status status, const char* name, uint64_t number)>;
  explicit DeviceFailures(MakeError make_error);

  void AddStream();
  // Before the operation enqueues anything.
  Issue Begin(const char* name, uint64_t number);
  // After the operation has enqueued everything.
  void End(Issue issue);
  // What that operation says of the work it enqueues on `stream`.
  Work WorkOf(int stream, Issue issue) const;

  // The error of an operation that cannot be issued, as the device is lost.
  ErrorRef ErrorOfLoss(absl::Status loss, const char* name, uint64_t number) const {
    return make_error_(std::move(loss), name, number);
  }

  // What was issued from `first` to `last` may be spoilt by what failed on `stream`.
  struct Failure {
    int stream;
    Issue first;
    Issue last;
    ErrorRef error;
  };
  // What has failed since the last call.
  std::vector<Failure> Notice();
  // The loss of the device of `stream`, which may have spoilt what was issued from `first` on.
  Failure NoteLoss(int stream, Issue first, absl::Status loss);
  // The error that has spoilt what an operation wrote, as far as noticed; of several failures that
  // concern it the last. REQUIRES: the operation has not ended.
  ErrorRef ErrorOf(absl::FunctionRef<bool(const Failure&)> concerns) const;

  Issue last_issued() const { return issued_; }
  // Every operation up to this one has ended.
  Issue LastEnded() const { return in_flight_.empty() ? issued_ : *in_flight_.begin() - 1; }
  // All work of operations up to `issue` is done: sinks that only they know are destroyed.
  void ForgetSinks(Issue issue);
  size_t num_kept() const { return failures_.size() + old_sinks_.size(); }

 private:
  // Enough to name an operation whose work failed some time after it was issued.
  static constexpr size_t kNamesKept = 4096;
  struct Named {
    const char* name = nullptr;
    uint64_t number = 0;
  };
  struct OldSink {
    Issue last;  // that may know it
    std::unique_ptr<WorkErrors> sink;
  };

  Failure Note(int stream, const WorkError& failed);

  const MakeError make_error_;
  Issue issued_ = 0;
  std::vector<Named> names_;                        // by Issue % kNamesKept; none without streams
  std::vector<std::unique_ptr<WorkErrors>> sinks_;  // by stream
  absl::btree_set<Issue> in_flight_;                // operations that have not ended
  std::vector<OldSink> old_sinks_;
  std::vector<Failure> failures_;  // that concern operations in flight
};

}  // namespace interp::engine
