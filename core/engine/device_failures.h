// DeviceFailures: which operations the failed work of devices has spoilt. Internal to core/engine.
//
// Work fails after its operation has completed, when others may have been issued behind it: in the
// same stream they are skipped, elsewhere they may have read what was not written. So when a
// failure is noticed, all that any stream was issued from the failed operation on until then counts
// as spoilt. The stream gets a new sink for errors, so what is issued afterwards runs again, and
// what it overwrites is good.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

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
  // What that operation says of the work it enqueues on `stream`.
  Work WorkOf(int stream, Issue issue) const;
  // Takes note of what has failed by now.
  void Notice();
  // The error that has spoilt what the operation wrote, as far as noticed; of several the last.
  ErrorRef ErrorOf(Issue issue) const;

 private:
  // Enough to name an operation whose work failed some time after it was issued.
  static constexpr size_t kNamesKept = 4096;
  struct Named {
    const char* name = nullptr;
    uint64_t number = 0;
  };
  struct Failure {
    Issue first;
    Issue last;
    ErrorRef error;
  };

  void Note(const WorkError& failed);

  const MakeError make_error_;
  Issue issued_ = 0;
  std::vector<Named> names_;                        // by Issue % kNamesKept; none without streams
  std::vector<std::unique_ptr<WorkErrors>> sinks_;  // by stream
  // One of each per failure, for good: variables may be looked at any time later.
  std::vector<std::unique_ptr<WorkErrors>> old_sinks_;
  std::vector<Failure> failures_;
};

}  // namespace interp::engine
